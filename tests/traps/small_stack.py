"""Tests calls to functions that are not in the hook's table, when the calls are made near the end of a stack. The hook must read no memory
beyond the end of the caller's stack, and must pass all arguments correctly. Also tests a system call filter that keeps the hook from
checking which addresses are readable."""
from trap_test import Session, can, check, compiled, equal, library, recorded, same

with Session() as s:
    driver = s.dir / "driver"
    driver.mkdir()
    library(s, "newer_driver.c", "driver/libcuda.so.1", "-Wl,-soname,libcuda.so.1", "-Wl,-Bsymbolic", "-Wno-unused")
    program = compiled(s, "small_stack.c", "-ldl", "-O2")
    env = {"LD_LIBRARY_PATH": driver}
    check("right: 80 of 80\n" in same(s, "a coroutine", program, env=env).stdout)
    equal(recorded(s), {"cuInit": 1, "cuNewForks": 80, "cuNewFunction": 41}, "the trace")
    if can("filters of system calls", "unknown functions behind a filter"):
        equal(s.run(program, "filtered", preload=False, env=env).stdout, "filtered: right\n", "untraced")
        equal(s.run(program, "filtered", env=env).stdout, "filtered: right\n", "filtered")
        s.flush()
        equal(recorded(s, "%filtered"), {"cuInit": 1, "cuNewForks": 1, "cuNewFunction": 2}, "calls, filtered")
