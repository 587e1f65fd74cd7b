#!/usr/bin/env python3
"""Reads the file that `cudatrace export --format perfetto` has written with Perfetto's own trace processor, and compares it with the trace.
Needs no GPU.

    perfetto_check.py [--cudatrace PROGRAM] TRACE_PROCESSOR_SHELL DATABASE...

Each trace must consist of a single file.
"""
import argparse
import collections
import contextlib
import json
import pathlib
import subprocess
import sys
import tempfile

import compare

CUDATRACE = pathlib.Path(__file__).resolve().parents[2] / "build/tools/cudatrace"
ACROSS = {"NVTX ranges", "calls across ranges"}  # tracks of a process for slices that would not nest in their thread's track
REALTIME, MONOTONIC, BOOTTIME = 1, 3, 6  # the clocks' numbers in Perfetto
SIZES = ("grid_x", "grid_y", "grid_z", "block_x", "block_y", "block_z", "shared_bytes")

# ---- what the trace processor has read ----

# Each query is a pair: the columns, and the rest of the SELECT statement.
SLICES = ("id, ts, dur, depth, parent_id, category, name, track_id", "FROM slice")
ARGUMENTS = ("slice.id, substr(args.key, 7), ifnull(args.int_value, args.string_value)",
             "FROM slice JOIN args USING (arg_set_id) WHERE args.key GLOB 'debug.*'")
OTHER_ARGUMENTS = ("slice.name, args.key", "FROM slice JOIN args USING (arg_set_id) WHERE args.key NOT GLOB 'debug.*'")
THREADS = ("thread_track.id, process.pid, process.name, thread.tid, thread.name",
           "FROM thread_track JOIN thread USING (utid) JOIN process USING (upid)")
PROCESS_TRACKS = ("process_track.id, process.pid, process.name, process_track.name", "FROM process_track JOIN process USING (upid)")
ARROWS = ("slice_out, slice_in", "FROM flow")
MEMORY = ("process.pid, track.name, counter.ts, counter.value",
          "FROM counter JOIN process_counter_track AS track ON track.id = counter.track_id JOIN process USING (upid)")
GPU_COUNTERS = ("gpu.name, track.name, counter.ts, counter.value",
                "FROM counter JOIN track ON track.id = counter.track_id JOIN track AS gpu ON gpu.id = track.parent_id "
                "WHERE track.id NOT IN (SELECT id FROM process_counter_track)")
COUNTERS = ("count(*)", "FROM counter")
CLOCKS = ("clock_id, clock_value - ts", "FROM clock_snapshot")
ERRORS = ("name, severity, value", "FROM stats WHERE severity IN ('error', 'data_loss') AND value > 0")


class TraceProcessor:
    """Runs queries on an exported file with Perfetto's trace_processor_shell."""

    def __init__(self, shell, trace, folder):
        self.shell, self.trace, self.file = shell, trace, folder / "query.sql"

    def rows(self, query):
        """Runs a query, and returns its rows. Makes the shell print the rows as JSON in hexadecimal, because the shell does not quote
        text."""
        columns, rest = query
        self.file.write_text(f"SELECT hex(json_array({columns})) {rest}")
        done = subprocess.run([self.shell, "-q", self.file, self.trace], capture_output=True, text=True)
        if done.returncode:
            sys.exit(f"{self.shell} failed: {done.stderr.strip()}")
        return [tuple(json.loads(bytes.fromhex(line.strip('"')))) for line in done.stdout.splitlines()[1:] if line]


class Slice:
    def __init__(self, row, threads, tracks):
        self.id, self.begin, self.duration, self.depth, self.parent, self.category, self.name, self.track = row
        self.pid, self.process, self.tid, self.thread = threads.get(self.track, (None, None, None, None))
        self.track_name = None
        if self.track in tracks:
            self.pid, self.process, self.track_name = tracks[self.track]
        self.has = {}

    @property
    def end(self):
        return self.begin + self.duration

    @property
    def is_work(self):
        return self.category.startswith("gpu,")


def read_slices(processor):
    threads = {row[0]: row[1:] for row in processor.rows(THREADS)}
    tracks = {row[0]: row[1:] for row in processor.rows(PROCESS_TRACKS)}
    slices = {row[0]: Slice(row, threads, tracks) for row in processor.rows(SLICES)}
    for number, key, value in processor.rows(ARGUMENTS):
        slices[number].has[key] = value
    return slices


# ---- what the trace has ----

# Selects each process's pid as the export writes it. If several processes of the trace had the same pid, the export writes a different
# number for each of them.
PROCESSES = """
    SELECT process_id, iif(count(*) OVER (PARTITION BY pid) = 1, pid, 1000000000 + process_id), cmdline || ' (' || pid || ', ' || state || ')'
      FROM processes"""
CALLS = """
    SELECT calls.call_id, calls.process_id, calls.tid, calls.start_ns, calls.end_ns, calls.layer || ',' || calls.category,
           coalesce(ranges.message, calls.name), calls.status, calls.bytes
      FROM calls LEFT JOIN ranges USING (call_id)"""
LAUNCHES = f"SELECT call_id, kernel, stream, {', '.join(SIZES)} FROM launches"
WORK = f"""
    SELECT gpu_work.process_id, gpu_work.call_id, gpu_work.kind, ifnull(gpu_work.kernel, '(unknown)'), copy_kind, gpu_start_ns, gpu_end_ns,
           device, context, gpu_work.stream, bytes, graph, node, {', '.join(f'iif(node IS NULL, {size}, NULL)' for size in SIZES)}
      FROM gpu_work LEFT JOIN launches USING (call_id)"""
OPEN_CALLS = "SELECT process_id, tid, start_ns, name FROM open_calls"
THREAD_NAMES = "SELECT process_id, tid, name FROM threads ORDER BY thread_id"
HELD = """
    WITH piece AS (
        SELECT process_id, allocated_ns, freed_ns, bytes FROM allocations
         WHERE kind IN ('device', 'managed', 'pool', 'array', 'physical') AND bytes IS NOT NULL
    )
    SELECT process_id, allocated_ns AS at_ns, bytes FROM piece
     UNION ALL
    SELECT process_id, coalesce(freed_ns, ended_ns), -bytes FROM piece JOIN processes USING (process_id)
     WHERE coalesce(freed_ns, ended_ns) IS NOT NULL
     ORDER BY at_ns"""
SAMPLES = {"busy (%)": "busy_percent", "memory used (bytes)": "memory_used_bytes", "power (W)": "CAST(round(power_mw / 1e3) AS INTEGER)",
           "SMs busy (%)": "CAST(round(sm_busy_percent) AS INTEGER)", "memory traffic (%)": "CAST(round(dram_percent) AS INTEGER)",
           "tensor cores (%)": "CAST(round(tensor_percent) AS INTEGER)", "SM occupancy (%)": "CAST(round(sm_occupancy_percent) AS INTEGER)"}


class Trace:
    def __init__(self, database):
        self.database = database
        self.processes = {row[0]: row[1:] for row in self.rows(PROCESSES)}
        self.threads = {(self.pid(process), tid): name or None for process, tid, name in self.rows(THREAD_NAMES)}
        self.has_work = self.has("gpu_work")
        self.has_samples = self.has("gpu_samples")

    def rows(self, sql):
        return self.database.execute(sql).fetchall()

    def pid(self, process_id):
        return self.processes[process_id][0]

    def has(self, view):
        """Returns whether the trace has the view. Traces of earlier versions do not have all views."""
        return bool(self.rows(f"SELECT 1 FROM sqlite_master WHERE name = '{view}'"))


# ---- the comparison ----


def same(report, what, seen, wanted):
    """Checks that two lists have the same elements, in any order."""
    seen, wanted = collections.Counter(seen), collections.Counter(wanted)
    more, fewer = seen - wanted, wanted - seen
    report.check(not more and not fewer, f"{what}: {wanted.total()}",
                 [f"{more.total()} are only in the file, {fewer.total()} only in the trace"] +
                 [f"only in the {where}: {row}" for where, rows in (("file", more), ("trace", fewer)) for row in list(rows)[:5]])


def check_calls(report, trace, slices):
    """Compares the names, categories, times and most important arguments of calls. If a slice is on a separate track instead of its
    thread's track, that track has no tid."""
    calls = [s for s in slices.values() if "call_id" in s.has]
    across = {s.has["call_id"] for s in calls if s.tid is None}
    same(report, "calls", [(s.has["call_id"], s.pid, s.tid, s.begin, s.end, s.category, s.name, s.has.get("status", 0), s.has.get("bytes"))
                           for s in calls],
         [(call, trace.pid(process), None if call in across else tid, begin, end, category, name, status, size)
          for call, process, tid, begin, end, category, name, status, size in trace.rows(CALLS)])
    started = {call for call, in trace.rows("SELECT call_id FROM ranges WHERE kind = 'start'")}
    report.check(started <= across and all(s.track_name in ACROSS for s in calls if s.tid is None),
                 f"calls and ranges outside of their thread's track: {len(across)}")
    same(report, "launches", [(s.has["call_id"], s.has.get("kernel"), s.has["stream"], *(s.has[size] for size in SIZES))
                              for s in calls if "grid_x" in s.has], trace.rows(LAUNCHES))


def check_open_calls(report, trace, slices):
    """Checks that each call that has not returned is a slice without an end, and that all other slices have an end."""
    same(report, "calls that have not returned",
         [(s.pid, s.begin, s.name, s.has.get("returned")) for s in slices.values() if s.category == "open" or s.duration < 0],
         [(trace.pid(process), begin, name, 0) for process, _, begin, name in trace.rows(OPEN_CALLS)])


def check_nesting(report, slices):
    """Checks that the depth of each slice is the number of slices around it on its track."""
    tracks = collections.defaultdict(list)
    for s in slices.values():
        tracks[s.track].append(s)
    wrong, deepest = [], 0
    for track in tracks.values():
        around = []
        for s in sorted(track, key=lambda s: (s.begin, s.depth)):
            while around and around[-1].duration >= 0 and (around[-1].end < s.begin or around[-1].end == s.begin < s.end):
                around.pop()
            while around and s.depth < len(around) and around[-1].end == s.begin:  # an empty slice is in no slice that ends then
                around.pop()
            parent = around[-1] if around else None
            inside = parent is None or parent.duration < 0 or (s.duration >= 0 and s.end <= parent.end)
            if s.depth != len(around) or s.parent != (parent.id if parent else None) or not inside:
                wrong.append(f"{s.name} at {s.begin} has depth {s.depth} and should have {len(around)}")
            deepest = max(deepest, s.depth)
            around.append(s)
    report.check(not wrong, f"depths of {len(slices)} slices, at most {deepest}", [f"{len(wrong)} are wrong", *wrong[:5]])


def key_of_work(s):
    return (s.pid, s.name, s.begin, s.end, s.has.get("device"), s.has.get("context"), s.has.get("stream"), s.has.get("node"))


def check_work(report, trace, slices):
    work = [s for s in slices.values() if s.is_work]
    wanted, arrows = [], []
    for process, call, kind, kernel, copy_kind, begin, end, device, context, stream, size, graph, node, *sizes in trace.rows(WORK):
        name = kernel if kind == "kernel" else f"{kind} {copy_kind}" if copy_kind else kind
        key = (trace.pid(process), name, begin, end, device, context, stream, node)
        wanted.append((*key, f"gpu,{kind}", f"GPU {device}, stream {stream}", copy_kind, size, graph, call, *sizes))
        arrows += [(call, *key)] if call else []
    same(report, "pieces of work", [(*key_of_work(s), s.category, (s.track_name or "").split(" (")[0], s.has.get("copy_kind"), s.has.get("bytes"),
                                     s.has.get("graph"), s.has.get("caused_by"), *(s.has.get(size) for size in SIZES)) for s in work], wanted)
    report.check(all(s.depth == 0 for s in work), "work does not overlap on its track")
    return arrows


def check_arrows(report, slices, arrows, to_work):
    """Checks that an arrow leads from each call to each piece of its work, and from each runtime call to each driver call that it made."""
    same(report, "arrows to work", [(out.has.get("call_id"), *key_of_work(into)) for out, into in arrows if into.is_work], to_work)
    made = []
    for s in slices.values():
        parent = slices.get(s.parent)
        if parent and "call_id" in s.has and s.category.startswith("driver,") and parent.category.startswith("runtime,"):
            made.append((parent.id, s.id))
    same(report, "arrows from runtime calls to driver calls", [(out.id, into.id) for out, into in arrows if not into.is_work and into.tid is not None],
         made)
    report.check(all(out.begin <= into.begin for out, into in arrows), f"{len(arrows)} arrows lead forward in time")


def check_names(report, trace, slices):
    same(report, "processes", {(s.pid, s.process) for s in slices.values()},
         {trace.processes[process] for process, in trace.rows("SELECT process_id FROM processes")})
    seen = {(s.pid, s.tid, s.thread) for s in slices.values() if s.tid is not None}
    wrong = [row for row in seen if trace.threads.get(row[:2]) != row[2]]
    report.check(not wrong, f"names of {len(seen)} threads", wrong)


def check_counters(report, trace, processor):
    held, wanted = collections.Counter(), {}
    for process, at, size in trace.rows(HELD):
        held[process] += size
        wanted[trace.pid(process), "device memory held", at] = held[process]
    memory = processor.rows(MEMORY)
    same(report, "changes of memory", {(*row[:3], int(row[3])) for row in memory}, {(*key, size) for key, size in wanted.items()})
    samples = [row for name, column in SAMPLES.items() for row in trace.rows(
        f"SELECT 'GPU ' || gpu || ': ' || ifnull(name, uuid), '{name}', time_ns, {column} FROM gpu_samples JOIN gpus USING (gpu_id) "
        f"WHERE {column} IS NOT NULL")] if trace.has_samples else []
    seen = processor.rows(GPU_COUNTERS)
    same(report, "samples of GPUs", [(*row[:3], int(row[3])) for row in seen], samples)
    (count,), = processor.rows(COUNTERS)
    report.check(count == len(memory) + len(seen), f"counter values: {count}", [f"{len(memory) + len(seen)} belong to a process or a GPU"])


def check_file(report, database, processor):
    trace = Trace(database)
    errors = processor.rows(ERRORS)
    report.check(not errors, "the import had no errors, and lost nothing", errors)
    added = processor.rows(OTHER_ARGUMENTS)
    report.check(not added, "Perfetto added no arguments", added[:5])
    slices = read_slices(processor)
    check_calls(report, trace, slices)
    check_open_calls(report, trace, slices)
    to_work = check_work(report, trace, slices) if trace.has_work else []
    count = len(trace.rows(CALLS)) + len(trace.rows(OPEN_CALLS)) + (len(trace.rows(WORK)) if trace.has_work else 0)
    report.check(len(slices) == count, f"slices: {len(slices)}", [f"the trace has {count} calls and pieces of work"])
    check_nesting(report, slices)
    check_arrows(report, slices, [(slices[out], slices[into]) for out, into in processor.rows(ARROWS)], to_work)
    check_names(report, trace, slices)
    check_counters(report, trace, processor)
    (offset,), = trace.rows("SELECT ifnull(max(CAST(value AS INTEGER)), 0) FROM meta WHERE key = 'realtime_offset_ns'")
    same(report, "clocks", processor.rows(CLOCKS), [(MONOTONIC, 0), (BOOTTIME, 0), (REALTIME, offset)])


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("--cudatrace", default=CUDATRACE, help="the program that exports (default: %(default)s)")
    parser.add_argument("shell", metavar="TRACE_PROCESSOR_SHELL")
    parser.add_argument("database", metavar="DATABASE", nargs="+")
    options = parser.parse_args()
    report = compare.Report()
    for path in options.database:
        report.begin(path)
        with tempfile.TemporaryDirectory() as folder, contextlib.closing(compare.open_database(path)) as database:
            exported = pathlib.Path(folder, "trace.pftrace")
            subprocess.run([options.cudatrace, "export", "--db", path, "--format", "perfetto", "--output", exported], check=True)
            check_file(report, database, TraceProcessor(options.shell, exported, pathlib.Path(folder)))
    return report.finish()


if __name__ == "__main__":
    sys.exit(main())
