"""No driver on the machine: dlopen and dlsym fail as without the hook.

A known difference: a weak &cuInit is there under the hook, since the loader binds it before anything can be known, and
calling it answers CUDA_ERROR_NOT_FOUND. docs/decisions.md says what was tried.
"""
from trap_test import Session, compiled, equal, recorded, same

with Session() as s:
    program = compiled(s, "no_driver.c")
    print(same(s, "no driver", program, env={"LD_LIBRARY_PATH": ""}).stdout, end="")
    equal(s.run(program, "weak", preload=False, env={"LD_LIBRARY_PATH": ""}).stdout, "absent\n", "weak, without the hook")
    equal(s.run(program, "weak", env={"LD_LIBRARY_PATH": ""}).stdout, "present, answers 500\n", "weak, with the hook")
    s.flush()
    equal(recorded(s), {}, "the trace")
    equal(s.value("SELECT count(*) FROM processes"), 0, "processes")
