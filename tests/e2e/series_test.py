"""Code shared by the tests of traces with several files (cudatraced --max-db)."""
import json
import os
import re

from cudatrace_test import CUDATRACE, SOURCE, WORKLOADS, check, equal


def sql(s, query, db=None):
    return [list(row.values()) for row in json.loads(
        s.run(CUDATRACE, "sql", "--db", db or s.db, "--format", "json", query, preload=False).stdout)]


def value(s, query, db=None):
    return sql(s, query, db)[0][0]


def files(s):
    """Returns the numbers of the trace's files in ascending order."""
    names = [re.fullmatch(r"trace(?:\.(\d+))?\.db", name) for name in os.listdir(s.dir)]
    return sorted(int(name.group(1) or 1) for name in names if name)


def file(s, number):
    return s.db if number == 1 else s.dir / f"trace.{number}.db"


def disk_bytes(s):
    return sum(path.stat().st_blocks * 512 for path in s.dir.glob("trace*.db*") if not path.name.endswith(".log"))


def check_series(s, db=None):
    """Checks that the sums agree with the rows, both over all files and in each file, that no row exists twice, and that every row with
    details belongs to an existing call."""
    wrong = """SELECT totals.process_id, layer, name, stored - expired AS counted, found FROM totals LEFT JOIN
        (SELECT process_id, layer, name, count(*) AS found FROM calls GROUP BY 1, 2, 3) USING (process_id, layer, name)
        WHERE calls <> stored + lost + skipped OR stored - expired <> ifnull(found, 0)"""
    equal(sql(s, wrong, db), [], "sums that disagree with the rows of all files")
    # Count all calls only once, because counting them takes half a second if there are many files.
    rows, different = sql(s, "SELECT count(*), count(DISTINCT call_id) FROM calls", db)[0]
    equal(rows - different, 0, "rows that calls has twice")
    equal(value(s, "SELECT sum(stored - expired) FROM totals", db), rows, "rows of all sums")
    for key, view in (("call_id", "allocations"), ("process_id", "processes"), ("thread_id", "threads")):
        equal(value(s, f"SELECT count(*) - count(DISTINCT {key}) FROM {view}", db), 0, f"rows that {view} has twice")
    equal(value(s, "SELECT (SELECT sum(stored) FROM totals) - (SELECT sum(calls) FROM durations)", db), 0, "durations")
    equal(value(s, "SELECT (SELECT sum(failed) FROM totals) - (SELECT ifnull(sum(calls), 0) FROM failures)", db), 0, "failures")
    equal(value(s, "SELECT count(*) FROM launches WHERE kernel IS NULL", db), 0, "launches without a name")
    equal(value(s, "SELECT count(*) FROM launches WHERE call_id NOT IN (SELECT call_id FROM calls)", db), 0, "launches without a call")
    equal(value(s, "SELECT ifnull(sum(launches), 0) FROM launch_sums()", db), value(s, "SELECT (SELECT count(*) FROM launches) + (SELECT count(*) FROM "
                   "graph_launches)", db), "launches in one pass")
    for number in files(s):
        if s.value("PRAGMA application_id", db=file(s, number)) == 0:
            continue  # a daemon was killed while it made this file; a later daemon will use the file
        # In the sums of a single file, the rows of the other files count as expired.
        equal(s.rows("SELECT * FROM totals WHERE calls <> stored + lost + skipped", db=file(s, number)), [], "identities")
        equal(s.value("SELECT (SELECT sum(stored - expired) FROM totals) - (SELECT count(*) FROM calls)",
                      db=file(s, number)) or 0, 0, f"rows of file {number} that no total of it counts")
        equal(s.value("PRAGMA integrity_check", db=file(s, number)), "ok", f"file {number}")


def check_plans(s):
    """Checks that no section of the report and of `diff` copies the rows of a view for a join, if the view has a row for each call or launch.
    If it did, the section would read all of these rows, or even compare each of them with each row of another table."""
    views = re.findall(r"^-- files: by call_id\nCREATE VIEW (\w+)", "".join(path.read_text() for path in (SOURCE / "schema").glob("views*.sql")), re.M)
    check("calls" in views and "launches" in views, "views", views)
    copied = re.compile(rf"MATERIALIZE ({'|'.join(views)})$|SEARCH ({'|'.join(views)}) USING AUTOMATIC", re.M)
    sections = [*(SOURCE / "schema/reports").glob("*.sql"), *(SOURCE / "schema/diffs").glob("*.sql")]
    for section in sections:
        for part in re.split(r"^-- name: (?!compare)\w+\n", section.read_text().partition("-- name: compare")[0], flags=re.M):
            if "SELECT" in part:
                plan = s.run(CUDATRACE, "sql", "--db", s.db, "-", preload=False, input="EXPLAIN QUERY PLAN\n" + part).stdout
                check(not copied.search(plan), section.name, plan)
    check(len(sections) > 30, "sections", sections)


def check_truth(s):
    seen = {(pid, name): calls for pid, name, calls in sql(
        s, "SELECT pid, totals.name, sum(calls) FROM totals JOIN processes USING (process_id) WHERE layer = 'driver' "
           "GROUP BY pid, totals.name")}
    equal(seen, s.truth(), "calls of all files, and the driver's own count")


def workload(s, calls, *more, **options):
    return s.start(WORKLOADS / "calls", "--threads", 2, "--mix", "training", "--rate", 100000, "--burst", 50, "--calls", calls, *more, stdout=-3, **options)
