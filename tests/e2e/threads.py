"""Threads that come and go share lanes; calls from exit handlers, destructors and signal handlers are there."""
import os

from cudatrace_test import Session, WORKLOADS, check, equal

COUNT = 1000

with Session() as s:
    s.start_daemon()
    s.run(WORKLOADS / "threads", "--count", COUNT)
    s.flush()
    check(s.value("SELECT count(*) FROM threads") >= COUNT, "a row for each thread",
          s.value("SELECT count(*) FROM threads"))
    # How many there are follows from how soon the daemon gives one back: some twenty, and more on a busy machine.
    check(s.value("SELECT count(*) FROM lane") < COUNT // 4, "lanes are used again", s.value("SELECT count(*) FROM lane"))
    s.check_identity(lost=None)
    s.check_truth()
    equal([n for n in os.listdir("/dev/shm") if f".{s.name}." in n and not n.endswith(".sock")], [], "segments")
