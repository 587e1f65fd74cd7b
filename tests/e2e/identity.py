"""Runs many concurrent processes with 4 threads each, or 8 processes if /dev/shm has no room for more. Every call must be stored in order,
and no call may be lost. The counts must equal the driver's."""
from cudatrace_test import SANITIZED, Session, WORKLOADS, by_tier, check, equal, have_shm

THREADS = 4
# A program with a sanitizer is slow, but a few calls are enough to check all the code that a call executes.
PROCESSES, CALLS, ROOM_MIB = (16, 10000, 128) if SANITIZED else by_tier((64, 2000, 512), (64, 20000, 512))
if not have_shm(ROOM_MIB, f"{PROCESSES} processes at once"):
    PROCESSES, CALLS = 8, 5000

with Session() as s:
    s.start_daemon()
    s.run(WORKLOADS / "calls", "--processes", PROCESSES, "--threads", THREADS, "--calls", CALLS, "--mix", "training")
    s.flush()
    equal(s.value("SELECT count(DISTINCT pid) FROM processes WHERE process_id IN (SELECT process_id FROM totals)"),
          PROCESSES + s.value("SELECT count(*) FROM processes WHERE pid NOT IN "
                              "(SELECT pid FROM calls GROUP BY pid HAVING count(*) > ?)", CALLS), "processes")
    check(s.value("SELECT count(*) FROM calls") >= PROCESSES * THREADS * CALLS, "all calls are there")
    s.check_identity(lost=0)
    s.check_truth()
    # The rows in the file are in the order of their rowids, and their return times must increase in this order.
    equal(s.value("SELECT count(*) FROM (SELECT end_ns, lag(end_ns) OVER (ORDER BY call_id) AS before FROM calls) "
                  "WHERE end_ns <= before"), 0, "rows out of order")
    print(s.value("SELECT count(*) FROM calls"), "calls,", s.value("SELECT count(*) FROM late_call"), "late")
