"""Calls every function through its stub. Both with and without the hook, the runtime must see the same arguments and stack alignment, and
the program must get the same results. The test runs with a recording hook and with a dormant one."""
import collections
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "e2e"))
from cudatrace_test import BUILD, Session, check, equal  # noqa: E402

PROGRAM = BUILD / "tests/hook/arguments-runtime"
FUNCTIONS = 451

with Session() as s:
    verify = {"SIMCUDA_VERIFY": "checksum", "SIMCUDA_COUNTS": ""}
    plain = s.run(PROGRAM, preload=False, env=verify).stdout.splitlines()
    equal(len(plain), 2 * FUNCTIONS, "calls")
    equal([line for line in plain if not line.endswith(" 0")], [], "misaligned calls without the hook")
    equal(s.run(PROGRAM, env=verify).stdout.splitlines(), plain, "what the driver saw through a dormant hook")
    s.start_daemon()
    equal(s.run(PROGRAM, env=verify).stdout.splitlines(), plain, "what the driver saw through the hook")
    s.flush()
    s.check_identity()
    recorded = dict(s.rows("SELECT name, calls FROM totals WHERE layer = 'runtime'"))
    # The compiler translates <<<…>>> into __cudaLaunchKernel(), which is recorded as cudaLaunchKernel.
    wanted = collections.Counter(line.split()[0].lstrip("_") for line in plain)
    equal(recorded, dict(wanted), "calls recorded")
    # The functions' results are also recorded, because the status of each row is the function's return value.
    nothing = {line.split()[0] for line in plain if line.split()[1] == "0"}
    texts = {"cudaGetErrorName", "cudaGetErrorString", "cudaCreateChannelDesc"}
    equal(s.rows("SELECT DISTINCT status FROM calls WHERE name IN (?, ?, ?)", *texts), [(0,)],
          "statuses of functions that return none")
    nothing |= texts
    statuses = {row for row in s.rows("SELECT name, status FROM calls") if row[0] not in nothing}
    equal(statuses, {(line.split()[0].lstrip("_"), int(line.split()[1])) for line in plain
                     if line.split()[0] not in nothing}, "statuses recorded")
    check(len(statuses) > FUNCTIONS - 9, "functions with a status")
    equal(s.value("SELECT (SELECT count(*) FROM launches) + (SELECT count(*) FROM copies) + "
                  "(SELECT count(*) FROM allocations)"), 0, "details of runtime calls alone")
