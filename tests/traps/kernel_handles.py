"""Tests the names of kernels that were obtained as functions and as kernels, from lists, from a library's module, and under the same
handles after an unload and a reset. The hook copies names at once, because the program may free its own copy. Some handles were obtained
without the hook, so that only the driver knows their names. The hook queries the driver once for each of them. These queries are not in the
trace."""
from trap_test import LINKED, Session, compiled, counted, equal

KERNELS = {"by_module": 3, "by_library": 3, "only_one": 1, "told": 2, "of_the_librarys_module": 1, "hidden_0": 2, "hidden_1": 1, "hidden_2": 1,
           "hidden_3": 1, "before_the_reset": 1, "after_the_reset": 1, "kept": 1, "hidden_after_the_reset": 1}
QUERIED = ["told", "hidden_0", "hidden_1", "hidden_2", "hidden_3", "hidden_after_the_reset"]

with Session() as s:
    program = compiled(s, "kernel_handles.c", *LINKED)
    untraced = s.run(program, preload=False)
    asked = counted(s)
    s.start_daemon()
    equal(s.run(program).stdout, untraced.stdout, "its output")
    equal(untraced.stdout, "a handle came again: 1\nand after a reset: 1 1\n", "its output")
    s.flush()
    s.check_identity()
    both = {name: 2 * n for name, n in asked.items()}
    both["cuFuncGetName"] += len(QUERIED)
    equal(counted(s), both, "calls that reached the driver, untraced and traced")
    equal(s.value("SELECT calls FROM totals WHERE name = 'cuFuncGetName'"), asked["cuFuncGetName"], "queries in the trace")
    equal(dict(s.rows("SELECT kernel, count(*) FROM launches GROUP BY kernel")), KERNELS, "launches by name")
