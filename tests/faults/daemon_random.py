"""Kills one daemon of a database after another at random times, while programs keep running. Some daemons die the nth time they reach any
test point, and others the nth time they reach a certain test point. The point and n are random. The seed is printed, and CUDATRACE_SEED
sets it."""
import random

from daemon_test import Deadly
from fault_test import FAULT_DAEMON, LONG, SANITIZED, by_tier, check, points, promise, seed

chance = random.Random(seed())
POINTS = [name for name in points(FAULT_DAEMON) if name.split(".")[0] in ("batch", "store", "process", "lane", "expire", "checkpoint")]


def lives(s, count, calls, *options):
    """Starts `count` daemons that live for random lengths of time. About half of the daemons die after a random number of test points, with
    every order of magnitude equally likely. Most of these daemons die at a point that a daemon reaches once per row. Therefore, the other
    daemons die at a random point, with all points equally likely."""
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
