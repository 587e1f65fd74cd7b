"""Tests that importing the output of `export --format jsonl`, or lines written by other programs, gives a trace with the same calls. A line
or an event that cannot be stored is counted by reason, and all others are stored. The format of a file is detected from its first bytes. If
a file is refused, the import leaves no trace file."""
import gzip
import json
import subprocess
import zlib

from cudatrace_test import CUDATRACE, DEADLINE_S, HOOK, Session, WORKLOADS, check, equal

SAME = (
    "SELECT layer, name, category, pid, tid, depth, status, start_ns, call_id, bytes FROM calls ORDER BY call_id",
    "SELECT pid, layer, name, stored, min_ns, max_ns, failed FROM totals JOIN processes USING (process_id) WHERE stored ORDER BY 1, 2, 3",
    "SELECT pid, layer, name, from_ns, durations.calls FROM durations JOIN processes USING (process_id) ORDER BY 1, 2, 3, 4",
    "SELECT call_id, kernel, grid_x, grid_y, grid_z, block_x, block_y, block_z, shared_bytes, stream, stream_name, captured FROM launches "
    "ORDER BY call_id",
    "SELECT call_id, graph_exec, kernel_nodes, stream, stream_name, captured FROM graph_launches ORDER BY call_id",
    "SELECT call_id, kind, bytes, async, stream, stream_name, captured FROM copies ORDER BY call_id",
    "SELECT call_id, name, place, handle FROM objects JOIN calls USING (call_id) WHERE role = 'kernel' ORDER BY call_id",
    "SELECT call_id, kind, domain, message, category, depth, start_ns FROM ranges ORDER BY call_id",
)


def export(db, *options):
    return subprocess.run([CUDATRACE, "export", "--format", "jsonl", "--db", db, *options], capture_output=True, check=True,
                          timeout=DEADLINE_S).stdout


class Imported:
    """A new trace, imported from the given lines."""
    count = 0

    def __init__(self, s, *files, sentence="", sentences=1, status=None):
        Imported.count += 1
        self.s, self.db = s, s.dir / f"imported-{Imported.count}.db"
        paths = []
        for n, lines in enumerate(files):
            paths.append(s.dir / f"lines-{Imported.count}-{n}.jsonl")
            paths[-1].write_bytes(lines if isinstance(lines, bytes) else "".join(json.dumps(line) + "\n" for line in lines).encode())
        done = subprocess.run([CUDATRACE, "import", "--db", self.db, *paths], capture_output=True, text=True, timeout=DEADLINE_S)
        equal(done.returncode, (1 if sentence else 0) if status is None else status, f"status, saying {done.stderr}")
        self.stderr = done.stderr
        check(status is not None or sentence in done.stderr and done.stderr.count("\n") == (sentences if sentence else 0), sentence, "is not what it says:", done.stderr)

    def rows(self, query, *values):
        return self.s.rows(query, *values, db=self.db)


def event(phase, op_id, ts, name="cuInit", **members):
    return {"ts": ts, "op_id": op_id, "phase": phase, "name": name, **members}


def own(phase, op_id, ts, name="cuInit", **details):
    return event(phase, op_id, ts, name, pid=7, tid=8, layer="driver", details=details)


def check_sameness(s):
    whole = export(s.db)
    again = Imported(s, whole)
    for query in SAME:
        wanted = s.rows(query)
        check(wanted, "nothing to compare:", query)
        equal(again.rows(query), wanted, query)
    # An export has no lines for lost calls, so compare the sums of the two traces only for functions without lost calls.
    sums = "SELECT pid, layer, name, total_ns, bytes FROM totals JOIN processes USING (process_id) WHERE lost + skipped = 0"
    equal(set(s.rows(sums)) - set(again.rows(sums)), set(), "sums that differ")
    check(len(s.rows(sums)) > 20, "functions that lost nothing:", s.rows(sums))
    check(export(again.db) == whole, "what is exported again differs")
    equal(again.rows("SELECT DISTINCT state FROM processes"), [("exited",)], "states")

    # Split the lines into one file per process. The import merges the files by time.
    by_pid = {}
    for line in whole.splitlines(keepends=True):
        by_pid.setdefault(json.loads(line)["pid"], []).append(line)
    parts = Imported(s, *(b"".join(lines) for lines in by_pid.values()))
    equal(parts.rows(SAME[0]), s.rows(SAME[0]), "calls of one file a process")

    # Import the lines that remain after a filter: only returns of calls, or only a window.
    returns = Imported(s, b"".join(line for line in whole.splitlines(keepends=True) if b'"phase":"E"' in line))
    plain = "SELECT layer, name, pid, tid, status, start_ns, call_id FROM calls ORDER BY call_id"
    equal(returns.rows(plain), s.rows(plain), "calls of which the returns are there")
    window = export(s.db, "--from", str(json.loads(whole.splitlines()[whole.count(b"\n") // 2])["ts"]))
    check(0 < len(window) < len(whole), "a window of", len(window), "bytes")
    check(Imported(s, window).rows(plain) == s.rows(plain)[-window.count(b"\n") // 2:], "the calls of a window differ")

    # Truncate the file in the middle of a line. The import must store the calls before the truncated line.
    end = whole.index(b"\n", len(whole) // 2)
    cut = Imported(s, whole[:end - 1], sentence="1 line dropped: the line is not JSON, or is truncated: ")
    calls = cut.rows(SAME[0])
    equal(calls, s.rows(SAME[0])[:len(calls)], "what was before the cut")
    check(len(calls) > 100, "calls before the cut:", len(calls))


def check_other_programs(s):
    some = Imported(s, [event("B", 0, 0.000001, details={"flags": 0}), event("E", 0, 0.000050, details={"status": 3}),
                        event("B", 5, 0.0001, "cudaMalloc"), event("B", 6, 0.0002, "cuMemAlloc_v2", tid=9),
                        event("E", 5, 0.0005, "cudaMalloc", details=None)])
    equal(some.rows("SELECT pid, tid, layer, name, status, start_ns - 1000000000, duration_ns FROM calls ORDER BY call_id"),
          [(1, 1, "driver", "cuInit", 3, 1000, 49000), (1, 1, "runtime", "cudaMalloc", 0, 100000, 400000)], "calls")
    equal(some.rows("SELECT tid, name, start_ns - 1000000000 FROM open_calls"), [(9, "cuMemAlloc_v2", 200000)], "open calls")
    equal(some.rows("SELECT pid, state FROM processes"), [(1, "running")], "a process in a call")

    # Each launch has the name that its stream had at the time of the launch.
    launch = {"grid_x": 1, "grid_y": 2, "grid_z": 3, "block_x": 4, "block_y": 5, "block_z": 6, "kernel": "k", "stream": 5}
    lines, names = [], ["a", "b", None, "a"]
    for n, name in enumerate(names):
        lines += [own("B", 5000 + 1000 * n, n * 1e-6, "cuLaunchKernel", **launch, **({"stream_name": name} if name else {})),
                  own("E", 5000 + 1000 * n, n * 1e-6 + 1e-9, "cuLaunchKernel", duration_ns=1, status=0)]
    equal(Imported(s, lines).rows("SELECT call_id, kernel, stream_name FROM launches ORDER BY call_id"),
          [(5000 + 1000 * n, "k", name) for n, name in enumerate(names)], "launches")

    # Kernel names can be very long, as the demangled names of CUTLASS are.
    long, longer = "k" * 20000, "k" * 100000
    lines = []
    for n, kernel in enumerate((long, longer)):
        lines += [own("B", 5000 + n, 0, "cuLaunchKernel", **{**launch, "kernel": kernel}),
                  own("E", 5000 + n, 1e-9, "cuLaunchKernel", duration_ns=1, status=0)]
    equal(Imported(s, lines).rows("SELECT kernel FROM launches ORDER BY call_id"), [(long,), (longer[:64999],)], "names")


def check_bad_lines(s):
    good = [own("B", 1000, 0), own("E", 1000, 1e-7, duration_ns=100, status=0)]
    last = own("E", 2000, 1e-6, duration_ns=10)

    def around(bad):
        lines = [line if isinstance(line, bytes) else json.dumps(line).encode() + b"\n" for line in (*good, bad, last)]
        return b"".join(lines)

    numbers = "SELECT call_id, duration_ns FROM calls ORDER BY call_id"
    for bad, sentence in (
            (b"[1]\n", "expected an object with ts, op_id, phase and name"),
            (b'"text"\n', "expected an object"),
            (b"{\n", "the line is not JSON, or is truncated: "),
            (b"\0\n", "the line is not JSON, or is truncated: "),
            (b"\xff\n", "the line is not JSON, or is truncated: "),
            (b"[" * 200000 + b"\n", "the line is not JSON, or is truncated: "),
            (b'{"name":"' + b"x" * 300000 + b'"}\n', "ts is missing: expected a number of seconds"),
            (own("X", 1, 0), 'phase is "X": expected "B" or "E"'),
            ({**own("B", 1, 0), "op_id": "1x"}, 'op_id is "1x": expected an integer'),
            ({**own("B", 1, 0), "name": ""}, 'name is "": expected the name of a function'),
            (own("B", 1, -1), "ts is -1: expected seconds since"),
            (own("B", 1, 1e300), "ts is 1.0000000000000001e300: expected seconds since"),
            (own("B", 1, float("nan")), "ts is null: expected a number of seconds"),
            ({**own("B", 1, 0), "pid": [1]}, "pid is [1]: expected the number or the name of a process"),
            ({**own("B", 1, 0), "tid": 1.5}, "tid is 1.5: expected the number or the name of a thread"),
            ({**own("B", 1, 0), "instance": 0}, "instance is 0: expected a number from 1"),
            (own("E", 1, 0, status=0), "the call with op_id 1 ends, but did not begin"),
            (own("E", 1, 0, duration_ns=-1), "the call with op_id 1 ends, but did not begin"),
            (own("E", -5, 0, duration_ns=0), "op_id is -5 and duration_ns is 0: expected the time"),
            (own("E", 5, 0, duration_ns=6), "op_id is 5 and duration_ns is 6: expected the time")):
        equal(Imported(s, around(bad), sentence=f"1 line dropped: {sentence}").rows(numbers), [(1000, 100), (2000, 10)], f"calls around {bad!r:.60}")
        check("(first: line 3)\n" in Imported(s, around(bad), sentence="first").stderr, "the line of", bad)
    several = Imported(s, around(b"[1]\n" * 3) + around(own("X", 1, 0)).splitlines(keepends=True)[2], sentence="3 lines dropped: ", sentences=2)
    check('1 line dropped: phase is "X": expected "B" or "E" (first: line 7)' in several.stderr, "the second reason", several.stderr)

    # What JSON does not permit costs the value alone: NaN, too large numbers, invalid characters, values nested deeply.
    odd = b'{"ts":"5e-7","op_id":"1500","phase":"E","pid":"7","tid":8,"name":"cuInit","layer":"driver","details":{"duration_ns":"20",%s}}\n'
    for value in (b'"x":NaN', b'"x":-Infinity', b'"x":1e999', b'"x":99999999999999999999999', b'"x":"\xe9"', b'"x":"a\\u0000\\ud800\x01\\x"',
                  b'"x":' + b'{"a":[' * 3000 + b"1" + b"]}" * 3000, b'"x":"' + b"y" * 500000 + b'"'):
        equal(Imported(s, around(odd % value)).rows(numbers), [(1000, 100), (1500, 20), (2000, 10)], f"calls around {value!r:.60}")
    named = Imported(s, [own("E", 1000 + n, 0, name, duration_ns=1) for n, name in enumerate(("a" * 500000, "é" * 20000, "caf\udce9"))])
    names = [name for (name,) in named.rows("SELECT name FROM calls ORDER BY call_id")]
    check([name[:1] for name in names] == ["a", "é", "c"] and names[1].strip("é") == "", "names", [name[-9:] for name in names])

    before = [event("B", 1, 2.0), event("E", 1, 1.0), event("B", 2, 3.0)]
    equal(Imported(s, before, sentence="the call with op_id 1 returns 1000000000 ns before it began (first: line 2)").rows("SELECT name FROM calls"),
          [], "calls")
    many = Imported(s, [event("B", n, 0) for n in range(16400)], sentence="16 lines dropped: thread 1 of process 1 begins more than 16384 calls")
    equal(many.rows("SELECT count(*) > 0 FROM open_calls"), [(1,)], "open calls")


def check_identities(s):
    """Imports processes and threads that are named by a text or by a large number, and processes with the same PID."""
    ids = [(7, 8), ("7", "8"), ("rank 1", "stream 7"), ("rank 2", "stream 7"), (1 << 40, -1), (7, 8 + (1 << 32))]
    lines = [{**own("E", 1000 + 10 * n, n * 1e-8, duration_ns=1), "pid": pid, "tid": tid} for n, (pid, tid) in enumerate(ids)]
    lines += [{**own("E", 2000, 1e-6, duration_ns=1), "instance": 2}]
    rows = Imported(s, lines).rows("SELECT pid, tid, nullif(thread.name, ''), nullif(cmdline, ''), count(*) FROM call JOIN site USING (site_id) JOIN thread USING (thread_id) "
                                   "JOIN processes USING (process_id) GROUP BY thread_id ORDER BY min(end_ns)")
    equal([(name, command, calls) for _, _, name, command, calls in rows],
          [(None, None, 2), ("stream 7", "rank 1", 1), ("stream 7", "rank 2", 1), ("-1", "1099511627776", 1), ("4294967304", None, 1), (None, None, 1)],
          "threads")
    equal([pid for pid, *_ in rows if pid < 1 << 22], [7, 7, 7], "PIDs that are numbers")
    equal(len({pid for pid, *_ in rows}), 4, f"PIDs of {rows}")
    equal(len({tid for _, tid, *_ in rows if tid >= 1 << 30}), 3, f"thread IDs of {rows}")

    # Processes with the same PID stay apart in the export, too. Their kernels, streams and threads are not mixed up.
    lines = []
    for n, instance in enumerate((1, 2, 1, 2, 3)):
        launch = {"category": "launch", "grid_x": 1, "kernel": f"k{instance}", "stream": 5, "stream_name": f"s{instance}"}
        member = {"instance": instance} if instance > 1 else {}
        lines += [{**own("B", 1000 + 10 * n, n * 1e-8, "cuLaunchKernel", **launch), **member},
                  {**own("E", 1000 + 10 * n, n * 1e-8 + 1e-9, "cuLaunchKernel", duration_ns=1, status=0), **member}]
    query = "SELECT calls.process_id, calls.pid, kernel, stream_name, call_id FROM launches JOIN calls USING (call_id) ORDER BY call_id"
    apart = Imported(s, lines)
    equal([(row[0] - 1, *row[1:4]) for row in apart.rows(query)], [(n, 7, f"k{n + 1}", f"s{n + 1}") for n in (0, 1, 0, 1, 2)], "launches")
    again = Imported(s, export(apart.db))
    equal(again.rows(query), apart.rows(query), "launches of an export")
    equal(export(again.db), export(apart.db), "lines of an export")


def check_names(s):
    # Details that another program does not write follow from the names of the functions.
    calls = (("cuInit", {"flags": 0}), ("cuMemAlloc", {"size": 4000}), ("cuMemcpyHtoD", {"size": 4000}), ("cuMemcpyDtoHAsync_v2_ptsz", {"size": 8}),
             ("cuMemsetD8Async", {"size": 5}), ("cuLaunchKernel", {"grid": [31, 30, 1], "block": [32, 16, 2]}), ("cuLaunchHostFunc", {}), ("cuGraphLaunch", {}),
             ("cudaMemcpy", {"size": 4000}), ("cuCtxSynchronize", {}), ("cuUnknown", {"size": 4000}))
    bare = Imported(s, [event(phase, number, number + at, name, **({"details": details} if phase == "B" and details else {}))
                        for number, (name, details) in enumerate(calls) for phase, at in (("B", 0.1), ("E", 0.2))])
    equal(bare.rows("SELECT name, layer, category, bytes FROM calls ORDER BY call_id"),
          [("cuInit", "driver", "init", None), ("cuMemAlloc", "driver", "memory", 4000), ("cuMemcpyHtoD", "driver", "copy", 4000),
           ("cuMemcpyDtoHAsync_v2_ptsz", "driver", "copy", 8), ("cuMemsetD8Async", "driver", "set", 5), ("cuLaunchKernel", "driver", "launch", None),
           ("cuLaunchHostFunc", "driver", "launch", None), ("cuGraphLaunch", "driver", "launch", None), ("cudaMemcpy", "runtime", "copy", 4000),
           ("cuCtxSynchronize", "driver", "sync", None), ("cuUnknown", "driver", "", None)], "calls")
    equal(bare.rows("SELECT kind, async, bytes FROM copies ORDER BY call_id"), [("HtoD", 0, 4000), ("DtoH", 1, 8)], "copies")
    equal(bare.rows("SELECT async, bytes FROM memsets"), [(1, 5)], "memsets")
    equal(bare.rows("SELECT grid_x, grid_y, grid_z, block_x, block_y, block_z FROM launches"), [(31, 30, 1, 32, 16, 2)], "launches")
    equal(bare.rows("SELECT graph_exec FROM graph_launches"), [(0,)], "launches of graphs")
    # Lines contain no time of day, so none is printed.
    done = s.run(CUDATRACE, "tail", "--db", bare.db, "-n", 3, preload=False)
    equal([line.split()[0] for line in done.stdout.splitlines()], ["0.000000", "1.000000", "2.000000"], "times of lines")
    rows = json.loads(s.run(CUDATRACE, "report", "--db", bare.db, "--format", "json", "summary", "runs", preload=False).stdout)
    found = {row["about"]: row["found"] for row in rows["summary"]}
    equal((found["command"], found["time"], found["launches"].partition(",")[0], found["memory"]), ("11 calls: command unknown", "10.200 s", "1 kernel and 1 graph", "0.004 MB requested"),
          "the summary")
    equal(rows["runs"][0].get("began"), None, "the beginning of the run")


def check_details(s):
    # Details that are out of range are omitted. Strings are truncated so that they fit into a record.
    odd = Imported(s, [own("B", 9000, 0, "cuLaunchKernel", grid_x=-1, grid_y=1 << 40, depth=99, bytes="many", kernel=7, stream=-(1 << 63)),
                       own("E", 9000, 0, "cuLaunchKernel", duration_ns=1, status="no"),
                       {**own("B", 9500, 0, "nvtxMark", message="m" * 20000, domain="d", depth=-5), "layer": "nvtx"},
                       {**own("E", 9500, 0, "nvtxMark", duration_ns=0), "layer": "nvtx"},
                       own("B", 9900, 0, "cuMemAlloc_v2", bytes=-3), own("E", 9900, 0, "cuMemAlloc_v2", duration_ns=1, status=(1 << 32) + 2)])
    equal(odd.rows("SELECT depth, grid_x, grid_y, grid_z, kernel FROM launches JOIN calls USING (call_id)"), [(15, 0, 0, 0, None)], "a launch")
    (message,), = odd.rows("SELECT message FROM ranges")
    check(1000 < len(message) < 9000 and set(message) == {"m"}, "a message of", len(message))
    equal(odd.rows("SELECT bytes, status FROM calls WHERE call_id = 9900"), [(None, 0)], "bytes and status")


PYTORCH = {
    "schemaVersion": 1, "deviceProperties": [{"id": 0, "name": 'H100 "x" ]}'}],
    "traceEvents": [
        {"ph": "X", "cat": "cpu_op", "name": "aten::mm", "pid": 7, "tid": 7, "ts": 100.5, "dur": 50.25, "args": {"External id": 1}},
        {"ph": "X", "cat": "kernel", "name": "gemm", "pid": 0, "tid": 7, "ts": 130, "dur": 5,
         "args": {"correlation": 9, "grid": [4, 2, 1], "block": [128, 1, 1], "shared memory": 64, "stream": 7}},
        {"ph": "X", "cat": "cuda_runtime", "name": "cudaLaunchKernel", "pid": 7, "tid": 7, "ts": 110.125, "dur": 3.5,
         "args": {"cbid": 211, "correlation": 9}},
        {"ph": "X", "cat": "cuda_driver", "name": "cuLaunchKernelEx", "pid": 7, "tid": 7, "ts": 111, "dur": 1, "args": {}},
        {"ph": "X", "cat": "Trace", "name": "PyTorch Profiler (0)", "pid": "Spans", "tid": "PyTorch Profiler", "ts": 1, "dur": 500},
        {"ph": "M", "name": "process_name", "pid": 7, "tid": 0, "ts": 1, "args": {"name": "python"}},
        {"ph": "i", "s": "g", "name": "Record Window End", "pid": "", "tid": "", "ts": 900}, {"ph": "s", "id": 9, "pid": 7, "tid": 7, "ts": 110, "cat": "ac2g"},
        {"ph": "X", "cat": "gpu_memcpy", "name": "Memcpy HtoD", "pid": 0, "tid": "stream 7", "ts": 131, "dur": 2, "args": {"bytes": 64}},
        {"ph": "X", "cat": "cuda_sync", "name": "Stream Sync", "pid": 0, "tid": 7, "ts": 140, "dur": 2, "args": {"wait_on_stream": -1}},
        {"ph": "i", "s": "t", "cat": "cpu_instant_event", "name": "[memory]", "pid": 7, "tid": 7, "ts": 120, "args": {"Bytes": float("nan")}},
        {"ph": "B", "name": "step", "cat": "user_annotation", "pid": 7, "tid": 8, "ts": 10}, {"ph": "E", "pid": 7, "tid": 8, "ts": 20},
        {"ph": "i", "s": "t", "name": "mark", "cat": "m", "pid": 7, "tid": 8, "ts": 15},
        {"ph": "B", "name": "never ended", "cat": "user_annotation", "pid": 7, "tid": 8, "ts": 30}],
    "traceName": "x.json", "baseTimeNanoseconds": 1726000000000000000}


def check_pytorch(s):
    """Imports calls and ranges recorded by PyTorch's profiler, which are not in the order of time. Checks that a launch gets its kernel
    from the corresponding GPU event, and that times are wall-clock times."""
    trace = Imported(s, json.dumps(PYTORCH).encode())
    base = PYTORCH["baseTimeNanoseconds"]
    equal(trace.rows("SELECT layer, name, pid, tid, depth, start_ns - ?, duration_ns FROM calls WHERE layer <> 'nvtx' ORDER BY start_ns", base),
          [("runtime", "cudaLaunchKernel", 7, 7, 0, 110125, 3500), ("driver", "cuLaunchKernelEx", 7, 7, 1, 111000, 1000)], "calls")
    equal(trace.rows("SELECT kernel, grid_x, grid_y, block_x, shared_bytes, stream FROM launches"), [("gemm", 4, 2, 128, 64, 7)], "launches")
    equal(trace.rows("SELECT kind, domain, message, start_ns - ?, duration_ns FROM ranges ORDER BY start_ns", base),
          [("push", "user_annotation", "step", 10000, 10000), ("mark", "m", "mark", 15000, 0), ("push", "cpu_op", "aten::mm", 100500, 50250)],
          "ranges")
    equal(trace.rows("SELECT tid, start_ns - ? FROM open_calls", base), [(8, 30000)], "open ranges")


def check_bad_events(s):
    """Imports events with a damaged or incomplete one among them. The others are stored. A damaged value that is not needed costs no event."""
    def events(*members):
        call = {"ph": "X", "cat": "cuda_driver", "name": "cuInit", "pid": 1, "tid": 1, "dur": 1, "args": {}}
        texts = [member if isinstance(member, bytes) else json.dumps({**call, **member}).encode() for member in ({"ts": 10}, *members, {"ts": 90})]
        return b'{"traceEvents":[' + b",\n".join(texts) + b"]}"

    starts = "SELECT start_ns - 1000000000 FROM calls WHERE layer <> 'nvtx' ORDER BY start_ns"
    raw = b'{"ph":"X","cat":"cuda_driver","name":"%s","pid":1,"tid":"1","ts":"50","dur":"1","args":{%s}}'
    for content in (raw % (b"cu\\u0000Init", b""), raw % (b"\xff", b""), raw % (b"a\\ud800b", b'"x":NaN'), raw % (b"cuInit", b'"x":' + b"[" * 3000 + b"]" * 3000),
                    raw % (b"x" * 500000, b""), raw % (b"cuInit", b'"x":"' + b"y" * 500000 + b'"'), raw % (b"cuInit", b'"x":"' + b"\x00" + b'"')):
        equal(Imported(s, events(content)).rows(starts), [(0,), (40000,), (80000,)], f"calls around {content!r:.120}")
    for bad, sentence in (
            ({"ts": "soon"}, 'ts is "soon": expected'), ({"ts": "0e99999999999999999999"}, "ts is"), ({"ts": "0x10"}, "ts is"), ({"ts": -5}, "ts is -5: expected"), ({}, "ts is missing: expected"),
            ({"ts": 50, "dur": -1}, "dur is -1: expected"), ({"ts": 50, "dur": "x"}, 'dur is "x": expected'), ({"ts": 50, "pid": {}}, "pid is {}: expected"),
            ({"ts": 50, "ph": "Z"}, 'ph is "Z": expected'), ({"ts": 50, "name": None}, "name is null: expected"), (b'{"ts": , }', "expected an object: "),
            (b"7", "expected an object"), ({"ts": 50, "ph": "E"}, "an event ends that did not begin"), ({"ts": 50, "ph": "e", "id": 1}, "an event ends that")):
        equal(Imported(s, events(bad), sentence=f"1 event dropped: {sentence}").rows(starts), [(0,), (80000,)], f"calls around {bad}")

    # Times since 1970 keep each nanosecond, however the number is written.
    epoch = ["1732900000123456.789", '"1732900000123457.001"', "1.7329000001234571234e15", "17329000001234572345e-4"]
    exact = b'[%s]' % b",".join(b'{"ph":"X","cat":"cuda_driver","name":"cuInit","args":{"ts":7,"x":[{"ts":1}]},"ts":%s,"dur":0.001}' % ts.encode() for ts in epoch)
    ends = [1732900000123456790, 1732900000123457002, 1732900000123457124, 1732900000123457236]
    equal(Imported(s, exact).rows("SELECT call_id, duration_ns FROM calls ORDER BY call_id"), [(end, 1) for end in ends], "times since 1970")
    lines = b'{"ts":1732900000.123456789,"op_id":1,"phase":"B","name":"cuInit"}\n{"ts":17329000001234567.92e-7,"op_id":1,"phase":"E","name":"cuInit"}\n'
    equal(Imported(s, lines).rows("SELECT start_ns - 1000000000, duration_ns FROM calls"), [(1732900000123456789, 3)], "seconds since 1970")

    # An inner event that is dropped or left out must not end the event around it. Asynchronous events may nest, and may change the thread.
    pairs = [{"ph": "B", "ts": 20, "cat": "a", "name": "outer"}, {"ph": "B", "ts": "?"}, {"ph": "E", "ts": 40}, {"ph": "B", "ts": 41, "cat": "overhead"},
             {"ph": "E", "ts": 42, "cat": ""}, {"ph": "E", "ts": 60}, {"ph": "b", "id": 5, "cat": "s", "name": "one", "ts": 21},
             {"ph": "b", "id": 5, "cat": "s", "name": "two", "ts": 22}, {"ph": "e", "id": 5, "cat": "s", "ts": 23, "tid": 2},
             {"ph": "e", "id": 5, "cat": "s", "ts": 24}, {"ph": "i", "s": "g", "name": "Record Window End", "pid": "", "tid": "", "ts": 99}]
    nested = Imported(s, events(*pairs), sentence='1 event dropped: ts is "?": expected')
    equal(nested.rows("SELECT message, start_ns - 1000000000, duration_ns FROM ranges ORDER BY start_ns"),
          [("outer", 10000, 40000), ("one", 11000, 3000), ("two", 12000, 1000)], "ranges")
    equal(nested.rows("SELECT count(*) FROM open_calls"), [(0,)], "open calls")
    threads = Imported(s, events(*({"ts": 20 + 10 * n, "dur": 15, "tid": tid} for n, tid in enumerate((1, 1 + (1 << 32), "stream 7", "stream 8")))))
    equal(threads.rows("SELECT count(DISTINCT tid), max(depth) FROM calls"), [(4, 0)], "threads")


def check_forms(s):
    def refused(*files, sentence):
        import_of = Imported(s, *files, sentence=sentence)
        equal([path.name for path in s.dir.iterdir() if path.name.startswith(import_of.db.name)], [], "files that a refused import left")

    lines = export(s.db)
    wanted = s.rows(SAME[0])
    recording = s.dir / "recording"
    for content in (b"\xef\xbb\xbf" + lines, b"\n \n" + lines, gzip.compress(lines), gzip.compress(b"\xef\xbb\xbf" + lines)):
        check(Imported(s, content).rows(SAME[0]) == wanted, "calls of a file that begins with", content[:4])
    again = Imported(s, gzip.compress(recording.read_bytes()))
    check(again.rows(SAME[0]) == wanted, "calls of a recording that gzip has packed")

    chrome = subprocess.run([CUDATRACE, "export", "--db", s.db], capture_output=True, check=True, timeout=DEADLINE_S).stdout
    plain = "SELECT layer, name, pid, tid, status, start_ns, call_id, bytes FROM calls WHERE layer <> 'nvtx' ORDER BY call_id"
    for content in (chrome, b"\xef\xbb\xbf" + json.dumps(json.loads(chrome), indent=1).encode(), gzip.compress(chrome)):
        again_by_chrome = Imported(s, content)
        for query in (plain, *SAME[3:6]):
            equal(again_by_chrome.rows(query), s.rows(query), f"of Chrome's form, {query}")
        ranges = "SELECT kind, domain, message, start_ns FROM ranges ORDER BY start_ns, message"
        equal(again_by_chrome.rows(ranges), s.rows(ranges), "ranges of Chrome's form")
    equal(len(Imported(s, b"[" + chrome.split(b"[", 1)[1].rpartition(b"]")[0]).rows(plain)), len(s.rows(plain)),
          "calls of an array without an end")
    cut = Imported(s, chrome[:len(chrome) // 2], sentence=f"is truncated or is not JSON at byte {len(chrome) // 2}; all calls before that point are stored")
    check(0 < len(cut.rows(plain)) < len(s.rows(plain)), "calls of a document that is cut short")
    for content in (b"[]", b'{"traceEvents":[]}', b'[{"ph":"M","name":"process_name","pid":1,"args":{"name":"x"}}]'):
        refused(content, sentence="contains no events of threads that can be stored")
    table = subprocess.run([CUDATRACE, "export", "--db", s.db, "--format", "csv"], capture_output=True, check=True, timeout=DEADLINE_S).stdout
    refused(table, sentence="is a table of `cudatrace export --format csv`")
    for content, sentence in (
            (again.db.read_bytes(), "is an SQLite database"), ("{}".encode("utf-16"), "is text in UTF-16"), (b"\xfd7zXZ\0", "is compressed by xz"),
            (b"", "is empty"), (b"Dear reader", "has an unknown format (first bytes: 44 65 61 72)"), (gzip.compress(b""), "is empty"),
            (gzip.compress(lines)[:20], "is damaged or truncated: its decompression stops after 0 bytes"), (recording.read_bytes()[:500], "; no calls are stored"),
            (b"{}\n", "1 line dropped: ts is missing: expected a number of seconds (first: line 1); no calls are stored"),
            (b'{"ts":1,"op_id":1,"phase":"E","name":"cuInit"}\n', "contains nothing that can be stored: 1 line dropped: the call with op_id 1 ends, but"),
            (lines[:20], "contains nothing that can be stored: 1 line dropped: the line is not JSON, or is truncated: ")):
        refused(content, sentence=sentence)

    # Everything that a truncated gzip file contains is stored.
    for content, query in ((lines, SAME[0]), (chrome, plain), (recording.read_bytes(), SAME[0])):
        packed = gzip.compress(content)
        whole = Imported(s, packed[:-8], sentence=f"stops after {len(content)} bytes; all calls before that point are stored")
        check(whole.rows(query) == s.rows(query), "calls of a file without the checksum of gzip")
        if content not in (lines, chrome):
            continue  # half of a recording may be without a whole batch
        part = zlib.decompressobj(wbits=31).decompress(packed[:len(packed) // 2])
        plain_part, packed_part = (Imported(s, text, sentence="", status=1) for text in (part, packed[:len(packed) // 2]))
        check(0 < len(packed_part.rows(query)) < len(s.rows(query)), "calls of a truncated gzip file")
        check(packed_part.rows(query) == plain_part.rows(query), "calls of the file truncated at the same place")
        check(f"stops after {len(part)} bytes" in packed_part.stderr, packed_part.stderr)

    # The import refuses lines that it has already read, whether from another file, in any format, or from the same file.
    refused(lines, lines, sentence="begins with the same calls as")
    refused(lines, gzip.compress(lines), sentence="begins with the same calls as")
    twice = Imported(s, lines + lines, sentence="returned in an earlier line already: the file contains its lines twice")
    check(twice.rows(SAME[0]) == wanted, "calls of lines that are there twice")


with Session() as s:
    s.start_daemon("--record", str(s.dir / "recording"))
    nvtx = {"NVTX_INJECTION64_PATH": HOOK}
    for command in (["demo"], ["calls", "--calls", "3000", "--mix", "training"], ["threads"], ["ranges"], ["named"], ["graph"], ["forks"]):
        s.run(WORKLOADS / command[0], *command[1:], stdout=subprocess.DEVNULL, status=None, env=nvtx)
    s.flush()
    s.check_identity(lost=None, killed=None)
    check_sameness(s)
    check_other_programs(s)
    check_bad_lines(s)
    check_names(s)
    check_details(s)
    check_identities(s)
    s.stop_daemon()
    check_forms(s)
    check_pytorch(s)
    check_bad_events(s)
