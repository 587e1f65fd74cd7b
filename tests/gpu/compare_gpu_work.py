#!/usr/bin/env python3
"""Compares the GPU work in a trace with the counts that CUPTI made in another run of the same program.

run.py calls check_gpu_work(). The script can also be run by hand on files that `run.py --out` kept:

    compare_gpu_work.py DATABASE TRUTH...
"""
import collections
import contextlib
import sys

import compare


def read_truth(report, paths):
    """Returns one Truth for all processes of the run."""
    truth = compare.Truth()
    for path in sorted(paths):
        alone = compare.Truth().read(path)
        if not (alone.saw_nothing() and alone.problems):  # CUPTI fails in a process that has no context
            truth.read(path)
    report.check(not truth.saw_nothing() and not truth.problems, "CUPTI counted work, and lost nothing", truth.problems)
    return truth


def check_kernels(report, database, truth):
    ours = collections.Counter(dict(database.execute(
        "SELECT ifnull(mangled, '(no name)'), count(*) FROM gpu_work WHERE kind = 'kernel' GROUP BY 1")))
    differing = compare.differences(ours, truth.kernels)
    report.check(ours and not differing, f"kernels: {sum(ours.values())} of {len(ours)} names; CUPTI {sum(truth.kernels.values())} of "
                 f"{len(truth.kernels)}", compare.table(differing))


def check_transfers(report, database, truth):
    """Compares copies and sets, unless graphs made some of them, because Truth contains only the total number of copies and sets made by
    graphs."""
    if truth.graph_copies or truth.graph_sets:
        report.note(f"graphs made {truth.graph_copies} copies and {truth.graph_sets} sets: copies and sets are not compared")
        return
    ours = {kind: (count, size) for kind, count, size in database.execute(
        "SELECT ifnull(copy_kind, 'set'), count(*), sum(bytes) FROM gpu_work WHERE kind IN ('copy', 'set') GROUP BY 1")}
    theirs = collections.defaultdict(lambda: (0, 0))
    for (kind, _), count in truth.copies.items():
        theirs[kind] = (theirs[kind][0] + count, theirs[kind][1])
    for (kind, _), size in truth.copied_bytes.items():
        theirs[kind] = (theirs[kind][0], theirs[kind][1] + size)
    if truth.sets:
        theirs["set"] = (truth.sets, truth.set_bytes)
    for kind in sorted(set(ours) | set(theirs)):
        (count, size), (their_count, their_size) = ours.get(kind, (0, 0)), theirs[kind]
        report.check((count, size) == (their_count, their_size), f"{kind}: {count} of {size} bytes; CUPTI {their_count} of {their_size}")


def check_times(report, database):
    rows, without_call, before_call, negative, longest_ms = database.execute(
        """SELECT count(*), sum(gpu_work.call_id IS NULL), sum(gpu_start_ns < start_ns), sum(gpu_work.duration_ns < 0),
                  max(gpu_work.duration_ns) / 1e6
             FROM gpu_work LEFT JOIN calls USING (call_id)""").fetchone()
    report.check(rows > 0 and not without_call, f"each of {rows} rows of gpu_work has its call", [f"{without_call} have none"])
    report.check(not before_call and not negative, f"work begins after its call begins; the longest takes {longest_ms or 0:.3f} ms",
                 [f"{before_call} begin before their calls, {negative} end before they begin"])
    dropped = database.execute("SELECT ifnull(sum(calls), 0) FROM losses WHERE cause = 'cupti'").fetchone()[0]
    report.check(not dropped, "CUPTI dropped no record", [f"{dropped} were dropped"])


def check_gpu_work(report, database, truth_paths):
    truth = read_truth(report, truth_paths)
    check_kernels(report, database, truth)
    check_transfers(report, database, truth)
    check_times(report, database)


def main():
    if len(sys.argv) < 3 or sys.argv[1].startswith("-"):
        sys.exit(__doc__.strip())
    report = compare.Report()
    with contextlib.closing(compare.open_database(sys.argv[1])) as database:
        check_gpu_work(report, database, sys.argv[2:])
    return report.finish()


if __name__ == "__main__":
    sys.exit(main())
