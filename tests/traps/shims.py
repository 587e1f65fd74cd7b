"""Tests the hook with another library that interposes the clock and syscall(). The other library reads its setting from the program's
environment. The hook does not depend on the system calls that the library refuses, and all calls are recorded."""
from trap_test import LINKED, Session, check, compiled, counted, equal, library, preloads, recorded

DECADE_S = 10 * 365 * 24 * 3600

with Session() as s:
    program = compiled(s, "shims.c", "-DPROGRAM", *LINKED, output="year")
    shim = library(s, "shims.c", "shim.so")
    setting = {"CLOCK_SHIFT": str(-DECADE_S)}
    now = s.run(program, preload=False).stdout
    shifted = s.run(program, preload=False, env={**setting, **preloads(shim, "")}).stdout
    check(int(shifted) < int(now), "the shim alone does not shift the clock:", shifted)
    orders = [["HOOK", shim], [shim, "HOOK"]]
    for order in orders:
        equal(s.run(program, preload=False, env={**setting, **preloads(*order)}).stdout, shifted, f"dormant, {order}")
    s.start_daemon()
    untraced = counted(s)["cuInit"]
    for order in orders:
        equal(s.run(program, preload=False, env={**setting, **preloads(*order)}).stdout, shifted, f"recording, {order}")
        s.flush()
        equal(recorded(s).get("cuInit"), counted(s)["cuInit"] - untraced, f"{order}: calls in the trace and in the driver")
