"""A driver whose exports are nearly of the shape that goes through a slot: two names of one slot, a slot that is sealed, misaligned,
or leads elsewhere, another word in front. Those come by their names, and each call is counted once."""
from trap_test import Session, compiled, equal, library, recorded

FUNCTIONS = 10

with Session() as s:
    (s.dir / "driver").mkdir()
    library(s, "odd_slots.c", "driver/libcuda.so.1", "-DDRIVER", "-Wl,-soname,libcuda.so.1", "-Wl,-z,relro,-z,now")
    program = compiled(s, "odd_slots.c", "-L", s.dir / "driver", "-l:libcuda.so.1")
    env = {"LD_LIBRARY_PATH": s.dir / "driver"}
    plain = s.run(program, preload=False, env=env).stdout
    equal(plain.count("\n"), FUNCTIONS, "calls")
    s.start_daemon()
    equal(s.run(program, env=env).stdout, plain, "results")
    s.flush()
    s.check_identity()
    equal(recorded(s), {line.split()[0]: 1 for line in plain.splitlines()}, "calls in the trace")
    equal(dict(s.rows("SELECT name, status FROM calls")), {name: int(status) for name, status in map(str.split, plain.splitlines())}, "results")
