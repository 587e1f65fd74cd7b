"""Tests cuGetProcAddress. The 439 queries that libcudart 13.0 makes must return the same results, statuses and pointers as in the
untraced program, and each pointer must be a stub's. The test also covers calls with four and with five arguments, a NULL status, and
functions whose versions have different addresses."""
from trap_test import SOURCE, Session, check, compiled, equal, recorded, same

QUERIES = SOURCE / "tests/simcuda/cudart-13.0.procaddress.tsv"

with Session() as s:
    program = compiled(s, "proc_address.c")
    said = same(s, "the queries", program, QUERIES).stdout
    asked, found = (int(word.strip(",")) for word in said.split("\nasked ")[1].split()[:3:2])
    equal(asked, 439, "queries")
    check(found > 400, "found", found)
    for line in said.splitlines()[-6:]:
        print(line)
    calls = recorded(s)
    equal((calls["cuGetProcAddress"], calls["cuGetProcAddress_v2"]), (439, 2 * 439 + 1 + 6), "queries in the trace")
    where = s.run(program, QUERIES, "where").stdout
    check(f"found {found}, in the hook {found}\n" in where, "pointers that are no stubs:", where.splitlines()[-7])
    s.flush()
