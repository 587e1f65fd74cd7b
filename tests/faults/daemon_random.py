"""The daemon is killed at random moments, many times over one database, while programs run across all of its deaths. It dies at the nth
passing of any test point, or at the nth passing of one chosen point. A seed, which is printed, chooses these. CUDATRACE_SEED sets the
seed."""
import random

from daemon_test import Deadly
from fault_test import FAULT_DAEMON, LONG, SANITIZED, by_tier, check, points, promise, seed

chance = random.Random(seed())
POINTS = [name for name in points(FAULT_DAEMON) if name.split(".")[0] in ("batch", "store", "process", "lane", "expire", "checkpoint")]


def lives(s, count, calls, *options):
    """Runs that many lives of a daemon, of any length. Each order of magnitude of passings is equally likely. Most passings are at points
    that are passed for each row. Therefore, every second life ends at one point, and all points are equally likely."""
    s.start_daemon(*options)
    child = s.start_program(0, 10 * calls * count)
    s.exact.add(child.pid)
    s.flush_until("the program", lambda: s.rows("SELECT 1 FROM processes WHERE pid = ?", child.pid))
    s.reap()
    for _ in range(count):
        name, magnitude = chance.choice((("*", 5), (chance.choice(POINTS), 2)))
        if s.start_armed(name, int(10 ** chance.uniform(0, magnitude)), *options):
            s.flush_until_death(3, calls, None if name == "*" else 10)
        s.reap()
    s.start_daemon(*options)
    s.end_programs()
    s.flush()
    s.check_all()
    s.summary()


LIVES, EXPIRING = by_tier((15, 8), (20, 12) if SANITIZED else (40, 25), (300, 200))

with promise("daemon-random", LIVES), Deadly() as s:
    lives(s, LIVES, 2000, "--ring", "256K")
    check(s.deaths >= (150 if LONG else LIVES // 4), "deaths", s.deaths)
with promise("daemon-random-expiring", EXPIRING), Deadly() as s:
    lives(s, EXPIRING, 2000, "--ring", "256K", "--keep", "1s")
    check(s.value("SELECT sum(expired) FROM totals") > 0 or not LONG, "no call has gone")
