"""Closes and reopens the driver and libraries that call it, and closes the hook several times. No pointer may become stale, and every call
must be in the trace."""
from trap_test import HOOK, LINKED, Session, compiled, equal, library, recorded, same

with Session() as s:
    plugin = library(s, "reload.c", "plugin.so", "-DPLUGIN", *LINKED)
    program = compiled(s, "reload.c", "-ldl")
    equal(same(s, "libraries that come and go", program, plugin, HOOK).stdout, "50 calls, 0 failed\n", "what it said")
    equal(recorded(s), {"cuDriverGetVersion": 50, "cuInit": 50, "cuCtxGetCurrent": 50}, "the trace")
    equal(s.rows("SELECT state FROM processes"), [("exited",)], "how it ended")
