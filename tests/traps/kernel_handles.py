"""Tests the names of kernels that were obtained as functions and as kernels, from lists, from a library's module, and under the same
handles after an unload and a reset. If only the driver knows a kernel's name, the name must be in the trace after the program has queried
it. Kernels whose handles were obtained without the hook have no name. The hook copies names at once, because the program may free its own
copy. The hook itself does not query the driver for names."""
from trap_test import LINKED, Session, compiled, counted, equal

KERNELS = {"by_module": 3, "by_library": 3, "only_one": 1, "told": 1, "of_the_librarys_module": 1, "hidden_0": 1,
           "before_the_reset": 1, "after_the_reset": 1, "kept": 1,
           None: 6}  # one kernel before its query, hidden_0 to hidden_3 and hidden_after_the_reset

with Session() as s:
    program = compiled(s, "kernel_handles.c", *LINKED)
    untraced = s.run(program, preload=False)
    asked = counted(s)
    s.start_daemon()
    equal(s.run(program).stdout, untraced.stdout, "its output")
    equal(untraced.stdout, "a handle came again: 1\nand after a reset: 1 1\n", "its output")
    s.flush()
    s.check_identity()
    equal(counted(s), {name: 2 * n for name, n in asked.items()}, "calls that reached the driver, untraced and traced")
    equal(dict(s.rows("SELECT kernel, count(*) FROM launches GROUP BY kernel")), KERNELS, "launches by name")
