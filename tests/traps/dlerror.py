"""Tests dlerror(). The program must print the same lines as when untraced, whether the driver is linked or loaded at run time."""
from trap_test import LINKED, Session, check, compiled, same

with Session() as s:
    said = same(s, "linked", compiled(s, "dlerror.c", *LINKED, "-ldl", output="linked")).stdout
    check("the first call: not there, libnosuch.so: cannot open shared object file" in said, said)
    check("a success behind it: found, no error" in said, said)
    late = same(s, "loaded by hand", compiled(s, "dlerror.c", "-DLATE", "-ldl", output="late")).stdout
    check("of the driver, cuNoSuch: not there, " in late and "undefined symbol: cuNoSuch" in late, late)
