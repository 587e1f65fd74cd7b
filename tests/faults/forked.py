"""Tests a fork during the look-up in another thread that makes the hook exchange the driver's slots. In the child, either all slots or none
must have been exchanged. The child's calls must return, and the trace must contain each call of both processes."""
import subprocess

from fault_test import HERE, Session, at_point, equal

CALLS = 100

with Session() as s:
    program = s.dir / "forked"
    subprocess.run(["cc", "-O1", "-g", "-D_GNU_SOURCE", "-o", program, HERE / "forked.c", "-ldl", "-pthread"], check=True)
    s.start_daemon()
    # In the first run, the exchange waits after the called function's slot has been exchanged. In the second run, the fork waits.
    for mode, point in (("exchange", at_point("slots.exchanged", 500, "wait")), ("fork", at_point("driver_functions.fork_begun", 1, "wait"))):
        equal(s.run(program, mode, env=point).stdout, "ok\n", mode)
    s.flush()
    s.check_identity()
    s.check_truth()
    equal(s.rows("SELECT calls FROM totals WHERE name = 'cuDriverGetVersion'"), [(CALLS,)] * 4, "calls of each process")
