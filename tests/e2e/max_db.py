"""cudatraced --max-db: the trace goes on in numbered files, which are read as one, and takes no more than it may; nothing
is lost or counted twice where one file ends and the next begins, whoever dies there; and a reader that never ends holds one
file's log and no more."""
import contextlib
import json
import os
import re
import signal
import sqlite3

from cudatrace_test import CUDATRACE, DAEMON, Session, WORKLOADS, check, equal, fifo

VIEWS = ("calls", "launches", "copies", "memsets", "allocations", "processes", "threads", "totals", "losses", "open_calls")


def sql(s, query, db=None):
    return [list(row.values()) for row in json.loads(
        s.run(CUDATRACE, "sql", "--db", db or s.db, "--format", "json", query, preload=False).stdout)]


def value(s, query, db=None):
    return sql(s, query, db)[0][0]


def files(s):
    """The numbers of the trace's files, in order."""
    names = [re.fullmatch(r"trace(?:\.(\d+))?\.db", name) for name in os.listdir(s.dir)]
    return sorted(int(name.group(1) or 1) for name in names if name)


def file(s, number):
    return s.db if number == 1 else s.dir / f"trace.{number}.db"


def disk_bytes(s):
    return sum(path.stat().st_blocks * 512 for path in s.dir.glob("trace*.db*") if not path.name.endswith(".log"))


def check_series(s, db=None):
    """The identity over all files, and in each of them; nothing twice, and each part with its call."""
    wrong = """SELECT totals.process_id, layer, name, stored - expired AS counted, found FROM totals LEFT JOIN
        (SELECT process_id, layer, name, count(*) AS found FROM calls GROUP BY 1, 2, 3) USING (process_id, layer, name)
        WHERE calls <> stored + lost + skipped OR stored - expired <> ifnull(found, 0)"""
    equal(sql(s, wrong, db), [], "sums that disagree with the rows of all files")
    equal(value(s, "SELECT sum(stored - expired) - (SELECT count(*) FROM calls) FROM totals", db), 0, "rows without a sum")
    for key, view in (("call_id", "calls"), ("call_id", "allocations"), ("process_id", "processes"), ("thread_id", "threads")):
        equal(value(s, f"SELECT count(*) - count(DISTINCT {key}) FROM {view}", db), 0, f"rows that {view} has twice")
    equal(value(s, "SELECT count(*) FROM launches WHERE kernel IS NULL", db), 0, "launches without a name")
    equal(value(s, "SELECT (SELECT count(*) FROM launches) - (SELECT count(*) FROM calls JOIN launches USING (call_id))", db),
          0, "launches without a call")
    for number in files(s):
        # To whoever reads one file alone, the others' rows have expired.
        equal(s.rows("SELECT * FROM totals WHERE calls <> stored + lost + skipped", db=file(s, number)), [], "identities")
        equal(s.value("SELECT (SELECT sum(stored - expired) FROM totals) - (SELECT count(*) FROM calls)",
                      db=file(s, number)) or 0, 0, f"rows of file {number} that no total of it counts")
        equal(s.value("PRAGMA integrity_check", db=file(s, number)), "ok", f"file {number}")


def check_truth(s):
    seen = {(pid, name): calls for pid, name, calls in sql(
        s, "SELECT pid, totals.name, sum(calls) FROM totals JOIN processes USING (process_id) WHERE layer = 'driver' "
           "GROUP BY pid, totals.name")}
    equal(seen, s.truth(), "calls of all files, and the driver's own count")


def workload(s, calls, *more, **options):
    return s.start(WORKLOADS / "calls", "--threads", 2, "--mix", "training", "--rate", 100000, "--burst", 50, "--calls", calls, *more, stdout=-3, **options)


# Many files, none of which has to go: all of the trace, through a daemon that is killed again and again.
with Session() as s, fifo(s.dir, "hold") as hold:
    s.start_daemon("--max-db", "40M", "--ring", "32M")
    held = workload(s, 20000, "--hold", hold)
    for _ in range(2):
        busy = [workload(s, 100000), workload(s, 100000)]
        before = files(s)
        while files(s) == before:
            ended = busy[0].poll() is not None and busy[1].poll() is not None
            s.flush()
            check(files(s) != before or not ended, "the trace did not go on in another file")
        s.daemon.kill()
        s.daemon.wait()
        s.start_daemon("--max-db", "40M", "--ring", "32M")
        for program in busy:
            equal(program.wait(120), 0, "a program's status")
        s.flush()
        check_series(s)
        check_truth(s)
    with open(hold, "w") as end:
        end.write("\n")
    equal(held.wait(60), 0, "the held program's status")
    s.flush()
    check_series(s)
    check_truth(s)
    check(len(files(s)) >= 3, "files", files(s))
    equal(sql(s, "SELECT count(*), count(DISTINCT pid), min(state), max(state) FROM processes"), [[5, 5, "exited", "exited"]],
          "processes of all files")
    held, difference = sql(
        s, "SELECT (SELECT count(*) FROM allocations WHERE freed_ns IS NULL), sum(CASE WHEN name GLOB 'cuMemAlloc*' "
           "THEN 1 ELSE -1 END) FROM calls WHERE status = 0 AND (name GLOB 'cuMemAlloc*' OR name GLOB 'cuMemFree*')")[0]
    equal(held, difference, "memory still held, and what was got less what was freed:")
    status = s.cudatrace("status").stdout
    check(f"file {file(s, files(s)[-1])}\n" in status, "status", status)
    # From a numbered file on: what is in it and those behind it.
    later = value(s, "SELECT count(*) FROM calls", file(s, 3))
    equal(later, sum(s.value("SELECT count(*) FROM calls", db=file(s, n)) for n in files(s) if n >= 3), "calls from file 3 on")
    # A window is looked up in each file, and not counted through.
    plan = s.run(CUDATRACE, "sql", "--db", s.db, "EXPLAIN QUERY PLAN SELECT * FROM calls WHERE call_id BETWEEN 1 AND 2",
                 preload=False).stdout
    equal(plan.count("SEARCH call USING INTEGER PRIMARY KEY (rowid>? AND rowid<?)"), len(files(s)), plan)
    check("SCAN call" not in plan, plan)
    report = s.run(CUDATRACE, "report", "--db", s.db, preload=False).stdout
    equal(len(re.findall(r"^ *\d+ +exited ", report, re.M)), 5, report)

# What exceeds the bound goes, from the front, and what is left is true.
with Session() as s, fifo(s.dir, "hold") as hold:
    s.start_daemon("--max-db", "16M")
    held = workload(s, 5000, "--hold", hold)
    program = workload(s, 450000)
    most = 0
    while program.poll() is None:
        s.flush()
        most = max(most, disk_bytes(s))
    equal(program.returncode, 0, "the program's status")
    with open(hold, "w") as end:
        end.write("\n")
    equal(held.wait(60), 0, "the held program's status")
    s.flush()
    print("files", files(s), "at most", most, "bytes")
    check(files(s)[0] > 1 and len(files(s)) > 4, "files", files(s))
    check(most <= 16 << 20, "the trace took", most, "bytes")
    check_series(s)
    check_truth(s)  # sums go on, whatever goes
    check(value(s, "SELECT sum(expired) FROM totals") > 100000, "hardly a call has gone")
    log = (s.dir / "daemon.log").read_text()
    equal(log.count("is removed: the trace is bounded"), files(s)[0] - 1, log)
    s.stop_daemon()
    s.start_daemon("--max-db", "16M")
    equal(workload(s, 1000).wait(60), 0, "a program's status")
    s.flush()
    check_series(s)

# A reader that never ends.
with Session() as s:
    s.start_daemon("--max-db", "64M")
    equal(workload(s, 1000).wait(60), 0, "a program's status")
    s.flush()
    with contextlib.closing(sqlite3.connect(f"file:{s.db}?mode=ro", uri=True, isolation_level=None)) as reader:
        reader.execute("BEGIN")
        seen = reader.execute("SELECT count(*) FROM call").fetchone()
        for _ in range(4):
            equal(workload(s, 40000).wait(60), 0, "a program's status")
            s.flush()
            log_bytes = int(re.search(r"^log (\d+) bytes", s.cudatrace("status").stdout, re.M).group(1))
            check(log_bytes < 8 << 20, "the log has", log_bytes, "bytes")
            check(all(path.stat().st_size < 9 << 20 for path in s.dir.glob("*-wal")), "a log grows")
        check(len(files(s)) > 1, "files", files(s))
        check("a reader holds" in (s.dir / "daemon.log").read_text(), "nobody was told")
        equal(reader.execute("SELECT count(*) FROM call").fetchone(), seen, "what the reader sees")
        check_series(s)
        check_truth(s)
    check_truth(s)

# Asked for.
with Session() as s:
    s.start_daemon()
    for number in (1, 2, 3):
        equal(workload(s, 1000).wait(60), 0, "a program's status")
        s.flush()
        equal(files(s), list(range(1, number + 1)), "files")
        s.daemon.send_signal(signal.SIGHUP)
        while files(s)[-1] == number:
            s.flush()
    check_series(s)
    check_truth(s)

with Session() as s:
    for wrong in ("15M", "0", "-1G", "1T", "lots", "1e9", ""):
        done = s.run(DAEMON, "--session", s.name, "--db", s.db, "--max-db", wrong, preload=False, status=2)
        check("--max-db" in done.stderr and "16M" in done.stderr and done.stderr.count("\n") == 1, done.stderr)
    s.cudatrace("run", "--db", s.db, "--max-db", "1G", "--", WORKLOADS / "calls", "--calls", 100)
    check_series(s)
