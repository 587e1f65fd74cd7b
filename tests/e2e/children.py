"""Tests that forked children are recorded as separate processes, no matter how they exit."""
from cudatrace_test import Session, WORKLOADS, check, equal

with Session() as s:
    s.start_daemon()
    s.run(WORKLOADS / "forks")
    s.flush()
    check(s.value("SELECT count(*) FROM processes") >= 4, "processes", s.rows("SELECT pid, state FROM processes"))
    equal(s.value("SELECT count(*) FROM processes WHERE state <> 'exited'"), 0, "children that did not exit")
    s.check_identity()
    s.check_truth()
