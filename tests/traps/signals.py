"""Tests that calls made by a signal handler are attributed to the program, wherever in the hook the handler interrupts another call. Each
of these calls is recorded or counted as lost, and every launch has its kernel's name.

    signals.py plain | launch | fork | capture | switch | switch_above | storm
"""
import platform
import re
import sys

from trap_test import LINKED, Session, check, compiled, counted, equal, needs, recorded, skip

(trap,) = sys.argv[1:]
if platform.machine() != "x86_64":
    skip("steps through x86-64 instructions")
needs("ptrace")

with Session() as s:
    program = compiled(s, "signals.c", *LINKED)
    s.start_daemon()
    ran = s.run(program, trap, status=None)
    if ran.returncode == 78:
        skip("there is no room above the stack")
    said = re.fullmatch(rf"{trap}: every instruction, (\d+) rounds\n", ran.stdout)
    check(ran.returncode == 0 and said, "it ended with", ran.returncode, "and said", ran.stdout)
    s.flush()
    lost = s.value("SELECT sum(lost) FROM totals")
    s.check_identity(lost=lost)
    equal(s.rows("SELECT DISTINCT state FROM processes"), [("exited",)], "how it ended")
    if trap != "fork":  # with fork, a child's call belongs to its parent, or neither of them counts it
        equal(recorded(s), counted(s), "calls, and the driver's counts")
        check(lost > 0, "calls that interrupted a record are counted as lost")
    else:
        launches = s.value("SELECT calls FROM totals WHERE name = 'cuLaunchKernel' ORDER BY process_id")
        equal((launches, lost), (2 * int(said[1]), 0), "the parent's launches, two in each round, and lost ones")
    if trap == "launch":
        equal(s.value("SELECT count(DISTINCT grid_x) FROM launches"), 2, "grids")
        equal(s.value("SELECT count(*) FROM (SELECT DISTINCT kernel, grid_x FROM launches)"), 2, "kernels of two grids")
