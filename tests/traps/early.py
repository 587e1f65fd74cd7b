"""Tests dlsym() and driver calls before any constructor has run, inside malloc's own initialization, and while the loader's lock is
held."""
from trap_test import LINKED, Session, compiled, equal, library, preloads, recorded

with Session() as s:
    s.start_daemon()
    allocator = library(s, "early.c", "allocator.so", "-DALLOCATOR")
    plugin = library(s, "early.c", "plugin.so", "-DPLUGIN", *LINKED)
    program = compiled(s, "early.c", *LINKED, "-lpthread")
    runs = 0
    for order in (["HOOK"], ["HOOK", allocator], [allocator, "HOOK"]):
        for _ in range(10):
            done = s.run(program, plugin, preload=False, env=preloads(*order))
            equal((done.stdout, done.stderr), ("0 13000 0 1\n", ""), order)
            runs += 1
    s.flush()
    s.check_identity()
    # The trace contains all calls except the cuInit made in .preinit_array. At that time, the hook does not know the environment yet, and
    # therefore does not know the session either.
    equal(recorded(s), {"cuInit": runs, "cuDriverGetVersion": 1601 * runs, "cuCtxGetCurrent": 1600 * runs}, "the trace")
    equal(s.value("SELECT count(*) FROM processes WHERE state <> 'exited'"), 0, "processes that did not exit")
