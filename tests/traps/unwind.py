"""Tests that debuggers, profilers and exceptions can unwind through the trampoline. Backtraces show the program's functions, and a thread
that ends inside a call runs its clean-up handlers. If a thread has ended inside a call, the call no longer counts as open."""
from trap_test import LINKED, Session, check, compiled, equal, recorded, same

with Session() as s:
    program = compiled(s, "unwind.c", *LINKED, "-lpthread", "-rdynamic", "-fexceptions", "-fno-optimize-sibling-calls")
    said = same(s, "a walk", program, "walk").stdout
    check(said.startswith("middle\nouter\nmiddle: 0 "), said)
    said = same(s, "leaving", program, "leave").stdout
    equal(said, 3 * "cleaned up: middle\ncleaned up: outer\nleft from inside: 1\n", "the way out")
    equal(s.value("SELECT count(*) FROM open_calls"), 0, "calls that are still open")
    equal(s.value("SELECT max(depth) FROM calls WHERE name NOT LIKE 'cuOccupancyMaxActive%'"), 0, "depth")
    equal(recorded(s, "%walk%")["cuOccupancyMaxPotentialBlockSize"], 3, "calls that returned")
    check("cuOccupancyMaxPotentialBlockSize" not in recorded(s, "%leave%"), "calls that were left")
