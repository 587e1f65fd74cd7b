"""Tests that without a driver, dlopen and dlsym fail just as they do without the hook, and a weak &cuInit is NULL."""
from trap_test import Session, compiled, equal, recorded, same

with Session() as s:
    program = compiled(s, "no_driver.c")
    print(same(s, "no driver", program, env={"LD_LIBRARY_PATH": ""}).stdout, end="")
    equal(same(s, "weak", program, "weak", env={"LD_LIBRARY_PATH": ""}).stdout, "absent\n", "weak")
    s.flush()
    equal(recorded(s), {}, "the trace")
    equal(s.value("SELECT count(*) FROM processes"), 0, "processes")
