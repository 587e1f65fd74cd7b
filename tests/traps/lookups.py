"""Tests that dlsym() with RTLD_NEXT and RTLD_DEFAULT finds the same symbols as without the hook, in every version of dlsym. Names that
only look like the driver's are ignored. After a failed look-up, dlerror() reports the program's own error, and after a successful one, it
reports none."""
from trap_test import LINKED, Session, check, compiled, library, recorded, equal, same

with Session() as s:
    first = library(s, "lookups.c", "liblookup_first.so", "-DLOOKUP=1")
    second = library(s, "lookups.c", "liblookup_second.so", "-DLOOKUP=2")
    program = compiled(s, "lookups.c", "-Wl,--no-as-needed", first, second, f"-Wl,-rpath,{s.dir}")
    said = same(s, "look-ups", program).stdout
    check("first: 1, next of first: 2, next of a driver's kind: 4002\n" in said, said)
    print(said, end="")
    # Repeat the test with a driver in the process, because the hook then knows the driver's names.
    linked = compiled(s, "lookups.c", "-Wl,--no-as-needed", first, second, f"-Wl,-rpath,{s.dir}", *LINKED,
                      output="lookups_driver")
    equal(same(s, "look-ups beside a driver", linked).stdout, said, "beside a driver")
    equal(recorded(s), {}, "the trace")
    check("'cuNoSuchThing': 0, error names it: 1, once: 1" in said, said)
