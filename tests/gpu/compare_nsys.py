#!/usr/bin/env python3
"""Compares the GPU work in a trace with what Nsight Systems recorded in another run of the same program, and checks that `nsys stats` reads
the exported trace.

run.py calls check_work() and check_stats(). The first can also be run by hand on files that `run.py --out` kept:

    compare_nsys.py DATABASE NSYS_SQLITE
"""
import collections
import contextlib
import csv
import sqlite3
import sys

import compare

TOLERANCE = 0.01  # of the sum of the kernels' times, which differ slightly between two runs

# {report of `nsys stats`: (the kinds of work in it, its columns for the number and the time; each row of a trace is one piece of work)}
STATS = {
    "cuda_gpu_kern_sum": (("kernels",), "Instances", "Total Time (ns)"),
    "cuda_gpu_mem_time_sum": (("copies", "sets"), "Count", "Total Time (ns)"),
    "cuda_gpu_trace": (("kernels", "copies", "sets"), None, "Duration (ns)"),
}
OURS = {
    "kernels": "SELECT ifnull(mangled, '(no name)'), count(*), sum(duration_ns) FROM gpu_work WHERE kind = 'kernel' GROUP BY 1",
    "copies": "SELECT copy_kind, count(*), sum(duration_ns) FROM gpu_work WHERE kind = 'copy' GROUP BY 1",
    "sets": "SELECT 'set', count(*), sum(duration_ns) FROM gpu_work WHERE kind = 'set' GROUP BY 1",
}
THEIRS = {
    "kernels": """SELECT value, count(*), sum(end - start) FROM CUPTI_ACTIVITY_KIND_KERNEL
                    LEFT JOIN StringIds ON id = ifnull(mangledName, demangledName) GROUP BY 1""",
    "copies": """SELECT CASE copyKind WHEN 1 THEN 'HtoD' WHEN 2 THEN 'DtoH' WHEN 8 THEN 'DtoD' ELSE copyKind END, count(*), sum(end - start)
                   FROM CUPTI_ACTIVITY_KIND_MEMCPY GROUP BY 1""",
    "sets": "SELECT 'set', count(*), sum(end - start) FROM CUPTI_ACTIVITY_KIND_MEMSET GROUP BY 1",
}


def counts_and_time(database, query):
    """Returns (the number of pieces of work by name, the sum of their times in nanoseconds)."""
    rows = database.execute(query).fetchall()
    return collections.Counter({name: count for name, count, _ in rows if count}), sum(time or 0 for _, _, time in rows)


def check_work(report, database, path):
    """Compares how often each name occurs, and the sum of the kernels' times. `path` is the SQLite file that `nsys export` wrote,
    in which there is no table for a kind of work that did not occur."""
    with contextlib.closing(sqlite3.connect(f"file:{path}?mode=ro", uri=True)) as nsys:
        tables = {name for name, in nsys.execute("SELECT name FROM sqlite_master WHERE type = 'table'")}
        for kind, query in THEIRS.items():
            ours, our_ns = counts_and_time(database, OURS[kind])
            is_there = any(f"FROM {table}" in query for table in tables)
            theirs, their_ns = counts_and_time(nsys, query) if is_there else (collections.Counter(), 0)
            differing = compare.differences(ours, theirs)
            report.check(not differing, f"{kind}: {ours.total()} of {len(ours)} names; nsys {theirs.total()} of {len(theirs)}",
                         compare.table(differing, "nsys"))
            ratio = our_ns / their_ns if their_ns else float("nan")
            line = f"{kind} take {our_ns / 1e6:.3f} ms; nsys {their_ns / 1e6:.3f} ms; ratio {ratio:.4f}"
            if kind == "kernels":
                report.check(abs(ratio - 1) <= TOLERANCE, line)
            elif ours:
                report.note(line)


def check_stats(report, database, files):
    """Compares the trace with the tables that `nsys stats --format csv` made of the exported trace. `files` has the path of each of STATS."""
    for name, (kinds, count, time) in STATS.items():
        ours = [counts_and_time(database, OURS[kind]) for kind in kinds]
        wanted = sum(counts.total() for counts, _ in ours), sum(time_ns for _, time_ns in ours)
        with open(files[name], encoding="utf-8", newline="") as file:
            rows = list(csv.DictReader(file))
        found = sum(int(row[count]) for row in rows) if count else len(rows), sum(int(row[time]) for row in rows)
        report.check(found == wanted, f"nsys stats reads the export, {name}: {found[0]} pieces of work, {found[1] / 1e6:.3f} ms",
                     [f"the trace has {wanted[0]}, {wanted[1] / 1e6:.3f} ms"])


def main():
    if len(sys.argv) != 3 or sys.argv[1].startswith("-"):
        sys.exit(__doc__.strip())
    report = compare.Report()
    with contextlib.closing(compare.open_database(sys.argv[1])) as database:
        check_work(report, database, sys.argv[2])
    return report.finish()


if __name__ == "__main__":
    sys.exit(main())
