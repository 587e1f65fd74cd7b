"""Tests that programs that use processes and threads together with the driver behave as if they were untraced, and that every call is in
the trace.

    around_calls.py vfork | exits | host | capture
"""
import sys

from trap_test import LINKED, Session, check, compiled, counted, equal, recorded, same

(trap,) = sys.argv[1:]

with Session() as s:
    program = compiled(s, "around_calls.c", *LINKED, "-lpthread")
    said = same(s, trap, program, trap).stdout
    print(said, end="")
    equal(s.value("SELECT count(*) FROM processes"), 1, "processes")
    equal(s.rows("SELECT state FROM processes"), [("exited",)], "how it ended")
    calls = recorded(s)
    # The driver counted each call three times, because the program was run without the hook, with a dormant hook, and while recording.
    equal({name: 3 * n for name, n in calls.items()}, counted(s), "three times the trace, and the driver's counts")
    if trap == "vfork":
        equal(calls["cuCtxGetCurrent"], 220, "calls around vfork")
        equal(s.value("SELECT count(*) FROM lane"), 1, "lanes")
    if trap == "exits":
        # Each of ten threads makes one call from its function, one in a thread-local object's destructor, and four in the key's
        # destructor. At exit, the main thread's object makes one call, each of two exit handlers makes one call, and the program's
        # destructor makes one call.
        equal(calls["cuCtxGetCurrent"], 10 * (1 + 1 + 4) + 1 + 2 + 1, "calls at exits")
    if trap == "host":
        check("host: 0 " in said, said)
    if trap == "capture":
        check(said.count("\n") == 3 and ", end 0 0 0 0\n" in said, "captures", said)
        equal(s.rows("SELECT kernel, sum(captured), count(*) FROM launches GROUP BY kernel ORDER BY kernel"),
              [("beside", 0, 3), ("captured_first", 3, 3), ("captured_second", 3, 3)], "launches")
