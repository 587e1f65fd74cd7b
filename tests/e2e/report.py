"""Tests reports on a run that is known to contain phases, an idle gap, a leak, failing calls, and a process slower than the others. The
reports cover all processes, one process, and a window, and are made in every format. The sections about kernel events and hooks are tested
on an imported trace with exact times."""
import contextlib
import csv
import io
import json
import shlex
import shutil
import sqlite3

from cudatrace_test import CUDATRACE, Session, WORKLOADS, check, equal

LATENCY = "cuModuleLoadData=20000000,cuMemcpyHtoD_v2=2000000,cuStreamSynchronize=500000,cuMemcpyDtoH_v2=3000000"
LAUNCHES, PAUSE_US, IDLE_MS, LEAKS, FAILURES, BUFFERS, MIB = 2000, 150, 120, 3, 5, 8, 1 << 20


def truth_of(out):
    """Returns ({phase: its start in ns}, the time when the program was idle)."""
    begun, idle = {}, None
    for kind, *rest in map(str.split, out.splitlines()):
        if kind == "phase":
            begun[rest[0]] = int(rest[1])
        else:
            idle = tuple(map(int, rest))
    return begun, idle


def report(s, *options, format="json"):
    out = s.run(CUDATRACE, "report", "--db", s.db, "--format", format, *options, preload=False).stdout
    return json.loads(out) if format == "json" else out


def close(value, wanted, off, what):
    check(abs(value - wanted) <= off, what, "is", value, "and not about", wanted)


def row_of(rows, **wanted):
    found = [row for row in rows if all(row[key] == value for key, value in wanted.items())]
    equal(len(found), 1, f"rows with {wanted} of {rows}")
    return found[0]


with Session() as s:
    s.start_daemon()
    truth = {}
    for pause_us in (0, 0, PAUSE_US):
        child = s.start(WORKLOADS / "scripted", "--launches", LAUNCHES, "--idle-ms", IDLE_MS, "--leaks", LEAKS, "--failures",
                        FAILURES, "--pause-us", pause_us, env={"SIMCUDA_LATENCY": LATENCY}, stdout=-1, text=True)
        truth[child.pid] = truth_of(child.communicate()[0])
        equal(child.returncode, 0, "the program's status")
    straggler = child.pid
    s.flush()
    found = report(s)
    zero_ns = s.value("SELECT min(started_ns) FROM processes")

    # The reported begin of a phase may be off by two slices, where a slice is a five-hundredth of the run. If the program was preempted at
    # the border of a phase, the reported border must agree with the phase's next call.
    for pid, (begun, idle) in truth.items():
        slices_ns = 2 * (begun["end"] - begun["load"]) / 500
        begun["exit"] = s.value("SELECT max(call_id) FROM copies JOIN processes USING (process_id) WHERE pid = ?", pid)
        begun["load"] = s.value("SELECT started_ns FROM processes WHERE pid = ?", pid)  # with the first call
        phases = [row for row in found["phases"] if row["pid"] == pid]
        equal([row["phase"] for row in phases], ["load", "preparation", "execution", "retrieval", "exit"], "phases")
        for row in phases:
            wanted_ns = begun[row["phase"]]
            calls = "launches" if row["phase"] == "execution" else "copies"
            next_ns = s.value(f"SELECT min(start_ns) FROM {calls} JOIN processes USING (process_id) WHERE pid = ? AND start_ns >= ?",
                              pid, wanted_ns + slices_ns)
            earliest_s = (wanted_ns - slices_ns - zero_ns) / 1e9
            latest_s = (max(wanted_ns + slices_ns, next_ns or 0) - zero_ns) / 1e9
            check(earliest_s - 0.001 <= row["at_s"] <= latest_s + 0.001, row["phase"], "of", pid, "begins at", row["at_s"],
                  "and not in", earliest_s, latest_s)
        equal({row["by"] for row in phases}, {"pattern"}, "how phases were found")

        # The reported gap lasts from the last launch before the idle time to the first launch after it, and includes the driver calls
        # between these launches.
        from_ns, to_ns = s.rows("SELECT max(call_id) FILTER (WHERE call_id <= ?2), min(start_ns) FILTER (WHERE start_ns >= ?3) FROM launches "
                                "WHERE process_id = (SELECT process_id FROM processes WHERE pid = ?1)", pid, *idle)[0]
        gap, = [row for row in found["gaps"] if row["pid"] == pid and abs(row["at_s"] - (from_ns - zero_ns) / 1e9) < 1e-6]
        close(gap["ms"], (to_ns - from_ns) / 1e6, 0.001, "the gap")
        check(gap["ms"] >= (idle[1] - idle[0]) / 1e6, "the gap", gap, idle)
        calls, spent_ns = s.rows("SELECT count(*), sum(duration_ns) FROM calls WHERE pid = ? AND layer = 'driver' AND call_id > ? AND "
                                 "call_id < ?", pid, from_ns, to_ns)[0]
        equal(gap["calls"], calls, "calls in the gap")
        close(gap["driver_ms"], (spent_ns or 0) / 1e6, 0.001, "their time")

        leak = row_of(found["leaks"], pid=pid)
        equal((leak["kind"], leak["piece_bytes"], leak["pieces"], leak["state"]), ("device", MIB, LEAKS, "exited"), "the leak")
        memory = row_of(found["memory"], pid=pid, kind="device")
        equal((memory["allocations"], memory["not_freed"]), (BUFFERS + LEAKS, LEAKS), "allocations")
        close(memory["peak_mb"], (BUFFERS + LEAKS) * MIB / 1e6, 0.001, "the peak")
        equal(row_of(found["launches"], pid=pid)["launches"], LAUNCHES, "launches")
        equal(row_of(found["processes"], pid=pid)["failed"], FAILURES, "failed calls of a process")
        equal(row_of(found["modules"], pid=pid)["loads"], 3, "modules")
        check(row_of(found["modules"], pid=pid)["total_ms"] >= 60, "the time of loading modules")
        wait = row_of(found["waits"], pid=pid, function="cuStreamSynchronize")
        equal(wait["waits"], LAUNCHES // 100, "waits")
        check(wait["total_ms"] >= 10, "the time of waiting", wait)
        thread = row_of(found["threads"], pid=pid)
        equal(thread["calls"], s.value("SELECT count(*) FROM calls WHERE pid = ?", pid), "a thread's calls")
        close(thread["ms_in_driver"], s.value("SELECT sum(duration_ns) FROM calls WHERE pid = ? AND layer = 'driver'", pid) / 1e6,
              0.001, "a thread's time")

    # The straggler pauses between launches, which limits its rate. Do not check that it is the slowest, because another process may be even
    # slower on a busy machine.
    for row in found["launches"]:
        rate, = s.rows("SELECT count(*) * 1e9 / (max(call_id) - min(start_ns)) FROM launches JOIN processes USING (process_id) WHERE pid = ?",
                       row["pid"])[0]
        close(row["per_second"], rate, rate / 1000 + 0.1, f"the rate of {row['pid']}")
    check(row_of(found["launches"], pid=straggler)["per_second"] <= 1e6 / PAUSE_US, "the straggler's rate", found["launches"])
    for row in found["processes"]:
        close(row["seconds"], s.value("SELECT ended_ns - started_ns FROM processes WHERE pid = ?", row["pid"]) / 1e9, 0.001, "how long it ran")

    # The report's sums must equal the sums of the rows. Its percentiles may differ from the percentiles of the rows' durations by one part
    # in 32.
    equal([(row["function"], row["error"], row["calls"], row["processes"]) for row in found["errors"]],
          [("cuMemAlloc_v2", "CUDA_ERROR_OUT_OF_MEMORY", 3 * FAILURES, 3)], "errors")
    first_ns, last_ns = s.rows("SELECT min(call_id), max(call_id) FROM calls WHERE status = 2")[0]
    close(found["errors"][0]["first_s"], (first_ns - zero_ns) / 1e9, 0.001, "the first error")
    close(found["errors"][0]["last_s"], (last_ns - zero_ns) / 1e9, 0.001, "the last error")
    for row in found["functions"]:
        durations = [ns for ns, in s.rows("SELECT duration_ns FROM calls WHERE name = ? ORDER BY 1", row["function"])]
        equal(row["calls"], len(durations), row["function"])
        for share, column in ((0.5, "p50_us"), (0.95, "p95_us"), (0.99, "p99_us")):
            exact = next(ns for place, ns in enumerate(durations, 1) if place >= share * len(durations)) / 1e3
            close(row[column], exact, exact / 31 + 0.001, f"{column} of {row['function']}")
    to_gpu = row_of(found["copies"], kind="HtoD", mode="sync")
    equal((to_gpu["copies"], to_gpu["max_bytes"]), (3 * BUFFERS, MIB), "copies to the GPU")
    close(to_gpu["mb"], 3 * BUFFERS * MIB / 1e6, 0.001, "bytes to the GPU")
    check(to_gpu["gb_per_s"] <= MIB / 2e6, "the rate of copies that take 2 ms", to_gpu)
    equal(row_of(found["kernels"], kernel="fill_u32")["launches"], 3 * LAUNCHES, "launches by kernel")
    equal(found["losses"], [], "losses")

    # The summary must agree with the other sections and with the rows, and its commands must work.
    def facts(rows):
        return [(row["about"], row["found"]) for row in rows]

    def summary_of(where, rows, selection, *counts):
        """Returns the summary's rows for the calls that meet the condition. `rows` has the sections that explain the verdict."""
        explaining = rows[-2]["found"].rpartition(f"{' '.join(map(str, ('', s.db, *selection)))} ")[2]
        commands = s.rows(f"SELECT cmdline, count(DISTINCT process_id), count(*) FROM calls JOIN processes USING (process_id) WHERE {where} "
                          "GROUP BY cmdline ORDER BY 3 DESC, 1")
        processes, begin_ns, end_ns = counts
        day, spent_ns = s.rows("SELECT strftime('%Y-%m-%d %H:%M:%S', (?1 + value) / 1e9, 'unixepoch', 'localtime'), "
                               f"(SELECT sum(duration_ns) FROM calls JOIN processes USING (process_id) WHERE {where}) FROM meta WHERE key = 'realtime_offset_ns'",
                               begin_ns)[0]
        copied = s.rows(f"SELECT kind, sum(bytes) / 1e6, count(*) FROM copies JOIN processes USING (process_id) WHERE {where} GROUP BY kind ORDER BY 2 DESC")
        launches, launch_ns = s.rows(f"SELECT count(*), total(duration_ns) FROM calls JOIN processes USING (process_id) WHERE {where} AND name = 'cuLaunchKernel'")[0]
        allocated = s.rows(f"SELECT kind, sum(allocations.bytes) / 1e6, count(*) FROM allocations JOIN calls USING (call_id) JOIN processes ON processes.process_id = calls.process_id WHERE {where} "
                           "GROUP BY kind ORDER BY 2 DESC")
        failed = s.value(f"SELECT count(*) FROM calls JOIN processes USING (process_id) WHERE {where} AND status = 2")
        total = sum(calls for _, _, calls in commands)
        return [("trace", str(s.db)), ("processes", f"{processes}"),
                *(("command", f"{calls:,} calls{f' in {count} processes' if count > 1 else ''}: {command}") for command, count, calls in commands),
                ("time", f"{(end_ns - begin_ns) / 1e9:.3f} s from {day}"), ("calls", f"{total:,} (driver {total:,}), {spent_ns / 1e6:.3f} ms in driver calls"),
                ("launches", f"{launches:,} kernels, {launch_ns / 1e6:.3f} ms"),
                ("memory", ", ".join(f"{kind} {mb:.3f} MB in {count:,}" for kind, mb, count in allocated) or "none"),
                ("copies", ", ".join(f"{kind} {mb:.3f} MB in {count:,}" for kind, mb, count in copied)),
                ("failures", f"{failed:,} driver calls failed, most often cuMemAlloc_v2: CUDA_ERROR_OUT_OF_MEMORY ({failed:,})"), ("losses", "none"),
                *(("next", " ".join(map(str, ("cudatrace report --db", s.db, *selection, sections)))) for sections in (explaining, "errors"))]

    equal(facts(found["summary"]), summary_of("1", found["summary"], (), 3, *s.rows("SELECT min(started_ns), max(ended_ns) FROM processes")[0]),
          "the summary")
    equal([row["paragraph"] for row in found["summary"]], [found["bottleneck"][0]["paragraph"]] + [None] * (len(found["summary"]) - 1), "the verdict")
    equal(report(s, "summary"), {"summary": found["summary"]}, "the summary without the section that judges")
    text = report(s, "summary", format="text")
    check(" ".join(text.split()).startswith("The trace on one screen " + found["bottleneck"][0]["paragraph"]) and len(text.splitlines()) <= 24, "a summary on one screen", text)
    for _, command in facts(found["summary"])[-2:]:
        done = s.run(CUDATRACE, *shlex.split(command)[1:], preload=False)
        check(done.stdout.count("\n\n") >= 1, command, "prints", done.stdout)

    # The reports on one process and on a window must agree with the rows.
    begun, _ = truth[straggler]
    alone = report(s, "--pid", straggler)
    equal({row["pid"] for section in ("processes", "threads", "launches", "memory") for row in alone[section]}, {straggler}, "--pid")
    equal([(row["calls"], row["processes"]) for row in alone["errors"]], [(FAILURES, 1)], "errors of a process")
    equal(facts(alone["summary"]), summary_of(f"processes.pid = {straggler}", alone["summary"], ("--pid", straggler), 1,
                                              *s.rows("SELECT started_ns, ended_ns FROM processes WHERE pid = ?", straggler)[0]), "the summary of a process")
    window = ("--from", f"@{begun['execution']}", "--to", f"@{begun['retrieval']}")
    within = f"call_id BETWEEN {begun['execution']} AND {begun['retrieval']} AND pid = {straggler}"
    seen = report(s, "--pid", straggler, *window)
    equal(facts(seen["summary"]), summary_of(f"call_id BETWEEN {begun['execution']} AND {begun['retrieval']} AND processes.pid = {straggler}",
                                             seen["summary"], ("--pid", straggler, *window), 1, begun["execution"], begun["retrieval"]), "the summary of a window")
    equal({row["function"]: (row["calls"], row["failed"]) for row in seen["functions"]},
          {name: (calls, failed) for name, calls, failed in s.rows(
              f"SELECT name, count(*), sum(status <> 0) FROM calls WHERE {within} GROUP BY name")}, "functions of a window")
    for row in seen["functions"]:
        durations = [ns for ns, in s.rows(f"SELECT duration_ns FROM calls WHERE {within} AND name = ? ORDER BY 1", row["function"])]
        equal(row["max_us"], round(durations[-1] / 1e3, 3), "the longest of a window")
        median_us = durations[-(-len(durations) // 2) - 1] / 1e3
        check(abs(row["p50_us"] - median_us) <= median_us / 32 + 0.001, "the median of a window", row, median_us)
    equal(row_of(seen["launches"], pid=straggler)["launches"], LAUNCHES, "launches of a window")
    equal(row_of(seen["kernels"], kernel="fill_u32")["launches"], LAUNCHES, "kernels of a window")
    equal([row["kind"] for row in seen["copies"]], ["HtoD"], "copies of a window")
    equal(seen["modules"], [], "modules of a window")
    equal([(row["calls"], row["processes"]) for row in seen["errors"]], [(FAILURES, 1)], "errors of a window")
    equal(sum(row["calls"] for row in seen["categories"]), s.value(f"SELECT count(*) FROM calls WHERE {within}"), "calls of a window")

    # Test times given relative to the start, relative to the end, and as times of day.
    end_ns = s.value("SELECT max(ended_ns) FROM processes")
    for option, ns in (("1.5ms", zero_ns + 1500000), (f"-{(end_ns - begun['retrieval']) / 1e9:.9f}", begun["retrieval"])):
        rows = report(s, "--from", option, "functions")["functions"]
        equal(sum(row["calls"] for row in rows), s.value("SELECT count(*) FROM calls WHERE call_id >= ?", ns), f"--from {option}")
    for option in ("0:00:00", "1970-01-01 00:00:00"):
        rows = report(s, "--from", option, "functions")["functions"]
        equal(sum(row["calls"] for row in rows), s.value("SELECT count(*) FROM calls"), f"--from {option}")

    # Test the formats. In JSON, numbers must be numbers, not strings.
    equal(list(csv.DictReader(io.StringIO(report(s, "copies", format="csv"))))[0].keys(), found["copies"][0].keys(), "columns as csv")
    check(isinstance(found["functions"][0]["total_ms"], float), "a number", found["functions"][0])
    # Options may follow arguments.
    equal(s.run(CUDATRACE, "report", "copies", "--format", "csv", "--db", s.db, preload=False).stdout, report(s, "copies", format="csv"), "report")
    equal(s.run(CUDATRACE, "sql", "SELECT 7 AS number", "--db", s.db, "--format", "csv", preload=False).stdout, "number\n7\n", "sql")
    markdown = report(s, "errors", format="markdown").splitlines()
    equal(markdown[0], "## Failed calls", "a heading")
    check(markdown[-3].startswith("| function | error |") and "OUT\\_OF\\_MEMORY" in markdown[-1], markdown)
    text = report(s, "errors", "losses", format="text")
    check(text.startswith("Failed calls\n\nfunction") and text.endswith("\nNo data: losses\n"), text)


# ---- a trace of exact times, with events of the kernel and hooks ----

# Each row is (tid, layer, name, begin in us, end in us, depth, additional details). The calls around the event at 2.6 ms and around the
# event at 11 ms are missing from the trace.
INSIDE = (
    (7, "driver", "cuInit", 0, 100, 0, {}),
    (7, "driver", "cuMemcpyHtoD_v2", 1000, 3000, 0, {}),
    (7, "hook", "ioctl", 1100, 1900, 1, {}),
    (7, "kernel", "blocked", 1200, 1700, 2, {}),
    (7, "kernel", "page_fault", 1800, 1800, 2, {}),
    (7, "kernel", "preempted", 2000, 2300, 1, {}),
    (7, "hook", "switch", 2350, 2350, 1, {}),
    (7, "kernel", "page_fault", 2400, 2400, 1, {}),
    (7, "kernel", "page_fault", 2500, 2500, 1, {}),
    (7, "driver", "cuCtxSynchronize", 4000, 9000, 0, {}),
    (7, "kernel", "blocked", 4200, 4500, 1, {}),
    (7, "driver", "cuStreamSynchronize", 4500, 8500, 1, {}),
    (7, "kernel", "blocked", 5000, 8000, 2, {}),
    (7, "kernel", "blocked", 8600, 8700, 1, {}),
    (7, "driver", "cuMemcpyHtoD_v2", 10000, 10500, 0, {}),
    (7, "kernel", "blocked", 11000, 11500, 1, {}),
    (7, "driver", "cuMemcpyHtoD_v2", 12000, 12200, 0, {}),
    (7, "hook", "batch", 13000, 20000, 0, {}),
    (7, "kernel", "blocked", 13500, 14000, 1, {}),
    (7, "driver", "cuLaunchKernel", 15000, 16000, 1, {}),
    (7, "kernel", "preempted", 15200, 15600, 2, {}),
    (7, "kernel", "page_fault", 15700, 15700, 2, {}),
    (8, "driver", "cuMemAlloc_v2", 1000, 6500, 0, {}),
    (8, "hook", "ioctl", 1500, 2500, 1, {"status": 5}),
    (8, "kernel", "preempted", 2600, 2700, 2, {}),
    (8, "hook", "ioctl", 3001, 3101, 1, {}),
    (9, "driver", "cuCtxSynchronize", 0, 50000, 0, {}),  # of a process without events
)
PIDS = {7: 7, 8: 7, 9: 9}
BLOCKED = ("function", "calls", "total_ms", "blocked_ms", "preempted_ms", "running_ms", "longest_sleep_ms")
FAULTS = ("function", "page_faults", "calls", "total_ms", "most_in_a_call")
KERNEL = ("tid", "function", "at_s", "ms", "blocked", "blocked_ms", "preempted", "preempted_ms", "running_ms", "page_faults", "hooks")
HOOKS = ("hook", "calls", "failed", "total_ms", "mean_us", "max_us", "skipped", "lost")
COPIED = (7, "cuMemcpyHtoD_v2", 0.001, 2.0, 1, 0.5, 1, 0.3, 1.2, 3, "ioctl: 1 in 0.800 ms, switch: 1 in 0.000 ms")
ALLOCATED = (8, "cuMemAlloc_v2", 0.001, 5.5, 0, 0.0, 1, 0.1, 5.4, 0, "ioctl: 2 in 1.100 ms")


def lines_of(calls):
    for number, (tid, layer, name, begin_us, end_us, depth, details) in enumerate(calls):
        category = {"kernel": "scheduling", "hook": "other"}.get(layer, "sync" if name.endswith("Synchronize") else "copy")
        for phase, at_us, has in ("B", begin_us, {"category": category, "depth": depth}), ("E", end_us, {"status": 0, **details}):
            yield json.dumps({"ts": at_us / 1e6, "op_id": number, "phase": phase, "name": name, "layer": layer, "pid": PIDS[tid], "tid": tid,
                              "details": has}) + "\n"


def rows_like(rows, columns):
    return [tuple(row[column] for column in columns) for row in rows]


with Session() as s:
    lines = s.dir / "lines.jsonl"
    lines.write_text("".join(lines_of(INSIDE)))
    s.run(CUDATRACE, "import", "--db", s.db, lines, preload=False)
    found = report(s, "blocked", "faults", "kernel", "hooks")
    equal(rows_like(found["blocked"], BLOCKED),
          [("cuCtxSynchronize", 1, 5.0, 3.4, 0.0, 1.6, 3.0), ("cuStreamSynchronize", 1, 4.0, 3.0, 0.0, 1.0, 3.0),
           ("cuMemcpyHtoD_v2", 1, 2.0, 0.5, 0.3, 1.2, 0.5), ("cuLaunchKernel", 1, 1.0, 0.0, 0.4, 0.6, None),
           ("cuMemAlloc_v2", 1, 5.5, 0.0, 0.1, 5.4, None)], "blocked")
    equal(rows_like(found["faults"], FAULTS), [("cuMemcpyHtoD_v2", 3, 1, 2.0, 3), ("cuLaunchKernel", 1, 1, 1.0, 1)], "faults")
    equal(rows_like(found["kernel"], KERNEL),
          [ALLOCATED, (7, "cuCtxSynchronize", 0.004, 5.0, 3, 3.4, 0, 0.0, 1.6, 0, ""), (7, "cuStreamSynchronize", 0.0045, 4.0, 1, 3.0, 0, 0.0, 1.0, 0, ""),
           COPIED, (7, "cuLaunchKernel", 0.015, 1.0, 0, 0.0, 1, 0.4, 0.6, 1, ""), (7, "cuMemcpyHtoD_v2", 0.01, 0.5, 0, 0.0, 0, 0.0, 0.5, 0, ""),
           (7, "cuMemcpyHtoD_v2", 0.012, 0.2, 0, 0.0, 0, 0.0, 0.2, 0, ""), (7, "cuInit", 0.0, 0.1, 0, 0.0, 0, 0.0, 0.1, 0, "")], "kernel")
    equal(rows_like(found["hooks"], HOOKS), [("batch", 1, 0, 7.0, 7000.0, 7000.0, 0, 0), ("ioctl", 3, 1, 1.9, 633.333, 1000.0, 0, 0),
                                             ("switch", 1, 0, 0.0, 0.0, 0.0, 0, 0)], "hooks")
    for row, median_us in zip(found["hooks"], (7000, 800, 0)):
        close(row["median_us"], median_us, median_us / 31, f"the median of {row['hook']}")
    equal(s.rows("SELECT name, duration_ns FROM calls WHERE call_id IN (%s) ORDER BY duration_ns DESC" %
                 ", ".join(str(row["call_id"]) for row in found["kernel"])), [(row["function"], row["ms"] * 1e6) for row in found["kernel"]], "call_id")

    equal(s.rows("SELECT name, blocked, blocked_ns / 1000, preempted, preempted_ns / 1000, page_faults FROM off_cpu ORDER BY call_id"),
          [("ioctl", 1, 500, 0, 0, 1), ("cuMemcpyHtoD_v2", 0, 0, 1, 300, 2), ("cuMemAlloc_v2", 0, 0, 1, 100, 0), ("cuStreamSynchronize", 1, 3000, 0, 0, 0),
           ("cuCtxSynchronize", 2, 400, 0, 0, 0), ("cuLaunchKernel", 0, 0, 1, 400, 1), ("batch", 1, 500, 0, 0, 0)], "off_cpu")

    # A sleep counts toward every call around it, but not toward a call that begins exactly when the sleep ends.
    equal(s.rows("SELECT name, duration_ns / 1000, blocked_ns / 1000 FROM waits ORDER BY call_id"),
          [("cuStreamSynchronize", 4000, 3000), ("cuCtxSynchronize", 5000, 3400), ("cuCtxSynchronize", 50000, 0)], "waits")

    # If a call returns within the window, all its events count, even events before the window. The events of other calls do not count.
    window = report(s, "--from", "2450us", "--to", "3050us", "blocked", "faults", "kernel", "hooks")
    equal(rows_like(window["blocked"], BLOCKED), [("cuMemcpyHtoD_v2", 1, 2.0, 0.5, 0.3, 1.2, 0.5)], "blocked in a window")
    equal(rows_like(window["faults"], FAULTS), [("cuMemcpyHtoD_v2", 3, 1, 2.0, 3)], "faults in a window")
    equal(rows_like(window["kernel"], KERNEL), [COPIED], "kernel in a window")
    equal(rows_like(window["hooks"], (*HOOKS, "median_us")), [("ioctl", 1, 1, 1.0, 1000.0, 1000.0, 0, 0, 1000.0)], "hooks in a window")
    equal({section: report(s, "--pid", 9, section)[section] for section in window}, dict.fromkeys(window, []), "a process without events")
    equal(report(s, "--pid", 9, "kernel", "hooks", format="text"), "No data: kernel, hooks\n", "a process without events")

    # The sections must be the same if the trace consists of two files.
    shutil.copy(s.db, s.dir / "trace.2.db")
    for path, gone in ((s.db, "> 1002400000"), (s.dir / "trace.2.db", "<= 1002400000")):
        with contextlib.closing(sqlite3.connect(path)) as trace:
            trace.executescript(f"DELETE FROM call WHERE end_ns {gone}; DELETE FROM hook_call WHERE call_id {gone};")
    equal(report(s, *window), found, "sections of a trace of two files")
