#!/usr/bin/env python3
"""Compares a cudatrace database with CUPTI's counts for the same processes.

run.py calls check_activity(), check_calls() and check_database(). The script can also be run by hand on files that `run.py --out` kept:

    compare.py DATABASE TRUTH...
"""

import argparse
import collections
import os
import pathlib
import re
import sqlite3
import sys

# Kinds of copies that both CUPTI and cudatrace always name. Differences in other kinds of copies are only warnings.
FIRM_KINDS = ("HtoD", "DtoH", "DtoD")

# Driver functions whose calls CUPTI does not count completely. CUPTI makes no callback for cuGetExportTable. CUPTI is not yet running when
# a program calls cuGetProcAddress, cuInit and cuDriverGetVersion, and has already stopped when the program calls cuLibraryUnload and
# cuDevicePrimaryCtxRelease.
UNCOUNTED = {
    "cuGetExportTable",
    "cuGetProcAddress",
    "cuGetProcAddress_v2",
    "cuInit",
    "cuDriverGetVersion",
    "cuLibraryUnload",
    "cuDevicePrimaryCtxRelease",
    "cuDevicePrimaryCtxRelease_v2",
}

# Driver functions that the hook itself calls, for a kernel whose name it does not know. CUPTI counts these calls, but the trace does not.
QUERIES = {"cuFuncGetName", "cuKernelGetName"}

# Runtime functions that only compiler-generated code calls. CUPTI counts calls to these functions, but the hook does not trace them.
UNTRACED_RUNTIME = re.compile(r"__cuda")

ROWS_SHOWN = 15


class Report:
    """Counts the results of checks, and prints each result immediately."""

    def __init__(self, out=sys.stdout):
        self.out = out
        self.passed = 0
        self.failed = 0
        self.failures = []
        self.section = ""

    def begin(self, section):
        self.section = section
        self._line(f"== {section}")

    def check(self, ok, what, detail=()):
        """Counts and prints the result of a check. If the check failed, also prints the lines of `detail`."""
        if ok:
            self.passed += 1
            self._line(f"  ok    {what}")
            return True
        self.failed += 1
        self.failures.append(f"{self.section}: {what}")
        self._line(f"  FAIL  {what}")
        self._detail(detail)
        return False

    def warn(self, what, detail=()):
        self._line(f"  warn  {what}")
        self._detail(detail)

    def note(self, what, detail=()):
        self._line(f"        {what}")
        self._detail(detail)

    def finish(self):
        """Prints the last lines. Returns the exit status."""
        for failure in self.failures:
            self._line(f"failed: {failure}")
        self._line(f"{self.passed} passed, {self.failed} failed")
        return 1 if self.failed or not self.passed else 0

    def _detail(self, lines):
        for line in lines:
            self._line(f"          {line}")

    def _line(self, line):
        print(line, file=self.out, flush=True)


class Truth:
    """CUPTI's counts for one or more processes, read from the files that cupti_truth.c has written."""

    def __init__(self):
        self.kernels = collections.Counter()  # mangled -> count, graph launches included
        self.graph_kernels = collections.Counter()  # mangled -> count, only of graph launches
        self.copies = collections.Counter()  # (kind, async) -> count
        self.copied_bytes = collections.Counter()
        self.graph_copies = 0
        self.sets = 0
        self.set_bytes = 0
        self.graph_sets = 0
        self.calls = collections.Counter()  # driver function -> count
        self.runtime = collections.Counter()  # function of a shared libcudart -> count
        self.runtime_static = collections.Counter()  # function of a libcudart that is linked into a library -> count
        self.problems = []  # reasons not to trust the counts

    def read(self, path):
        complete = False
        with open(path, encoding="utf-8", errors="surrogateescape") as lines:
            for line in lines:
                field = line.rstrip("\n").split("\t")
                complete = field[0] == "end"
                self._take(path, field)
        if not complete:
            self.problems.append(f"{path}: has no last line")
        return self

    def saw_nothing(self):
        return not (self.kernels or self.copies or self.sets or self.calls or self.runtime or self.runtime_static)

    def _take(self, path, field):
        kind, value = field[0], field[1:]
        if kind == "kernel":
            self.kernels[value[0]] += int(value[1])
        elif kind == "graph_kernel":
            self.graph_kernels[value[0]] += int(value[1])
        elif kind in ("copy", "graph_copy"):
            # A `copy` line includes the copies in graph launches, and a `graph_copy` line counts only copies in graph launches. Keep the
            # difference between them.
            sign = 1 if kind == "copy" else -1
            key = (value[0], int(value[1] == "async"))
            self.copied_bytes[key] += sign * int(value[2])
            self.copies[key] += sign * int(value[3])
            self.graph_copies += int(value[3]) if kind == "graph_copy" else 0
        elif kind in ("memset", "graph_memset"):
            sign = 1 if kind == "memset" else -1
            self.set_bytes += sign * int(value[1])
            self.sets += sign * int(value[2])
            self.graph_sets += int(value[2]) if kind == "graph_memset" else 0
        elif kind == "call":
            self.calls[value[0]] += int(value[1])
        elif kind == "runtime":
            self.runtime[value[0]] += int(value[1])
        elif kind == "runtime_static":
            self.runtime_static[value[0]] += int(value[1])
        elif kind == "dropped":
            if int(value[0]):
                self.problems.append(f"{path}: CUPTI dropped {value[0]} records")
        elif kind == "error":
            self.problems.append(f"{path}: {value[0]} failed with {value[1]}")
        elif kind != "end":
            self.problems.append(f"{path}: unknown line {field!r}")


def open_database(path):
    """Opens a database read-only, because only the daemon may write to it."""
    if not os.path.exists(path):
        raise sqlite3.OperationalError(f"no database {path}")
    return sqlite3.connect(f"file:{path}?mode=ro", uri=True, timeout=10)


def match_processes(report, database, truth_paths):
    """Reads the truth file of each process in the database. Returns (the process_ids of these processes, one Truth for all of them)."""
    processes = collections.defaultdict(list)
    for process_id, pid in database.execute("SELECT process_id, pid FROM processes"):
        processes[pid].append(process_id)
    truth, matched, missing = Truth(), [], []
    for path in sorted(truth_paths):
        pid = int(path.rsplit(".", 1)[1])
        alone = Truth().read(path)
        saw = f"{sum(alone.kernels.values())} kernels, {sum(alone.copies.values())} copies, " \
            f"{sum(alone.calls.values())} calls by CUPTI"
        if pid in processes:
            matched += processes.pop(pid)
            # Ignore failures in a process without a CUDA context, where CUPTI's functions always fail. If the process has done any work,
            # CUPTI has counted something.
            if alone.saw_nothing() and alone.problems:
                report.warn(f"pid {pid}: CUPTI saw nothing", alone.problems)
            else:
                truth.read(path)
        elif not alone.saw_nothing():
            missing.append(f"pid {pid}: {saw}, nothing in the database")
    report.check(matched and not missing, f"CUPTI's {len(truth_paths)} processes are in the database",
                 missing or ["CUPTI wrote no truth for any process of the database"])
    report.check(not truth.problems, "CUPTI lost nothing", truth.problems)
    for pid, ids in processes.items():
        launched = database.execute(
            f"SELECT count(*) FROM launches WHERE process_id IN ({marks(ids)})", ids).fetchone()[0]
        if launched:
            report.warn(f"pid {pid}: {launched} launches in the database and no truth from CUPTI: not compared")
    return matched, truth


def marks(values):
    return ",".join("?" * len(values))


def differences(ours, theirs):
    """Returns a row (name, cudatrace's count, CUPTI's count) for each name whose counts differ, with the largest difference first."""
    names = [name for name in set(ours) | set(theirs) if ours.get(name, 0) != theirs.get(name, 0)]
    names.sort(key=lambda name: (-abs(ours.get(name, 0) - theirs.get(name, 0)), str(name)))
    return [(name, ours.get(name, 0), theirs.get(name, 0)) for name in names]


def is_query(name, ours, theirs):
    """Returns whether the hook's own calls of the function explain the difference."""
    return name in QUERIES and ours < theirs


def table(rows, other="CUPTI"):
    lines = [f"{'cudatrace':>10} {other:>10} {'diff':>8}  name"]
    for name, ours, theirs in rows[:ROWS_SHOWN]:
        lines.append(f"{ours:>10} {theirs:>10} {ours - theirs:>+8}  {name}")
    if len(rows) > ROWS_SHOWN:
        lines.append(f"... and {len(rows) - ROWS_SHOWN} more")
    return lines


class Launches:
    """The successful launches of the given processes, and the graphs that these processes have replayed."""

    def __init__(self, database, processes):
        self.direct = collections.Counter()  # mangled -> executed at once
        self.captured = collections.Counter()  # mangled -> recorded into a graph
        for mangled, captured, count in database.execute(
                f"""SELECT mangled, captured, count(*) FROM launches
                     WHERE process_id IN ({marks(processes)})
                       AND call_id NOT IN (SELECT call_id FROM calls WHERE status <> 0)
                     GROUP BY 1, 2""", processes):
            into = self.captured if captured else self.direct
            into["(no name)" if mangled is None else mangled] += count
        self.replays, self.graphs, self.graph_kernels = database.execute(
            f"""SELECT count(*), count(DISTINCT process_id || ' ' || graph_exec), coalesce(sum(kernel_nodes), 0)
                  FROM graph_launches
                 WHERE process_id IN ({marks(processes)}) AND NOT captured
                   AND call_id NOT IN (SELECT call_id FROM calls WHERE status <> 0)""", processes).fetchone()


def check_kernels(report, database, processes, truth, expected=None):
    launches = Launches(database, processes)
    direct, captured = sum(launches.direct.values()), sum(launches.captured.values())
    ours, theirs = direct + launches.graph_kernels, sum(truth.kernels.values())
    report.check(
        ours == theirs and theirs > 0,
        f"kernels: {direct + captured} launches - {captured} captured + {launches.graph_kernels} in "
        f"{launches.replays} graph launches = {ours}; CUPTI {theirs}")
    if expected is not None:
        report.check(theirs == expected, f"kernels: the program runs {expected}; CUPTI {theirs}")
    report.check(
        launches.graph_kernels == sum(truth.graph_kernels.values()),
        f"kernels of graph launches: {launches.graph_kernels}; CUPTI {sum(truth.graph_kernels.values())}")

    outside = truth.kernels - truth.graph_kernels
    differing = differences(launches.direct, outside)
    report.check(not differing, f"kernels outside graphs, by each of {len(outside)} names", table(differing))
    if launches.graphs == 1:
        replayed = {name: count * launches.replays for name, count in launches.captured.items()}
        differing = differences(replayed, truth.graph_kernels)
        report.check(not differing, f"kernels of the one graph, by each of {len(replayed)} names: "
                     f"captured x {launches.replays} replays", table(differing))
    elif launches.graphs:
        report.note(f"{launches.graphs} graphs: kernels of graph launches are compared in total, not by name")


def check_copies(report, database, processes, truth):
    """Compares the copies that calls executed. Leaves out captured copies, which are not executed by the call, and copies that a graph
    makes, which only CUPTI records."""
    count, size = collections.Counter(), collections.Counter()
    # Leave out copies of 0 bytes, because CUPTI has no records of them.
    for kind, is_async, copies, copied in database.execute(
            f"""SELECT kind, async, count(*), sum(bytes) FROM copies
                 WHERE process_id IN ({marks(processes)}) AND NOT captured AND bytes IS NOT 0
                   AND call_id NOT IN (SELECT call_id FROM calls WHERE status <> 0)
                 GROUP BY 1, 2""", processes):
        count[kind, is_async] += copies
        size[kind, is_async] += copied or 0

    def total(counter, kind):
        return sum(value for (name, _), value in counter.items() if name == kind)

    # cudatrace does not know the direction of a copy between unified addresses. If the sums over all kinds agree, only the copies' kinds
    # are unknown, and nothing is missing.
    unlabelled = total(count, "unknown") and sum(count.values()) == sum(truth.copies.values()) and \
        sum(size.values()) == sum(truth.copied_bytes.values())
    others = {kind for kind, _ in list(count) + list(truth.copies)} - set(FIRM_KINDS)
    for kind in FIRM_KINDS + tuple(sorted(others)):
        ours, theirs = total(count, kind), total(truth.copies, kind)
        our_bytes, their_bytes = total(size, kind), total(truth.copied_bytes, kind)
        line = f"copies {kind}: {ours} of {our_bytes} bytes; CUPTI {theirs} of {their_bytes}"
        same = (ours, our_bytes) == (theirs, their_bytes)
        if kind in FIRM_KINDS and not unlabelled:
            report.check(same, line)
        elif not same:
            report.warn(line)
    if truth.graph_copies:
        report.note(f"graphs made {truth.graph_copies} copies more: not compared")
    differing = differences(count, truth.copies)
    if differing:
        report.warn("copies by (kind, async)", table(differing))


def check_sets(report, database, processes, truth):
    count, size = database.execute(
        f"""SELECT count(*), coalesce(sum(bytes), 0) FROM memsets
             WHERE process_id IN ({marks(processes)}) AND NOT captured AND bytes IS NOT 0
               AND call_id NOT IN (SELECT call_id FROM calls WHERE status <> 0)""", processes).fetchone()
    report.check((count, size) == (truth.sets, truth.set_bytes),
                 f"sets: {count} of {size} bytes; CUPTI {truth.sets} of {truth.set_bytes}")
    if truth.graph_sets:
        report.note(f"graphs made {truth.graph_sets} sets more: not compared")


def without_form(name):
    """Returns CUPTI's name for a runtime function, which has no suffix _v2 or _v3. CUDA 11 and 12 export some functions under names with
    such a suffix."""
    return re.sub(r"_v\d(?=_ptsz$|$)", "", name)


def runtime_calls(database, processes):
    """Returns {runtime function: number of calls}. These include the call that loads CUPTI, because CUPTI counts it as well."""
    counts = collections.Counter()
    for name, calls in database.execute(
            f"SELECT name, sum(calls) FROM totals WHERE layer = 'runtime' AND process_id IN ({marks(processes)}) "
            "GROUP BY 1", processes):
        counts[without_form(name)] += calls
    return counts


def check_runtime_calls(report, database, processes, truth, strict):
    """Compares the number of calls to each function of shared libcudarts."""
    ours = runtime_calls(database, processes)
    theirs = collections.Counter()
    for name, count in truth.runtime.items():
        if not UNTRACED_RUNTIME.match(name):
            theirs[without_form(name)] += count
    if truth.runtime_static:
        report.note(f"runtime calls of libcudarts linked into libraries: {sum(truth.runtime_static.values())} of "
                    f"{len(truth.runtime_static)} functions by CUPTI: not compared")
    if not ours and not theirs:
        report.note("no calls of a shared libcudart")
        return
    rows = differences(ours, theirs)
    what = f"runtime calls by function: {len(rows)} differ of {len(set(ours) | set(theirs))}; cudatrace " \
        f"{sum(ours.values())}, CUPTI {sum(theirs.values())}"
    if strict or not rows:
        report.check(not rows, what, table(rows))
    else:
        report.warn(what, table(rows))


def check_calls(report, database, truth_paths, strict):
    """Compares the number of calls to each driver and runtime function with the number of CUPTI's callbacks."""
    processes, truth = match_processes(report, database, truth_paths)
    ours = dict(database.execute(
        f"""SELECT name, sum(calls) FROM totals
             WHERE layer = 'driver' AND process_id IN ({marks(processes)}) GROUP BY 1""", processes))
    report.check(sum(truth.calls.values()) > 0, f"driver calls: {sum(ours.values())} of {len(ours)} functions; "
                 f"CUPTI {sum(truth.calls.values())} of {len(truth.calls)}")
    rows = differences(ours, truth.calls)
    expected = [row for row in rows if row[0] in UNCOUNTED]
    queries = [row for row in rows if is_query(*row)]
    others = [row for row in rows if row[0] not in UNCOUNTED and row not in queries]
    if expected:
        report.note("functions that CUPTI does not count in full", table(expected))
    if queries:
        report.note("functions that the hook has called, too", table(queries))
    what = f"driver calls by function: {len(others)} differ of {len(set(ours) | set(truth.calls))}"
    if strict or not others:
        report.check(not others, what, table(others))
    else:
        report.warn(what, table(others))
    check_runtime_calls(report, database, processes, truth, strict)


def check_activity(report, database, truth_paths, expected_kernels=None):
    """Compares the numbers of kernels, copies and sets with CUPTI's activity records."""
    processes, truth = match_processes(report, database, truth_paths)
    check_kernels(report, database, processes, truth, expected_kernels)
    check_copies(report, database, processes, truth)
    check_sets(report, database, processes, truth)


def document_query(heading):
    """Returns the first query below the given heading in docs/sql.md."""
    text = (pathlib.Path(__file__).resolve().parents[2] / "docs/sql.md").read_text()
    return text.partition(f"## {heading}\n")[2].partition("```sql\n")[2].partition("```")[0]


def check_layers(report, database):
    """Checks that a single query shows a range, a runtime call inside the range, a driver call inside the runtime call, and an ioctl inside
    the driver call."""
    rows = database.execute(document_query("What does each range make the driver ask of the kernel?")).fetchall()
    report.check(rows, f"range, runtime call, driver call, ioctl: {len(rows)} combinations, nested by depth")
    for row in rows[:5]:
        report.note(" > ".join(map(str, row[:5])) + f", {row[5]} times")


def scalar(database, query):
    return database.execute(query).fetchone()[0]


def check_sums(report, database):
    """Checks that no calls were lost, and that each call is in the trace exactly once, in the order of return."""

    calls = scalar(database, "SELECT count(*) FROM calls")
    report.check(calls > 0, f"the database holds {calls} calls of {scalar(database, 'SELECT count(*) FROM processes')} processes")

    lost = database.execute("SELECT name, lost FROM totals WHERE lost <> 0 ORDER BY lost DESC").fetchall()
    causes = database.execute("SELECT cause, sum(calls) FROM losses GROUP BY 1 HAVING sum(calls) <> 0").fetchall()
    report.check(not lost and not causes, "nothing lost",
                 [f"{count} {name}" for name, count in (causes + lost)[:ROWS_SHOWN]])

    unequal = database.execute(
        """SELECT t.process_id, t.layer, t.name, t.calls, t.stored, t.lost, t.skipped, coalesce(c.rows, 0)
             FROM totals t
             LEFT JOIN (SELECT process_id, layer, name, count(*) AS rows FROM calls GROUP BY 1, 2, 3) c
               ON (c.process_id, c.layer, c.name) = (t.process_id, t.layer, t.name)
            WHERE t.calls <> t.stored + t.lost + t.skipped OR t.stored <> coalesce(c.rows, 0)""").fetchall()
    stored = scalar(database, "SELECT coalesce(sum(stored), 0) FROM totals")
    report.check(not unequal and stored == calls, "calls = stored + lost + skipped, and stored rows are there",
                 [f"process {row[0]} {row[1]} {row[2]}: calls {row[3]}, stored {row[4]}, lost {row[5]}, "
                  f"skipped {row[6]}, rows {row[7]}" for row in unequal[:ROWS_SHOWN]]
                 or [f"stored {stored}, rows {calls}"])

    backwards = scalar(database, """SELECT count(*) FROM (SELECT end_ns - lag(end_ns) OVER (ORDER BY call_id) AS step FROM calls)
                           WHERE step < 0""")
    negative = scalar(database, "SELECT count(*) FROM calls WHERE end_ns < start_ns")
    report.check(not backwards and not negative, "every row in the order of its return",
                 [f"{backwards} rows out of order, {negative} that return before they start"])


def check_database(report, database):
    """Checks the conditions that must hold for every database."""
    check_sums(report, database)
    open_calls = database.execute("SELECT process_id, tid, name FROM open_calls JOIN processes USING (process_id)"
                                  " WHERE state = 'exited'").fetchall()
    report.check(not open_calls, "no call of a process that ended by itself is shown as open",
                 [f"process {row[0]}, thread {row[1]}: {row[2]}" for row in open_calls])

    nameless = database.execute(
        r"""SELECT kernel, mangled, count(*) FROM launches
             WHERE kernel IS NULL OR kernel = '' OR kernel GLOB '_Z*' OR mangled IS NULL OR mangled = ''
             GROUP BY 1, 2 ORDER BY 3 DESC""").fetchall()
    kernels = scalar(database, "SELECT count(DISTINCT kernel) FROM launches")
    report.check(not nameless and kernels > 0, f"demangled names for all of {kernels} kernels",
                 [f"{count} x {kernel!r} ({mangled!r})" for kernel, mangled, count in nameless[:ROWS_SHOWN]])

    running = scalar(database, "SELECT count(*) FROM processes WHERE state = 'running'")
    if running:
        report.warn(f"{running} processes still stand as running")


def main():
    parser = argparse.ArgumentParser(description="Compare a cudatrace database with truth files from CUPTI.")
    parser.add_argument("--strict-calls", action="store_true", help="fail on any unexplained difference in calls")
    parser.add_argument("--kernels", type=int, help="how many kernels the program runs")
    parser.add_argument("database")
    parser.add_argument("truth", nargs="+", help="files named ....PID")
    arguments = parser.parse_args()
    report = Report()
    report.begin(arguments.database)
    with open_database(arguments.database) as database:
        check_database(report, database)
        check_activity(report, database, arguments.truth, arguments.kernels)
        if any(Truth().read(path).calls for path in arguments.truth):
            check_calls(report, database, arguments.truth, arguments.strict_calls)
    return report.finish()


if __name__ == "__main__":
    sys.exit(main())
