"""Tests that `cudatrace export` writes each call of the trace exactly once, in every format. Also tests exports of selected windows,
processes, functions and layers, and exports of traces with several files, long calls, and calls that do not return."""
import collections
import csv
import io
import json
import lzma
import os
import pathlib
import signal
import subprocess

from cudatrace_test import CUDATRACE, HungCall, Session, WORKLOADS, can, check, equal, wait_for

FIXTURE = pathlib.Path(__file__).resolve().parents[1] / "fixtures" / "h200-training.db.xz"


def export(s, form, *options, status=0, db=None):
    return s.run(CUDATRACE, "export", "--db", db or s.db, "--format", form, *options, preload=False, status=status)


def jsonl(s, *options):
    lines = export(s, "jsonl", *options).stdout.splitlines()
    events = json.loads(f"[{','.join(lines)}]")
    equal(len(events), len(lines), "events, one in each line")
    return events


def ids(s, condition="1", *arguments):
    return [row for row, in s.rows(f"SELECT call_id FROM calls WHERE {condition} ORDER BY call_id", *arguments)]


def check_events(events, wanted):
    """Checks that events are ordered by time, that each call begins and ends once, and that the calls of each thread are properly
    nested."""
    equal([e["ts"] for e in events], sorted(e["ts"] for e in events), "the order of events")
    equal(sorted(e["op_id"] for e in events if e["phase"] == "B"), wanted, "calls that begin")
    equal([e["op_id"] for e in events if e["phase"] == "E"], wanted, "calls that return, in that order")
    stacks = collections.defaultdict(list)
    for event in events:
        stack = stacks[event["pid"], event["tid"]]
        if event["phase"] == "B":
            stack.append(event["op_id"])
        elif event["layer"] != "nvtx":  # ranges need not be nested
            check(event["op_id"] in stack, "a call returns that did not begin", event)
            inner = [other for other in stack[stack.index(event["op_id"]) + 1:] if other not in nvtx_ids]
            equal(inner, [], f"calls that go on when the one around them returns: {event}")
            stack.remove(event["op_id"])


nvtx_ids = set()

# Export a real training run with calls of all layers and with ranges. The trace's second file is empty.
with Session() as s:
    s.db.write_bytes(lzma.decompress(FIXTURE.read_bytes()))
    nvtx_ids = set(ids(s, "layer = 'nvtx'"))
    begin_ns = s.value("SELECT min(started_ns) FROM processes")
    everything = ids(s)
    events = jsonl(s)
    check_events(events, everything)
    rows = {row[0]: row[1:] for row in s.rows("SELECT call_id, name, start_ns, duration_ns, status, bytes FROM calls")}
    for event in events:
        name, start_ns, duration_ns, status, size = rows[event["op_id"]]
        details = event["details"]
        equal(event["name"], name, "a name")
        equal(round(event["ts"] * 1e9), (start_ns if event["phase"] == "B" else event["op_id"]) - begin_ns, "a time")
        if event["phase"] == "B":
            equal(details.get("bytes"), size, "bytes")
        else:
            equal((details["duration_ns"], details["status"]), (duration_ns, status), "how a call returned")
    launches = {e["op_id"]: e["details"] for e in events if e["phase"] == "B" and "kernel" in e["details"]}
    equal({key: (d["kernel"], d["grid_x"], d["block_x"], d["stream"]) for key, d in launches.items()},
          {row[0]: row[1:] for row in s.rows("SELECT call_id, kernel, grid_x, block_x, stream FROM launches WHERE kernel IS NOT NULL")},
          "kernels and grids")
    equal({e["op_id"]: (e["details"]["kind"], e["details"]["async"]) for e in events if e["phase"] == "B" and {"kind", "async"} <= e["details"].keys()},
          {row[0]: row[1:] for row in s.rows("SELECT call_id, kind, async FROM copies")}, "copies")
    equal(collections.Counter(e["details"]["message"] for e in events if e["phase"] == "B" and "message" in e["details"]),
          dict(s.rows("SELECT message, count(*) FROM ranges GROUP BY message")), "messages")

    # The csv format contains the rows of the `calls` view.
    read = list(csv.DictReader(io.StringIO(export(s, "csv").stdout)))
    equal([(int(r["call_id"]), int(r["pid"]), int(r["tid"]), r["layer"], r["name"], r["category"], int(r["depth"]), int(r["duration_ns"]),
            int(r["status"]), r["status_name"], r["bytes"]) for r in read],
          s.rows("SELECT call_id, pid, tid, layer, name, category, depth, duration_ns, status, ifnull(status_name, ''), "
                 "CAST(ifnull(bytes, '') AS TEXT) FROM calls ORDER BY call_id"), "csv")

    # The chrome format contains a slice for each call, flow arrows from runtime calls to the driver calls inside them, and counters of
    # allocated memory.
    s.run(CUDATRACE, "export", "--db", s.db, "--output", s.dir / "trace.json", preload=False)
    trace = json.loads((s.dir / "trace.json").read_text())["traceEvents"]
    kinds = collections.defaultdict(list)
    for event in trace:
        kinds[event["ph"]].append(event)
    equal(sorted(e["args"]["call_id"] for e in kinds["X"]), everything, "slices")
    equal([e["ts"] for e in kinds["X"]], sorted(e["ts"] for e in kinds["X"]), "the order of slices")
    for event in kinds["X"]:
        name, start_ns, duration_ns, status, size = rows[event["args"]["call_id"]]
        equal((round(event["ts"] * 1e3), round(event["dur"] * 1e3)), (start_ns - begin_ns, duration_ns), "when a slice is")
        equal((event["args"].get("status", 0), event["args"].get("bytes")), (status, size), "what a slice says")
    pid = s.value("SELECT pid FROM processes")
    equal({(e["name"], e.get("tid")): e["args"]["name"] for e in kinds["M"]},
          {("process_name", None): s.value("SELECT cmdline FROM processes") + f" ({pid}, exited)",
           **{("thread_name", tid): name for tid, name in s.rows("SELECT tid, name FROM threads")}}, "names")
    stacks, wanted = collections.defaultdict(list), set()
    for call_id, tid, layer, start_ns in s.rows("SELECT call_id, tid, layer, start_ns FROM calls WHERE layer <> 'nvtx' "
                                                "ORDER BY start_ns, depth"):
        stack = stacks[tid]
        while stack and stack[-1][0] < call_id:
            stack.pop()
        if layer == "driver" and stack and stack[-1][1] == "runtime" and start_ns > stack[-1][2]:
            wanted.add(call_id)
        stack.append((call_id, layer, start_ns))
    check(len(wanted) > 1000, "hardly an arrow was expected", len(wanted))
    for end in "sf":
        found = {e["id"] for e in kinds[end]}
        equal(sorted(found ^ wanted)[:5], [], f"of {len(wanted)} arrows {len(found - wanted)} too many, {len(wanted - found)} missing")
    held = [e["args"]["bytes"] for e in kinds["C"]]
    equal(max(held), s.value("SELECT max(bytes) FROM (SELECT sum(bytes) OVER (ORDER BY at) AS bytes FROM (SELECT allocated_ns AS at, "
                             "bytes FROM allocations WHERE kind = 'device' UNION ALL SELECT freed_ns, -bytes FROM allocations WHERE "
                             "kind = 'device' AND freed_ns IS NOT NULL))"), "the peak of memory")
    if can("jq", "what jq reads"):
        done = subprocess.run(["jq", "[.traceEvents[] | select(.ph == \"X\")] | length", s.dir / "trace.json"], capture_output=True, text=True)
        equal((done.returncode, done.stdout.strip()), (0, str(len(everything))), "what jq counts")
        done = subprocess.run(["jq", "-n", "[inputs | select(.phase == \"B\")] | length"], input=export(s, "jsonl").stdout,
                              capture_output=True, text=True)
        equal((done.returncode, done.stdout.strip()), (0, str(len(everything))), "what jq counts in lines")

    # Parts of the trace.
    middle = everything[len(everything) // 3], everything[len(everything) // 2]
    for options, condition in ((("--layers", "driver"), "layer = 'driver'"),
                               (("--layers", "driver,ioctl", "--calls", "cuMemcpy*,!*Async*"),
                                "layer = 'ioctl' OR (layer = 'driver' AND name GLOB 'cuMemcpy*' AND name NOT GLOB '*Async*')"),
                               (("--from", f"@{middle[0]}", "--to", f"@{middle[1]}"), f"call_id BETWEEN {middle[0]} AND {middle[1]}"),
                               (("--pid", pid), "1")):
        check_events(jsonl(s, *options), ids(s, condition))
        found = json.loads(export(s, "chrome", *options).stdout)["traceEvents"]
        equal(sorted(e["args"]["call_id"] for e in found if e["ph"] == "X"), ids(s, condition), options)

    done = export(s, "csv", "--from", "1h")
    equal((done.stdout.count("\n"), "export: no calls in this window: the trace lasts 1.496 seconds" in done.stderr), (1, True), "a window without calls")
    for form, *more in ("csv",), ("nsys", "--output", s.dir / "none.sqlite"):
        done = export(s, form, "--pid", pid + 1, *more, status=1)
        check(f"export: the trace has no process {pid + 1}" in done.stderr and done.stdout == "", "a process that is not there", done.stderr)
    check(not (s.dir / "none.sqlite").exists(), "a file of nothing")

# Export a trace that has several files, with calls that extend from one file to another, and a call that has not returned.
with Session() as s:
    nvtx_ids = set()
    s.start_daemon()
    with HungCall(s, "--calls", 10, stdout=-3) as longest:
        for number in (2, 3):
            s.run(WORKLOADS / "calls", "--calls", 2000)
            s.run(WORKLOADS / "hang", "--calls", 10, env={"SIMCUDA_LATENCY": "cuCtxSynchronize=150000000"})
            s.daemon.send_signal(signal.SIGHUP)
            wait_for("the next file", lambda: (s.dir / f"trace.{number}.db").exists())
        longest.release()
    with HungCall(s, "--calls", 10, stdout=-3) as stuck:
        s.flush()
        whole = sorted(int(row["call_id"]) for row in csv.DictReader(io.StringIO(
            s.run(CUDATRACE, "sql", "--db", s.db, "--format", "csv", "SELECT call_id FROM calls", preload=False).stdout)))
        check(len(whole) > 4000, "calls of all files", len(whole))
        check_events(jsonl(s), whole)
        found = json.loads(export(s, "chrome").stdout)["traceEvents"]
        equal(sorted(e["args"]["call_id"] for e in found if e["ph"] == "X"), whole, "slices of all files")
        equal([(e["name"], e["pid"], e["args"]) for e in found if e["ph"] == "B"], [("cuCtxSynchronize", stuck.pid, {"returned": False})],
              "calls that have not returned")
    s.flush()

    # A failed export leaves no file. The error message names the invalid format or time.
    for options, status, says in ((("--output", s.dir / "none" / "x"), 1, "cannot write"), (("--output", "/dev/full/x"), 1, "cannot write"),
                                  (("--from", "soon"), 2, "'soon' for --from"), (("--from", "5", "--to", "4"), 2, "ends before it begins"),
                                  (("--layers", "gpu"), 2, "'gpu' for --layers"), (("--calls", "cu Mem"), 2, "'cu Mem' for --calls"), (("--pid", "x"), 2, "'x' for --pid"),
                                  (("more",), 2, "unknown argument 'more'")):
        done = export(s, "jsonl", *options, status=status)
        check(says in done.stderr, options, done.stderr)
    equal(export(s, "xml", status=2).stderr.count("invalid value 'xml' for --format"), 1, "what is said of an unknown format")
    with open("/dev/full", "w") as full:
        done = s.run(CUDATRACE, "export", "--db", s.db, preload=False, status=1, stdout=full)
        check("cannot write standard output: No space left on device" in done.stderr, done.stderr)
    equal([name for name in os.listdir(s.dir) if name.startswith(".")], [], "temporary files")
