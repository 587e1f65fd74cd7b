"""Tests that short-lived threads share lanes, and that calls from exit handlers, destructors and signal handlers are recorded."""
import os

from cudatrace_test import Session, WORKLOADS, check, equal

COUNT = 1000

# Send no signals in this session, because a signal can make a thread lose a call. The thread's lane could then be reused only after the
# daemon has read the loss, so the number of lanes would depend on the daemon's speed.
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
