"""Tests that the trace contains each call's objects: handles, addresses, attributes and sizes as passed by the program, whether or not the
call succeeded. Also tests that the trace contains allocations with the time when they were freed, and the stream and the event of each
wait. The program prints the rows that the trace must contain."""
import re

from cudatrace_test import SOURCE, Session, WORKLOADS, check, equal

PROGRAM = WORKLOADS / "objects"


def said(s, pid):
    """Returns the trace's calls in the format that the program prints them in."""
    calls = {}
    for call_id, name, status, size in s.rows(
            "SELECT call_id, name, status, bytes FROM calls WHERE pid = ? ORDER BY call_id", pid):
        calls[call_id] = [f"call {name} {status}", [], [] if size is None else [f"bytes={size}"], []]
    for call_id, role, handle, captured in s.rows(
            "SELECT call_id, role, handle, captured FROM objects JOIN processes USING (process_id) WHERE pid = ? "
            "ORDER BY call_id, place", pid):
        calls[call_id][1].append(f"{role}={handle}")
        calls[call_id][3] = ["captured=1"] if captured else []
    return [" ".join([call, *objects, *size, *captured]) for call, objects, size, captured in calls.values()]


def check_calls(s, mode, **env):
    program = s.start(PROGRAM, mode, env={"SIMCUDA_COUNTS": "", **env}, stdout=-1, text=True)
    printed = program.communicate()[0].splitlines()
    equal(program.returncode, 0, "status")
    s.flush()
    wanted = [line for line in printed if line.startswith("call ")]
    check(len(wanted) >= 5, "calls printed", len(wanted))
    names = {line.split()[1] for line in wanted}
    seen = [line for line in said(s, program.pid) if line.split()[1] in names and line.split()[2] == wanted[0].split()[2]]
    if mode in ("streams", "lookups"):  # in these modes, the program does not print all of its calls
        seen = [line for line in seen if line in set(wanted)]
    equal(seen, wanted, f"{mode}: calls in the trace")
    return program.pid, printed, names


def check_rows(kind, printed, rows):
    wanted = [line for line in printed if line.startswith(kind)]
    equal([" ".join([kind, *map(str, row)]) for row in rows], wanted, kind)
    return wanted


ALLOCATIONS = """SELECT kind, address, ifnull(bytes, 'unknown'), ifnull(pool, 0), iif(freed_ns IS NULL, 'held', 'freed')
                   FROM allocations JOIN processes USING (process_id) WHERE pid = ? ORDER BY call_id"""

with Session() as s:
    s.start_daemon()
    covered = set()
    for status in "0", "1":
        for mode in "arguments", "memory":
            pid, printed, names = check_calls(s, mode, SIMCUDA_VERIFY=status)
            covered |= names
            check_rows("allocation", printed, s.rows(ALLOCATIONS, pid))
    equal(s.value("SELECT count(*) FROM allocations WHERE freed_ns < allocated_ns"), 0, "freed before allocated")

    # Check that the tests above have covered every row of the driver's object table, and every decoder of memory calls.
    decoders = dict(re.findall(r"^ROW\((\w+),.*, (\w+)\)$", (SOURCE / "proto/driver_api.def").read_text(), re.M))
    listed = set(re.findall(r"^OBJECTS(?:_ALWAYS)?\((\w+),", (SOURCE / "hook/decode/objects.def").read_text(), re.M))
    listed |= set(re.findall(r"^void ct_decode_(\w+)\(const", (SOURCE / "hook/decode/decode_memory.c").read_text(), re.M))
    listed |= set(re.findall(r"^(?:ALLOCATED|FREED)\((\w+),", (SOURCE / "hook/decode/decode_memory.c").read_text(), re.M))
    runtime = set(re.findall(r"^ROW\(\w+,.*, (\w+)\)$", (SOURCE / "proto/runtime_api.def").read_text(), re.M))
    listed -= runtime - set(decoders.values())
    equal(sorted(listed - {decoders[name] for name in covered} - {"context", "stream"}), [], "decoders without a call here")

    pid, printed, _ = check_calls(s, "streams")
    check_rows("edge", printed, s.rows(
        "SELECT waiting_stream, event, ifnull(recorded_stream, 0), captured FROM event_waits "
        "JOIN processes USING (process_id) WHERE pid = ? ORDER BY call_id", pid))
    equal(s.rows("SELECT captured, count(*), count(DISTINCT host_function) FROM host_callbacks "
                 "JOIN processes USING (process_id) WHERE pid = ? GROUP BY captured", pid),
          [(0, 2, 1), (1, 1, 1)], "host callbacks")
    equal(s.value("SELECT count(*) FROM allocations JOIN processes USING (process_id) WHERE pid = ?", pid), 0,
          "allocations that a capture alone made")
    equal(s.value("SELECT count(*) FROM event_waits JOIN calls ON calls.call_id = recorded_id "
                  "WHERE calls.name NOT LIKE '%Record%' OR recorded_id > event_waits.call_id"), 0, "records that are none")

    pid, printed, _ = check_calls(s, "lookups")
    check_rows("allocation", printed, s.rows(ALLOCATIONS, pid))

    # Check the kind and the size of each code object that was loaded. Loads that failed have no rows.
    equal(s.rows("SELECT what, bytes, count(*) FROM module_loads GROUP BY what, bytes"),
          [("library", None, 1), ("library", 1, 1), ("library", 4321, 1), ("library", 6168, 1),
           ("module", None, 1), ("module", 13, 1), ("module", 4321, 1), ("module", 5112, 1), ("module", 6168, 1)],
          "loads of code")
    s.check_identity()
