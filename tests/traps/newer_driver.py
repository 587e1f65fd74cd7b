"""Tests a driver that is newer than the hook's table. For an unknown function, the program gets a fallback stub, which records calls under
the requested name. Export tables and exported data remain the driver's own. A cuInit that forks, executes a helper and registers atfork
handlers is recorded like any other call."""
from trap_test import Session, check, compiled, equal, library, recorded, same

with Session() as s:
    driver = s.dir / "driver"
    driver.mkdir()
    library(s, "newer_driver.c", "driver/libcuda.so.1", "-Wl,-soname,libcuda.so.1", "-Wl,-Bsymbolic", "-Wno-unused")
    program = compiled(s, "newer.c")
    env = {"LD_LIBRARY_PATH": driver}
    said = same(s, "a newer driver", program, env=env).stdout
    check("same by name and by query: 1\n" in said and "init: 0\n" in said and "table in libcuda.so.1, its function in "
          "libcuda.so.1" in said and "data: 4711 in libcuda.so.1" in said, said)
    print(said)
    equal(recorded(s), {"cuInit": 1, "cuGetProcAddress_v2": 2, "cuGetExportTable": 1, "cuNewFunction": 2,
                        "cuUnexported": 1, "cuNewForks": 1}, "the trace")
    equal(s.rows("SELECT state, count(*) FROM processes GROUP BY state"), [("exited", 1)],
          "processes: children that call nothing are none")
    where = s.run(program, "where", env=env).stdout
    check("where: libcudatrace.so libcudatrace.so libcudatrace.so libcudatrace.so\n" in where, where)
    s.flush()
