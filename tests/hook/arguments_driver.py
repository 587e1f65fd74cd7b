"""Calls every function through its stub. Both with and without the hook, the driver must see the same arguments and stack alignment, and
the program must get the same results. The test runs with a dormant hook, and with recording hooks whose clock is either the counter or a
function. When an emulator runs programs for another architecture, the driver must see the same arguments as in native programs."""
import collections
import re
import sys

from hook_test import EMULATOR, recorder, run
from cudatrace_test import SOURCE, TOOLS, Session, check, equal

VIEWS = ["calls", "launches", "graph_launches", "copies", "memsets", "objects"]
VARYING = {"call_id", "process_id", "pid", "tid", "start_ns", "end_ns", "duration_ns", "gb_per_s"}
FUNCTIONS = 682 + 1  # the functions of the table, and one unknown function
VERIFY = {"SIMCUDA_VERIFY": "checksum", "SIMCUDA_COUNTS": ""}


def told(session, view, process):
    """Returns the view's rows about the process's calls, without the columns that vary between runs."""
    columns = [name for _, name, *_ in session.rows(f"PRAGMA table_info({view})") if name not in VARYING]
    rows = session.rows(f"SELECT {', '.join(columns)} FROM {view} WHERE process_id = ? ORDER BY call_id", process)
    check(rows, view, "tells nothing")
    return rows


def check_wrapped():
    """Checks that no function with arguments in vector registers has a wrapper, which does not preserve them (hook/call/wrap.c)."""
    floats = re.findall(r'^SIG\((\w+), *"\w*[fd]\w*"\)', (SOURCE / "tests/signatures.def").read_text(), re.M)
    decoders = dict(re.findall(r"^ROW\((\w+), .*, (\w+)\)", (SOURCE / "proto/driver_api.def").read_text(), re.M))
    check(len(floats) >= 3, "functions with floats", floats)
    equal([name for name in floats if decoders[name] in ("none", "launch", "launch_ex")], [], "functions with floats and a wrapper")
    runtime = (SOURCE / "tests/runtime_signatures.def").read_text()
    equal(re.findall(r'^SIG\((\w+), *"\w*[fd]\w*"\)', runtime, re.M), [], "functions of the runtime with floats")


check_wrapped()
with Session() as s:
    plain = run(s, "arguments", preload=False, env=VERIFY)
    equal(len(plain), 2 * FUNCTIONS, "calls")
    equal([line for line in plain if not line.endswith(" 0")], [], "misaligned calls without the hook")
    equal(run(s, "arguments", env=VERIFY), plain, "what the driver saw through a dormant hook")

nothing = {line.split()[0] for line in plain if line.split()[1] == "0"}  # without a result
results = [tuple(line.split()[:2]) for line in plain if line.split()[0] not in nothing]
check(len(results) > 2 * 670, "calls with a result")

for clock in "counter", "monotonic":
    with Session() as s:
        with recorder(s, clock) as recorded:
            equal(run(s, "arguments", env=VERIFY), plain, f"what the driver saw through the hook's short way, with the clock {clock}")
        equal(len(recorded), len(plain), "calls in the rings")
        seen = collections.Counter(tuple(line.split()) for line in recorded if line.split()[0] not in nothing)
        equal(sorted(seen.items()), sorted(collections.Counter(results).items()), "calls in the rings, with their results")

if not TOOLS:
    print("no native build: not held against the daemon")
    sys.exit(0)

with Session() as s:
    s.start_daemon("--clock", "monotonic")
    equal(run(s, "arguments", env=VERIFY), plain, "what the driver saw through the hook")
    s.flush()
    s.check_identity()
    equal(s.rows("SELECT name, calls FROM totals ORDER BY name"), sorted({(line.split()[0], 2) for line in plain}),
          "calls recorded")
    # The functions' results are also recorded, because the status of each row is the function's return value.
    statuses = s.rows("SELECT DISTINCT name, status FROM calls ORDER BY name")
    equal([row for row in statuses if row[0] not in nothing], sorted({(name, int(status)) for name, status in results}),
          "statuses recorded")
    if EMULATOR:
        env = {"LD_LIBRARY_PATH": TOOLS / "tests/simcuda", "LD_PRELOAD": TOOLS / "hook/libcudatrace.so"}
        native = s.run(TOOLS / "tests/hook/arguments", preload=False, env={**VERIFY, **env}).stdout.splitlines()
        equal(plain, native, "what the driver sees on the other and on this architecture")
        s.flush()
        other, this = (row[0] for row in s.rows("SELECT process_id FROM processes ORDER BY process_id"))
        for view in VIEWS:
            equal(told(s, view, other), told(s, view, this), f"{view} of the other and of this architecture")

# Test which pointers decoders follow. After a failed call, decoders must not follow a pointer to the call's output. If the driver might
# have returned before reading any pointer, decoders must follow no pointer. Decoders must not trust a count that the driver has rejected.
# The program must not crash, and its calls must be recorded.
NOT_INITIALIZED, INVALID_VALUE = 3, 1
for mode, status in ("wild", INVALID_VALUE), ("nowhere", NOT_INITIALIZED), ("small", 0):
    with Session() as s:
        answer = {"SIMCUDA_VERIFY": status, "SIMCUDA_COUNTS": ""}
        plain = run(s, "arguments", mode, preload=False, env=answer)
        s.start_daemon("--clock", "monotonic")
        equal(run(s, "arguments", mode, env=answer), plain, f"{mode}: what the driver saw")
        s.flush()
        s.check_identity()
        equal(s.value("SELECT count(*) FROM calls"), len(plain), f"{mode}: calls recorded")
        if mode == "wild":
            with_objects = s.value("SELECT count(DISTINCT name) FROM calls JOIN objects USING (call_id)")
            check(with_objects > 250, "functions whose failed calls say what they were about:", with_objects)
