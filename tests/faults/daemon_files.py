"""Kills the daemon while it switches to the trace's next file. No call may be lost or stored twice, and the next daemon must continue where
the killed daemon stopped."""
import signal

from fault_test import DEADLINE_S, FAULT_DAEMON, Session, at_point, by_tier, check, equal, fifo, needs, points, promise
from series_test import check_series, check_truth, files, value, workload

needs(shm_mib=256)  # room for all calls that are made while no daemon runs

# The test points that a daemon reaches when it is ordered to continue in another file. Each point has a number n: the daemon dies the nth
# time it reaches the point. The number is 2 for points that the daemon also reaches at startup, when it opens the existing file.
GOING_ON = {"database.locked": 2, "database.opened": 2, "database.filled": 1, "database.made": 1, "store.going_on": 1,
            "store.went_on": 1, "database.plain": 1}
REMOVING = "database.removing"
equal((set(GOING_ON) | {REMOVING}) - set(points(FAULT_DAEMON)), set(), "points that are gone")


def start_armed(s, name, nth, *options):
    s.start_daemon("--ring", "16M", *options, env=s.env(preload=False, **at_point(name, nth)))


def expect_death(s, name):
    equal(s.daemon.wait(DEADLINE_S), -signal.SIGKILL, f"how the daemon ended that was to die at {name}")


for name in by_tier(("database.filled", "store.going_on"), GOING_ON):
    nth = GOING_ON[name]
    with Session() as s, fifo(s.dir, "hold") as hold, promise("daemon-killed-going-on"):
        s.start_daemon("--ring", "16M")
        held = workload(s, 3000, "--hold", hold)
        equal(workload(s, 3000).wait(DEADLINE_S), 0, "a program's status")
        s.flush()
        s.daemon.kill()
        s.daemon.wait()
        start_armed(s, name, nth)
        # This program is recorded from its first call on, and its ring has room for the calls that it makes while no daemon is running.
        busy = workload(s, 10000)
        s.flush_until("the busy program", lambda: s.value("SELECT count(*) FROM processes WHERE pid = ?", busy.pid))
        s.daemon.send_signal(signal.SIGHUP)
        expect_death(s, name)
        s.start_daemon("--ring", "16M")
        equal(busy.wait(DEADLINE_S), 0, "a program's status")
        with open(hold, "w") as end:
            end.write("\n")
        equal(held.wait(DEADLINE_S), 0, "the held program's status")
        s.flush()
        # If the next file was already complete when the daemon died, the next daemon must use it.
        if name in ("database.made", "database.plain", "store.going_on", "store.went_on"):
            equal(len(files(s)), 2, "files")
        check_series(s)
        check_truth(s)
        before = s.status()["file"]
        s.daemon.send_signal(signal.SIGHUP)
        s.flush_until("the next file", lambda: s.status()["file"] != before)
        check_series(s)

# Kill the daemon while it removes the oldest file.
with Session() as s, promise("daemon-killed-going-on"):
    start_armed(s, REMOVING, 1, "--max-db", "16M")
    program = workload(s, 450000)
    expect_death(s, REMOVING)
    s.start_daemon("--ring", "16M", "--max-db", "16M")
    equal(program.wait(DEADLINE_S), 0, "the program's status")
    s.flush()
    check(files(s)[0] > 1, "files", files(s))
    check_series(s)
    check_truth(s)
    equal(value(s, "SELECT sum(lost) FROM totals"), 0, "calls lost")
