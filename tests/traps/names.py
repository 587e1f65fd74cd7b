"""Kernels' names: by function and by kernel, listed, of a library's module, after an unload and a reset under the same
handles, obtained past the hook; copied at once, since the program's text may go. Without cuFuncGetName (before 12.3) names
are missing where only it could tell."""
from trap_test import LINKED, Session, compiled, equal, same

KNOWN = {"by_module": 2, "by_library": 2, "of_the_librarys_module": 1, "before_the_reset": 1, "after_the_reset": 1, "kept": 1}
ASKED = {"by_module": 1, "by_library": 1, "hidden_0": 1, "hidden_1": 1, "hidden_2": 1, "hidden_3": 1, "hidden_after_the_reset": 1}

with Session() as s:
    program = compiled(s, "names.c", *LINKED)
    equal(same(s, "names", program).stdout, "a handle came again: 1\nand after a reset: 1 1\n", "its output")
    kernels = dict(s.rows("SELECT kernel, count(*) FROM launches GROUP BY kernel"))
    equal(kernels, {name: KNOWN.get(name, 0) + ASKED.get(name, 0) for name in KNOWN | ASKED}, "launches by name")

with Session() as s:
    program = compiled(s, "names.c", *LINKED)
    same(s, "names of an old driver", program, env={"SIMCUDA_FAIL": "cuFuncGetName:500,cuKernelGetName:500"})
    kernels = dict(s.rows("SELECT kernel, count(*) FROM launches GROUP BY kernel"))
    # After the second reset such a driver does not tell that the handle is another kernel's.
    kernels["after_the_reset"] -= 1
    equal(kernels.pop(None), sum(ASKED.values()) - 1, "launches without a name")
    equal(kernels, KNOWN, "launches by name, where the driver does not tell")
