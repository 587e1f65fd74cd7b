"""Tests that every `cudatrace export` format contains GPU work, which the simulated CUPTI provides. Each piece of work must appear once,
with the times that the `gpu_work` view shows, and be linked to the call that caused it."""
import collections
import json
import sqlite3

from cudatrace_test import BUILD, CUDATRACE, SIMCUDA, WORKLOADS, Session, check, equal
from exact_trace import add_work, import_calls
from perfetto_file import arrows, read_perfetto, slices

ENVIRONMENT = {"LD_LIBRARY_PATH": f"{SIMCUDA}:{BUILD / 'tests/simcupti/13'}", "SIMCUDA_LAUNCH_NS": 5000, "SIMCUDA_COPY_GBPS": 2}
FIRST = "GPU-a0000000-0000-0000-0000-000000000000"  # of the simulated driver
GPU = "INSERT INTO gpu (gpu_id, uuid, pci_address, name, place, number, memory_bytes) VALUES (?1, ?2, ?3, 'Simulated GPU', ?4, ?4, 1 << 30)"


def run(s, *command):
    s.run(CUDATRACE, "run", "--session", s.name, "--db", s.db, "--gpu", "--", *command, preload=False, env=ENVIRONMENT)


def export(s, form, *options):
    path = s.dir / f"out.{form}"
    s.run(CUDATRACE, "export", "--db", s.db, "--format", form, "--output", path, *options, preload=False)
    return path


def make_work(s):
    """Runs a program that calls the driver and a program that calls the runtime. The runtime's GPU work is caused by driver calls nested in
    the runtime calls."""
    run(s, WORKLOADS / "gpu_work", "--rounds", 20)
    run(s, WORKLOADS / "runtime_calls")
    equal(s.rows("SELECT kind, depth, count(*) FROM gpu_work JOIN calls USING (call_id) GROUP BY 1, 2"),
          [("copy", 0, 60), ("copy", 1, 40), ("kernel", 0, 60), ("kernel", 1, 20), ("set", 0, 20), ("set", 1, 20)], "work")


def add_graph(s):
    """Adds work that the simulated CUPTI does not deliver: two kernels of a graph, a whole graph, a copy between devices, and a copy whose
    call is unknown."""
    with sqlite3.connect(s.db) as trace:
        process, correlation, end_ns = trace.execute(
            "SELECT process_id, correlation, call_id FROM correlation WHERE call_id = (SELECT max(call_id) FROM launches)").fetchone()
        tasks = [("kernel", 1, 7, 3, 11), ("kernel", 1, 7, 3, 12), ("graph", 0, 8, 4, 0), ("PtoP", 0, 9, 0, 0), ("unknown", 0, 9, 0, 0)]
        for number, (kind, kernel, stream, graph, node) in enumerate(tasks, 9001):
            trace.execute("INSERT INTO gpu_task (gpu_task_id, process_id, kind, kernel, device, context, stream, graph, node) "
                          "VALUES (?, ?, ?, ?, 1, 1, ?, ?, ?)", (number, process, kind, kernel, stream, graph, node))
            trace.execute("INSERT INTO gpu_run (gpu_task_id, start_ns, duration_ns, correlation, bytes) VALUES (?, ?, 1000, ?, ?)",
                          (number, end_ns + 100 * number, None if kind == "unknown" else correlation, 77 if stream == 9 else None))
        # The process's second device is the third GPU of the machine.
        for gpu in (1, 2):
            trace.execute(GPU, (50 + gpu, f"GPU-{gpu}", f"0000:0{gpu}:00.0", gpu))
        trace.execute("INSERT INTO gpu_device VALUES (?, 1, 2, 'GPU-2')", (process,))
    trace.close()


# Selects each piece of work with the call that caused it, and the outermost call around that call. A call outside the exported window
# counts as unknown.
PIECES = """
    SELECT gpu_work.kind, CASE gpu_work.kind WHEN 'kernel' THEN kernel WHEN 'graph' THEN 'CUDA graph' WHEN 'set' THEN 'Memset'
                          ELSE 'Memcpy ' || copy_kind END, gpu_start_ns, gpu_end_ns, device, context, stream, gpu_work.bytes, node, graph,
           processes.pid, outermost.call_id, calls.call_id, calls.tid, calls.start_ns
      FROM gpu_work
      JOIN processes USING (process_id)
      LEFT JOIN calls ON calls.call_id = gpu_work.call_id
      LEFT JOIN calls AS outermost ON outermost.process_id = calls.process_id AND outermost.tid = calls.tid AND outermost.depth = 0
                                  AND outermost.start_ns <= calls.start_ns AND outermost.end_ns >= calls.end_ns"""


def pieces(s):
    return [dict(zip("kind name start end device context stream bytes node graph pid correlation call tid call_start".split(), row))
            for row in s.rows(PIECES)]


# ---- Nsight Systems: queries that select the columns of its reports, written for this test ----

KERNELS = """
    SELECT strings.value, count(*), sum(end - start), min(end - start), max(end - start)
      FROM CUPTI_ACTIVITY_KIND_KERNEL JOIN StringIds AS strings ON strings.id = demangledName
     GROUP BY 1 ORDER BY 1"""
TRANSFERS = """
    SELECT oper.label, count(*), sum(end - start), sum(bytes)
      FROM CUPTI_ACTIVITY_KIND_MEMCPY JOIN ENUM_CUDA_MEMCPY_OPER AS oper ON oper.id = copyKind
     GROUP BY 1
     UNION ALL
    SELECT 'memset', count(*), sum(end - start), sum(bytes) FROM CUPTI_ACTIVITY_KIND_MEMSET
     GROUP BY 1
     ORDER BY 1"""
WORK = """
    SELECT 'kernel' AS kind, start, end, deviceId, contextId, streamId, correlationId, globalPid, graphNodeId FROM CUPTI_ACTIVITY_KIND_KERNEL
     UNION ALL
    SELECT 'copy', start, end, deviceId, contextId, streamId, correlationId, globalPid, graphNodeId FROM CUPTI_ACTIVITY_KIND_MEMCPY
     UNION ALL
    SELECT 'set', start, end, deviceId, contextId, streamId, correlationId, globalPid, graphNodeId FROM CUPTI_ACTIVITY_KIND_MEMSET
     UNION ALL
    SELECT 'graph', start, end, deviceId, contextId, streamId, correlationId, globalPid, NULL FROM CUPTI_ACTIVITY_KIND_GRAPH_TRACE"""
LABELS = {"HtoD": "Host-to-Device", "DtoH": "Device-to-Host", "DtoD": "Device-to-Device", "PtoP": "Peer-to-Peer", "unknown": "Unknown"}
SPANS = "count(*), sum(gpu_work.duration_ns), min(gpu_work.duration_ns), max(gpu_work.duration_ns)"


def check_nsys(s, *options, condition="1"):
    path = export(s, "nsys", *options)
    asked = sqlite3.connect(f"file:{path}?mode=ro", uri=True)
    equal(asked.execute("PRAGMA integrity_check").fetchone()[0], "ok", "integrity_check")
    equal(asked.execute("PRAGMA foreign_key_check").fetchall(), [], "foreign_key_check")
    begin_ns = s.value("SELECT min(started_ns) FROM processes")
    equal(asked.execute(KERNELS).fetchall(),
          s.rows(f"SELECT kernel, {SPANS} FROM gpu_work WHERE kind = 'kernel' AND {condition} GROUP BY 1 ORDER BY 1"), "kernels")
    sums = s.rows("SELECT ifnull(copy_kind, 'set'), count(*), sum(duration_ns), sum(bytes) FROM gpu_work "
                  f"WHERE kind IN ('copy', 'set') AND {condition} GROUP BY 1")
    equal(asked.execute(TRANSFERS).fetchall(), sorted((LABELS.get(kind, "memset"), *rest) for kind, *rest in sums), "copies and sets")
    # A piece of work has the correlation ID of the outermost call around it, such as a runtime call.
    wanted = s.rows(f"""
        SELECT kind, gpu_start_ns - {begin_ns}, gpu_end_ns - {begin_ns}, device, context, stream,
               (SELECT outer.call_id FROM calls
                  JOIN calls AS outer ON outer.process_id = calls.process_id AND outer.tid = calls.tid AND outer.depth = 0
                                     AND outer.start_ns <= calls.start_ns AND outer.end_ns >= calls.end_ns
                 WHERE calls.call_id = gpu_work.call_id),
               pid << 24, node
          FROM gpu_work JOIN processes USING (process_id) WHERE {condition}""")
    equal(sorted(asked.execute(WORK).fetchall(), key=repr), sorted(wanted, key=repr), "work")
    equal(asked.execute(f"SELECT count(*) FROM ({WORK}) LEFT JOIN CUPTI_ACTIVITY_KIND_RUNTIME AS api USING (correlationId) "
                        "WHERE correlationId IS NOT NULL AND api.globalTid & ~0xffffff IS NOT globalPid").fetchone()[0], 0, "calls of work")
    equal(sorted(asked.execute("SELECT correlationId, gridX, gridY, gridZ, blockX, blockY, blockZ, dynamicSharedMemory "
                               "FROM CUPTI_ACTIVITY_KIND_KERNEL JOIN CUPTI_ACTIVITY_KIND_RUNTIME USING (correlationId) "
                               "WHERE eventClass = 1 AND graphNodeId IS NULL").fetchall()),
          s.rows("SELECT call_id, grid_x, grid_y, grid_z, block_x, block_y, block_z, shared_bytes FROM gpu_work JOIN launches USING (call_id) "
                 f"JOIN calls USING (call_id) WHERE depth = 0 AND node IS NULL AND {condition} ORDER BY 1"), "sizes of launches")
    return asked


# ---- chrome, pytorch, perfetto ----

CATEGORIES = {"kernel": "kernel", "copy": "gpu_memcpy", "set": "gpu_memset", "graph": "gpu_graph"}


def no_overlap(spans, what):
    """Checks that the pieces of work on each track do not overlap. `spans` maps each track to a list of (begin, end)."""
    for track, pieces_of_track in spans.items():
        pieces_of_track.sort()
        for (_, end), (begin, _) in zip(pieces_of_track, pieces_of_track[1:]):
            check(end <= begin, what, "overlaps on track", track, "at", begin)


def check_trace_events(s, form):
    """Checks the work in a JSON file, and returns the other events."""
    events = json.loads(export(s, form).read_text())["traceEvents"]
    begin_ns = s.value("SELECT min(started_ns) FROM processes")

    def at(event, more=0):
        return round((event["ts"] + more) * 1000) + begin_ns

    work = [event for event in events if event.get("cat") in CATEGORIES.values()]
    wanted = pieces(s)
    equal(sorted(((e["cat"], e["name"], at(e), at(e, e["dur"]), args["device"], args["context"], args["stream"], args.get("correlation"),
                  args.get("bytes"), args.get("graph node id"), args.get("graph id")) for e in work for args in [e["args"]]), key=repr),
          sorted(((CATEGORIES[p["kind"]], p["name"], p["start"], p["end"], p["device"], p["context"], p["stream"], p["correlation"],
                   p["bytes"], p["node"], p["graph"]) for p in wanted), key=repr), f"work in {form}")
    ends = {phase: {e["id"]: (e["pid"], e["tid"], at(e)) for e in events if e.get("cat") == "ac2g" and e["ph"] == phase} for phase in "sf"}
    tracks = {(at(e), e["args"]["stream"], e["args"].get("graph node id"), e["cat"]): (e["pid"], e["tid"]) for e in work}
    equal(sorted(ends["s"][number] + ends["f"][number] for number in ends["s"] | ends["f"]),
          sorted((p["pid"], p["tid"], p["call_start"], *tracks[p["start"], p["stream"], p["node"], CATEGORIES[p["kind"]]], p["start"])
                 for p in wanted if p["call"]), f"arrows in {form}")
    names = {(e["pid"], e["tid"]): e["args"]["name"] for e in events if e["name"] == "thread_name"}
    return [e for e in events if e not in work and e.get("cat") != "ac2g"], work, names


def check_chrome(s):
    _, work, names = check_trace_events(s, "chrome")
    spans = collections.defaultdict(list)
    for e in work:
        check(names[e["pid"], e["tid"]].split(" (")[0] == f"GPU {e['args']['device']}, stream {e['args']['stream']}", "the name of", e)
        spans[e["pid"], e["tid"]].append((round(e["ts"] * 1000), round((e["ts"] + e["dur"]) * 1000)))
    no_overlap(spans, "work in chrome")


def check_pytorch(s):
    others, work, names = check_trace_events(s, "pytorch")
    for e in work:
        equal((e["pid"], e["tid"], names[e["pid"], e["tid"]]), (e["args"]["device"], e["args"]["stream"], f"stream {e['args']['stream']}"),
              "the track of work")
    equal(sorted((e["cat"], e["name"], e["pid"], e["tid"], e["args"]["correlation"]) for e in others if e["ph"] == "X"),
          s.rows("SELECT 'cuda_' || layer, name, pid, tid, call_id FROM calls WHERE depth = 0 AND layer IN ('runtime', 'driver') "
                 "ORDER BY 1, 2, 3, 4, 5"), "calls in pytorch")
    sizes = {e["args"]["correlation"]: [*e["args"]["grid"], *e["args"]["block"], e["args"]["shared memory"]] for e in work if "grid" in e["args"]}
    equal({key: sizes.get(key) for key, in s.rows("SELECT call_id FROM launches JOIN calls USING (call_id) WHERE depth = 0")},
          {row[0]: [*row[1:]] for row in s.rows("SELECT call_id, grid_x, grid_y, grid_z, block_x, block_y, block_z, shared_bytes "
                                                "FROM launches JOIN calls USING (call_id) WHERE depth = 0")}, "sizes of launches in pytorch")


def check_perfetto(s):
    _, tracks, events = read_perfetto(export(s, "perfetto"))
    whole, still_open = slices(events)
    equal(still_open, [], "slices that do not end")
    found, spans = [], collections.defaultdict(list)
    for begin, end in whole:
        if begin["categories"][:1] != ["gpu"]:
            continue
        said, track = begin["said"], tracks[begin["track"]]
        check(track["name"][0].split(" (")[0].strip('"') == f"GPU {said['device']}, stream {said['stream']}", "the name of", track)
        pid = int(tracks[track["parent_uuid"][0]]["process"][0]["pid"][0])
        spans[begin["track"]].append((begin["at"], end["at"]))
        found.append((begin["categories"][1], begin["name"], begin["at"], end["at"], said["device"], said["context"], said["stream"],
                      said.get("caused_by"), said.get("bytes"), said.get("node"), said.get("graph"), pid))
    names = {"Memset": "set", "CUDA graph": "graph"}
    equal(sorted(found, key=repr), sorted(((p["kind"], names.get(p["name"], p["name"].replace("Memcpy", "copy")), p["start"], p["end"], p["device"],
                                 p["context"], p["stream"], p["call"], p["bytes"], p["node"], p["graph"], p["pid"]) for p in pieces(s)), key=repr),
          "work in perfetto")
    no_overlap(spans, "work in perfetto")
    equal(sorted((out["said"]["call_id"], into["at"], into["said"]["stream"], into["said"].get("node", 0)) for out, into in arrows(whole)
                 if into["categories"][0] == "gpu"),
          sorted((p["call"], p["start"], p["stream"], p["node"] or 0) for p in pieces(s) if p["call"]), "arrows in perfetto")


with Session() as s:
    make_work(s)
    check_nsys(s).close()
    add_graph(s)
    check_chrome(s)
    check_pytorch(s)
    check_perfetto(s)
    asked = check_nsys(s)
    equal(asked.execute("SELECT DISTINCT strings.value, short.value FROM CUPTI_ACTIVITY_KIND_KERNEL JOIN StringIds AS strings ON "
                        "strings.id = mangledName JOIN StringIds AS short ON short.id = shortName ORDER BY 1").fetchall(),
          [("_Z4betaPfi", "beta"), ("_ZN5gamma5deltaIfEEvv", "delta"), ("alpha", "alpha"), ("fill_u32", "fill_u32")], "short names")
    equal(asked.execute("SELECT graphExecId, deviceId, streamId FROM CUPTI_ACTIVITY_KIND_GRAPH_TRACE").fetchall(), [(4, 2, 8)], "graphs")
    equal(asked.execute("SELECT id, name, busLocation, totalMemory, uuid FROM TARGET_INFO_GPU").fetchall(),
          [(0, None, "0000:3b:00.0", None, FIRST), *((gpu, "Simulated GPU", f"0000:0{gpu}:00.0", 1 << 30, f"GPU-{gpu}") for gpu in (1, 2))], "GPUs")
    pids = [pid for pid, in s.rows("SELECT pid FROM processes ORDER BY pid")]
    second = s.value("SELECT pid FROM gpu_devices JOIN processes USING (process_id) WHERE device = 2")
    equal(asked.execute("SELECT pid, cudaId, gpuId, uuid FROM TARGET_INFO_CUDA_DEVICE ORDER BY 2, 1").fetchall(),
          [*((pid, 0, 0, FIRST) for pid in pids), (second, 2, 2, "GPU-2")], "devices")
    asked.close()
    equal([(device["id"], device["name"]) for device in json.loads(export(s, "pytorch").read_text())["deviceProperties"]],
          [(0, FIRST), (1, "Simulated GPU"), (2, "Simulated GPU")], "devices in pytorch")
    other, half_ns = s.rows("SELECT process_id, gpu_end_ns FROM gpu_work ORDER BY gpu_end_ns LIMIT 1 OFFSET 100")[0]
    pid = s.value("SELECT pid FROM processes WHERE process_id = ?", other)
    check_nsys(s, "--pid", pid, condition=f"gpu_work.process_id = {other}").close()
    # Work whose call is not in the file has no correlation ID.
    begin_ns = s.value("SELECT min(started_ns) FROM processes")
    asked = sqlite3.connect(export(s, "nsys", "--layers", "nvtx"))
    equal(asked.execute(f"SELECT count(*), count(correlationId) FROM ({WORK})").fetchone(), (s.value("SELECT count(*) FROM gpu_work"), 0),
          "work without calls")
    asked.close()
    asked = sqlite3.connect(export(s, "nsys", "--from", f"{half_ns - begin_ns}ns"))
    equal(asked.execute(f"SELECT count(*) FROM ({WORK})").fetchone()[0],
          s.value("SELECT count(*) FROM gpu_work WHERE gpu_end_ns >= ?", half_ns), "work in a window")
    asked.close()

# Every device has a name, even if a process has used only its second device.
with Session() as s:
    import_calls(s, s.db, [(pid, pid, "cuInit", 0, pid, 0, {}) for pid in (7, 8)])
    add_work(s.db, [(7, "kernel", "a", 1, 7, 100, 200, None, None), (8, "kernel", "a", 0, 7, 100, 200, None, None)])
    events = json.loads(export(s, "pytorch").read_text())["traceEvents"]
    equal(sorted((e["pid"], e["args"]["labels"]) for e in events if e["name"] == "process_labels"), [(0, "GPU 0"), (1, "GPU 1")], "names of devices")

# If no GPU work was recorded, the tables for it exist and are empty.
with Session() as s:
    s.start_daemon()
    s.run(WORKLOADS / "calls", "--calls", 10)
    s.flush()
    check_nsys(s).close()
    check(s.value("SELECT count(*) FROM calls") > 0, "no calls")
