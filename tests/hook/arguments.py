"""Every function through its stub, as the driver sees it: the same arguments, stack alignment and results as without the
hook, while it records and while it is dormant."""
import os
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "e2e"))
from cudatrace_test import BUILD, Session, check, equal  # noqa: E402

PROGRAM = BUILD / "tests/hook/arguments"

with Session() as s:
    verify = {"SIMCUDA_VERIFY": "checksum", "SIMCUDA_COUNTS": ""}
    plain = s.run(PROGRAM, preload=False, env=verify).stdout.splitlines()
    equal(len(plain), 2 * 679, "calls")
    equal([line for line in plain if not line.endswith(" 0")], [], "misaligned calls without the hook")
    equal(s.run(PROGRAM, env=verify).stdout.splitlines(), plain, "what the driver saw through a dormant hook")
    s.start_daemon()
    equal(s.run(PROGRAM, env=verify).stdout.splitlines(), plain, "what the driver saw through the hook")
    s.flush()
    s.check_identity()
    recorded = dict(s.rows("SELECT name, calls FROM totals"))
    wanted = {line.split()[0]: 2 for line in plain}
    equal(recorded, wanted, "calls recorded")
    # Results too: the status of each row is what the function returned.
    nothing = {line.split()[0] for line in plain if line.split()[1] == "0"}
    statuses = {name: status for name, status in s.rows("SELECT name, status FROM calls") if name not in nothing}
    equal(statuses, {line.split()[0]: int(line.split()[1]) for line in plain if line.split()[0] not in nothing},
          "statuses recorded")
    check(len(statuses) > 670, "functions with a status")

# What a decoder may follow: nothing that a failed call should have written, nothing at all where the driver may have
# returned before it looked, and no count that it did not accept. The program must come through, and its calls with it.
NOT_INITIALIZED, INVALID_VALUE = 3, 1
for mode, status in ("wild", INVALID_VALUE), ("nowhere", NOT_INITIALIZED), ("small", 0):
    with Session() as s:
        answer = {"SIMCUDA_VERIFY": status, "SIMCUDA_COUNTS": ""}
        plain = s.run(PROGRAM, mode, preload=False, env=answer).stdout.splitlines()
        s.start_daemon()
        equal(s.run(PROGRAM, mode, env=answer).stdout.splitlines(), plain, f"{mode}: what the driver saw")
        s.flush()
        s.check_identity()
        equal(s.value("SELECT count(*) FROM calls"), len(plain), f"{mode}: calls recorded")
        if mode == "wild":
            with_objects = s.value("SELECT count(DISTINCT name) FROM calls JOIN objects USING (call_id)")
            check(with_objects > 250, "functions whose failed calls say what they were about:", with_objects)
