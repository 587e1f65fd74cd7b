"""Tests that short-lived threads share lanes, and that calls from exit handlers, destructors and signal handlers are recorded."""
import os

from cudatrace_test import Session, WORKLOADS, check, equal

COUNT = 1000

# No signals are sent here, because signals can make a thread lose calls. After a loss, a thread's lane cannot be reused until the daemon
# has read that loss. With signals, the number of lanes would depend on how soon the daemon reads the losses.
with Session() as s:
    s.start_daemon()
    s.run(WORKLOADS / "threads", "--count", COUNT, "--interval", 0)
    s.flush()
    check(s.value("SELECT count(*) FROM threads") >= COUNT, "a row for each thread", s.value("SELECT count(*) FROM threads"))
    check(s.value("SELECT count(*) FROM lane") < 64, "lanes are used again", s.value("SELECT count(*) FROM lane"))
    s.check_identity()

with Session() as s:
    s.start_daemon()
    s.run(WORKLOADS / "threads", "--count", COUNT)
    s.flush()
    check(s.value("SELECT count(*) FROM threads") >= COUNT, "a row for each thread",
          s.value("SELECT count(*) FROM threads"))
    s.check_identity(lost=None)
    s.check_truth()
    equal([n for n in os.listdir("/dev/shm") if f".{s.name}." in n and not n.endswith(".sock")], [], "segments")
