"""Tests `cudatrace export` to the formats perfetto and nsys. The test reads the perfetto file with Protobuf's own decoder, and queries the
nsys file as Nsight Systems does. The results must agree with the trace. The test also exports marks, and started ranges that overlap other
ranges without being nested, to every format."""
import collections
import contextlib
import json
import lzma
import os
import pathlib
import re
import shutil
import sqlite3
import subprocess

from cudatrace_test import CUDATRACE, HOOK, TIER, HungCall, Session, WORKLOADS, check, equal
from exact_trace import BASE_US, import_calls
from gpus import GIB, await_samples, sampling
from perfetto_file import arrows, read_perfetto, slices

FIXTURE = pathlib.Path(__file__).resolve().parents[1] / "fixtures" / "h200-training.db.xz"


def export(s, form, *options):
    path = s.dir / f"out.{form}"
    s.run(CUDATRACE, "export", "--db", s.db, "--format", form, "--output", path, *options, preload=False)
    return path


# ---- perfetto ----

def check_perfetto(s, condition="1", options=()):
    clocks, tracks, events = read_perfetto(export(s, "perfetto", *options))
    begin_ns = s.value("SELECT min(started_ns) FROM processes")
    equal((clocks[3], clocks[6]), (begin_ns, begin_ns), "the monotonic time and the boot time of the snapshot")
    equal(clocks[1] - clocks[3], s.value("SELECT ifnull(max(CAST(value AS INTEGER)), 0) FROM meta WHERE key = 'realtime_offset_ns'"),
          "the time of day")
    whole, still_open = slices(events)
    marks = [(e, e) for e in events if e["type"] == "TYPE_INSTANT"]
    wanted = {row[0]: row[1:] for row in s.rows(
        f"SELECT call_id, pid, calls.tid, calls.start_ns, layer, calls.category, status, bytes, coalesce(ranges.message, calls.name), "
        f"ranges.kind FROM calls LEFT JOIN ranges USING (call_id) WHERE {condition}")}
    equal(sorted(b["said"]["call_id"] for b, _ in whole + marks), sorted(wanted), "calls")
    across = []
    for begin, end in whole + marks:
        pid, tid, start_ns, layer, category, status, size, name, kind = wanted[begin["said"]["call_id"]]
        equal((begin["at"], end["at"]), (start_ns, begin["said"]["call_id"]), "when a call is")
        equal((begin["name"], begin["categories"], begin["said"].get("status", 0), begin["said"].get("bytes")),
              (name, [layer, category], status, size), "what a call says")
        track = tracks[begin["track"]]
        equal(end["track"], begin["track"], "where a call ends")
        if track["parent_uuid"]:
            across.append((pid, tid, kind, start_ns, begin["said"]["call_id"]))
            equal(tracks[track["parent_uuid"][0]]["process"][0]["pid"], [str(pid)], "whose range it is")
        else:
            equal((track["thread"][0]["pid"], track["thread"][0]["tid"]), ([str(pid)], [str(tid)]), "whose call it is")
    # Two kinds of slices have a separate track: started ranges, and slices that begin within another range and end after it.
    for pid, tid, kind, start_ns, end_ns in across:
        check(kind == "start" or any(p == pid and t == tid and k != "start" and b <= start_ns < e < end_ns
                                     for (p, t, b, *_, k), e in ((row, key) for key, row in wanted.items())), "lies across nothing", start_ns)
    equal(sum(kind == "start" for _, _, kind, _, _ in across), sum(row[-1] == "start" for row in wanted.values()), "started ranges")
    return tracks, events, whole, still_open


# ---- Nsight Systems: typical queries, written for this test ----

SUMMARY = """
    SELECT strings.value, count(*), sum(api.end - api.start), min(api.end - api.start), max(api.end - api.start)
      FROM CUPTI_ACTIVITY_KIND_RUNTIME AS api
      LEFT JOIN StringIds AS strings ON strings.id = api.nameId
     GROUP BY 1 ORDER BY 1"""
CALLS = """
    SELECT api.start, api.end - api.start, strings.value, api.returnValue, (api.globalTid >> 24) & 0xFFFFFF,
           api.globalTid & 0xFFFFFF, api.eventClass, thread_strings.value
      FROM CUPTI_ACTIVITY_KIND_RUNTIME AS api
      LEFT JOIN StringIds AS strings ON strings.id = api.nameId
      LEFT JOIN ThreadNames ON ThreadNames.globalTid = api.globalTid
      LEFT JOIN StringIds AS thread_strings ON thread_strings.id = ThreadNames.nameId
     ORDER BY api.start, api.end DESC"""
RANGES = """
    SELECT coalesce(domain.text || ':', '') || coalesce(strings.value, range.text, ''), range.eventType, range.start, range.end
      FROM NVTX_EVENTS AS range
      LEFT JOIN NVTX_EVENTS AS domain ON domain.eventType = 75 AND domain.domainId = range.domainId
                                     AND (range.globalTid & 0xFFFFFF000000) = (domain.globalTid & 0xFFFFFF000000)
      LEFT JOIN StringIds AS strings ON strings.id = range.textId
     WHERE range.eventType IN (34, 59, 60)
     ORDER BY range.start, range.end DESC, 1"""


def outermost(s):
    """Returns the runtime and driver calls that are not inside another runtime or driver call."""
    end, found = collections.Counter(), []  # the latest end of each thread
    for row in s.rows("SELECT start_ns, call_id, calls.name, status, pid, tid, layer, threads.name, process_id FROM calls "
                      "LEFT JOIN (SELECT process_id, tid, max(name) AS name FROM threads GROUP BY process_id, tid) AS threads "
                      "USING (process_id, tid) WHERE layer IN ('driver', 'runtime') ORDER BY start_ns, depth"):
        thread = row[8], row[5]
        if row[1] > end[thread]:
            found.append(row[:8])
            end[thread] = row[1]
    return found


def check_nsys(s):
    path = export(s, "nsys")
    asked = sqlite3.connect(f"file:{path}?mode=ro", uri=True)
    equal(asked.execute("PRAGMA integrity_check").fetchone()[0], "ok", "integrity_check")
    equal(asked.execute("PRAGMA foreign_key_check").fetchall(), [], "foreign_key_check")
    begin_ns = s.value("SELECT min(started_ns) FROM processes")
    calls = outermost(s)
    equal(asked.execute(CALLS).fetchall(),
          [(start - begin_ns, end - start, name, status, pid, tid, {"runtime": 0, "driver": 1}[layer], thread)
           for start, end, name, status, pid, tid, layer, thread in sorted(calls, key=lambda c: (c[0], -c[1]))], "calls")
    sums = collections.defaultdict(list)
    for start, end, name, *_ in calls:
        sums[name].append(end - start)
    equal(asked.execute(SUMMARY).fetchall(),
          [(name, len(spans), sum(spans), min(spans), max(spans)) for name, spans in sorted(sums.items())], "sums")
    equal(len({row[0] for row in asked.execute("SELECT correlationId FROM CUPTI_ACTIVITY_KIND_RUNTIME")}), len(calls), "correlations")
    equal(asked.execute(RANGES).fetchall(),
          s.rows(f"SELECT ifnull(domain || ':', '') || ifnull(message, ''), CASE kind WHEN 'push' THEN 59 WHEN 'start' THEN 60 ELSE 34 "
                 f"END, start_ns - {begin_ns}, iif(kind = 'mark', NULL, end_ns - {begin_ns}) FROM ranges "
                 f"ORDER BY 3, 4 DESC, 1"), "ranges")
    equal(asked.execute("SELECT strings.value, count(*), sum(end - start) FROM OSRT_API JOIN StringIds AS strings ON id = nameId "
                        "GROUP BY 1 ORDER BY 1").fetchall(),
          s.rows("SELECT name, count(*), sum(duration_ns) FROM calls WHERE layer = 'ioctl' GROUP BY name ORDER BY name"), "ioctls")
    equal(sorted(asked.execute("SELECT pid, globalPid >> 24 & 0xFFFFFF FROM PROCESSES").fetchall()),
          sorted((pid, pid) for pid, in s.rows("SELECT pid FROM processes")), "processes")
    asked.close()
    # If Nsight Systems is installed, compare its own reports with the trace.
    nsys = os.environ.get("CUDATRACE_NSYS", shutil.which("nsys"))
    if nsys:
        copy = path.with_suffix(".sqlite")
        path.rename(copy)
        done = subprocess.run([nsys, "stats", "--format", "csv", "--quiet", "--report", "cudaapisum", copy], capture_output=True, text=True)
        for name, spans in sums.items():
            check(re.search(rf"^[\d.]+,{sum(spans)},{len(spans)},.*{name}", done.stdout, re.M), name, "is not in", done.stdout, done.stderr)


# Export a real training run with calls of all layers, pushed ranges, allocations, and more than a thousand flow arrows.
with Session() as s:
    s.db.write_bytes(lzma.decompress(FIXTURE.read_bytes()))
    tracks, events, whole, still_open = check_perfetto(s)
    equal(still_open, [], "slices that do not end")
    launches = {b["said"]["call_id"]: b["said"] for b, _ in whole if "kernel" in b["said"]}
    equal({key: (d["kernel"], d["grid_x"], d["block_x"], d["stream"]) for key, d in launches.items()},
          {row[0]: row[1:] for row in s.rows("SELECT call_id, kernel, grid_x, block_x, stream FROM launches WHERE kernel IS NOT NULL")},
          "kernels and grids")
    pid, cmdline = s.rows("SELECT pid, cmdline FROM processes")[0]
    equal([t["process"][0]["process_name"][0] for t in tracks.values() if t["process"]], [f"{cmdline} ({pid}, exited)"], "processes")
    equal({(t["thread"][0]["tid"][0], t["thread"][0]["thread_name"][0]) for t in tracks.values() if t["thread"]},
          {(str(tid), name) for tid, name in s.rows("SELECT tid, name FROM threads")}, "threads")
    held = [int(e["value"][0]) for e in events if e["type"] == "TYPE_COUNTER"]
    equal(max(held), s.value("SELECT max(bytes) FROM (SELECT sum(bytes) OVER (ORDER BY at) AS bytes FROM (SELECT allocated_ns AS at, "
                             "bytes FROM allocations WHERE kind = 'device' UNION ALL SELECT freed_ns, -bytes FROM allocations WHERE "
                             "kind = 'device' AND freed_ns IS NOT NULL))"), "the peak of memory")
    # Flow arrows must lead from each runtime call to the driver calls inside it.
    ends = {b["said"]["call_id"]: e for b, e in whole}
    joined = 0
    for out, into in arrows(whole):
        check(out["categories"][0] == "runtime" and into["categories"][0] == "driver" and out["track"] == into["track"] and
              ends[into["said"]["call_id"]]["at"] <= ends[out["said"]["call_id"]]["at"], "an arrow from elsewhere", into)
        joined += 1
    check(joined > 1000, "hardly an arrow", joined)
    if TIER != "short":
        check_perfetto(s, "layer = 'driver'", ("--layers", "driver"))
    check_nsys(s)
    done = s.run(CUDATRACE, "export", "--db", s.db, "--format", "nsys", preload=False, status=2)
    check("use --output FILE" in done.stderr, "without --output", done.stderr)

# If a range is still open, and the range of another domain around it has ended, the open range has a separate track. On the same track,
# programs that read the file would take the end of the outer range for the end of the open one.
with Session() as s:
    import_calls(s, s.db, [(7, 7, "nvtxRangePush", 100, 900, 0, {"message": "outer"}), (7, 7, "cuInit", 200, 300, 1, {}),
                           (7, 7, "cuInit", 500, 600, 2, {}), (7, 7, "cuInit", 950, 990, 1, {})])
    with contextlib.closing(sqlite3.connect(s.db)) as trace:
        trace.execute("INSERT INTO open_call (process_id, thread_id, depth, function_id, start_ns) SELECT process_id, thread_id, 1, function_id, ? "
                      "FROM thread, function WHERE function.name = 'nvtxRangePush'", (round((400 + BASE_US) * 1000),))
        trace.execute("INSERT INTO open_call (process_id, thread_id, depth, function_id, start_ns) SELECT process_id, thread_id, 0, function_id, ? "
                      "FROM thread, function WHERE function.name = 'cuInit'", (round((995 + BASE_US) * 1000),))
        trace.commit()
    tracks, _, _, still_open = check_perfetto(s)
    equal(sorted(((e["at"] - BASE_US * 1000) / 1000, e["name"], tracks[e["track"]]["name"]) for e in still_open),
          [(400, "nvtxRangePush", ["NVTX ranges"]), (995, "cuInit", [])], "calls that have not returned")

# Export ranges of several threads and processes. The ranges overlap without being nested, and have all kinds of names.
with Session() as s:
    s.start_daemon()
    for what in ("nest", "cross", "domains", "threads"):
        s.run(WORKLOADS / "ranges", "--do", what, env={"NVTX_INJECTION64_PATH": HOOK})
    with HungCall(s, "--calls", 10, stdout=subprocess.DEVNULL):
        s.flush()
        equal(s.rows("SELECT DISTINCT kind FROM ranges ORDER BY kind"), [("mark",), ("push",), ("start",)], "kinds of ranges")
        still_open = check_perfetto(s)[3]
        equal([(e["name"], e["said"]["returned"]) for e in still_open], [("cuCtxSynchronize", False)], "calls that have not returned")
        check_nsys(s)
        events = json.loads(export(s, "chrome").read_text())["traceEvents"]
        found = {phase: {e["id"] if phase == "e" else e["args"]["call_id"] for e in events if e["ph"] == phase} for phase in "Xbei"}
        started, marks = ({row for row, in s.rows("SELECT call_id FROM ranges WHERE kind = ?", kind)} for kind in ("start", "mark"))
        equal((found["i"], found["b"] == found["e"], started <= found["b"], len(found["b"] - started) > 0), (marks, True, True, True),
              "instants and asynchronous events of chrome")
        equal(sorted(found["X"] | found["b"] | found["i"]), [row for row, in s.rows("SELECT call_id FROM calls ORDER BY 1")], "events of chrome")

# In an export with GPU samples, each GPU has a track for each counter.
with sampling("--gpu-samples", "100ms") as (s, gpus):
    with HungCall(s, stdout=subprocess.DEVNULL) as hung:
        gpus.write("fail nvmlDeviceGetPowerUsage 1 3", f"process 0 {hung.pid} {GIB} 50 5")
        await_samples(s, 2 * 3)
        await_samples(s, 1, "gpu_processes")
        s.flush_until("metrics", lambda: s.value("SELECT count(dram_percent) FROM gpu_samples"))
        hung.release()
    s.stop_daemon()  # a sample that is being taken during a flush is stored later
    columns = {"busy (%)": "busy_percent", "memory used (bytes)": "memory_used_bytes", "power (W)": "power_mw / 1000",
               "SMs busy (%)": "CAST(round(sm_busy_percent) AS INTEGER)", "memory traffic (%)": "CAST(round(dram_percent) AS INTEGER)",
               "tensor cores (%)": "CAST(round(tensor_percent) AS INTEGER)", "SM occupancy (%)": "CAST(round(sm_occupancy_percent) AS INTEGER)"}
    wanted = sorted(row for counter, column in columns.items() for row in s.rows(
        f"SELECT 'GPU ' || gpu || ': ' || name, '{counter}', time_ns, {column} FROM gpu_samples JOIN gpus USING (gpu_id) WHERE {column} IS NOT NULL"))
    equal({row[1]: row[3] for row in wanted if row[0].startswith("GPU 0") and row[1] in list(columns)[3:]},
          {"SMs busy (%)": 80, "memory traffic (%)": 31, "tensor cores (%)": 50, "SM occupancy (%)": 40}, "metrics")
    begin_ns = s.value("SELECT min(started_ns) FROM processes")

    def counters_of_chrome(*options):
        events = json.loads(export(s, "chrome", *options).read_text())["traceEvents"]
        names = {e["pid"]: e["args"]["name"] for e in events if e["name"] == "process_name" and e["args"]["name"].startswith("GPU ")}
        return sorted((names[e["pid"]], e["name"], round(e["ts"] * 1000) + begin_ns, e["args"]["value"]) for e in events
                      if e["ph"] == "C" and e["pid"] in names)

    def counters_of_perfetto(*options):
        _, tracks, events = read_perfetto(export(s, "perfetto", *options))
        of = {uuid: (tracks[track["parent_uuid"][0]]["name"][0], track["name"][0]) for uuid, track in tracks.items()
              if track["counter"] and track["name"] != ["device memory held"]}
        equal({e["track"] for e in events if e["type"] == "TYPE_COUNTER"} >= set(of), True, "counters without a value")
        return sorted((*of[e["track"]], e["at"], int(e["value"][0])) for e in events if e["type"] == "TYPE_COUNTER" and e["track"] in of)

    for counters in (counters_of_chrome, counters_of_perfetto):
        equal(counters(), wanted, counters.__name__)
        equal(counters("--pid", hung.pid), [row for row in wanted if row[0] == "GPU 0: Simulated GPU A"], counters.__name__)
