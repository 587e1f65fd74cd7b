"""Tests cudatraced --max-db. The trace continues in numbered files, which are read as one trace, and does not exceed its limit. When the
trace continues in the next file, no call may be lost or counted twice, even if the daemon is killed just then. If a reader never finishes,
only the write-ahead log of the file that it is reading remains."""
import contextlib
import os
import re
import signal
import sqlite3
import subprocess

from cudatrace_test import CUDATRACE, DAEMON, Session, WORKLOADS, by_tier, check, equal, fifo, needs, wait_for
from series_test import check_plans, check_series, check_truth, disk_bytes, file, files, sql, value, workload

needs(shm_mib=256)  # rings for all calls that are made while there is no daemon

# Test a trace of many files while daemons are killed. No file has to be removed, so the trace is complete.
BOUND, CALLS, KILLS = by_tier(("16M", 65000, 1), ("40M", 100000, 2))
with Session() as s, fifo(s.dir, "hold") as hold:
    s.start_daemon("--max-db", BOUND, "--ring", "32M")
    held = workload(s, CALLS // 5, "--hold", hold)
    for _ in range(KILLS):
        before = files(s)
        busy = [workload(s, CALLS), workload(s, CALLS)]
        pids = ",".join(str(program.pid) for program in busy)
        # Kill each daemon only after it has found the programs, so that it has read some of their calls.
        s.flush_until("the busy programs", lambda: value(s, f"SELECT count(*) FROM processes WHERE pid IN ({pids})") == len(busy))
        while files(s) == before:
            ended = busy[0].poll() is not None and busy[1].poll() is not None
            s.flush()
            check(files(s) != before or not ended, "the trace did not go on in another file")
        s.daemon.kill()
        s.daemon.wait()
        s.start_daemon("--max-db", BOUND, "--ring", "32M")
        for program in busy:
            equal(program.wait(), 0, "a program's status")
        s.flush()
        check_series(s)
        check_truth(s)
    with open(hold, "w") as end:
        end.write("\n")
    equal(held.wait(), 0, "the held program's status")
    s.flush()
    check_series(s)
    check_truth(s)
    check(len(files(s)) >= 3, "files", files(s))
    equal(sql(s, "SELECT count(*), count(DISTINCT pid), min(state), max(state) FROM processes"), [[1 + 2 * KILLS, 1 + 2 * KILLS, "exited", "exited"]],
          "processes of all files")
    held, difference = sql(
        s, "SELECT (SELECT count(*) FROM allocations WHERE freed_ns IS NULL), sum(CASE WHEN name GLOB 'cuMemAlloc*' "
           "THEN 1 ELSE -1 END) FROM calls WHERE status = 0 AND (name GLOB 'cuMemAlloc*' OR name GLOB 'cuMemFree*')")[0]
    equal(held, difference, "memory still held, and what was got less what was freed:")
    status = s.cudatrace("status").stdout
    check(f"file {file(s, files(s)[-1])}\n" in status, "status", status)
    # A command with the path of a numbered file reads that file and all later ones.
    later = value(s, "SELECT count(*) FROM calls", file(s, 3))
    equal(later, sum(s.value("SELECT count(*) FROM calls", db=file(s, n)) for n in files(s) if n >= 3), "calls from file 3 on")
    # A query reads only the calls in its window, and joins find each call by its call_id (tests/unit/unit_files_table.c).
    for query, read in (("SELECT * FROM calls WHERE call_id BETWEEN 1 AND 2", "WHERE call_id >= ? AND call_id <= ?"),
                        ("SELECT name, count(*) FROM launches JOIN calls USING (call_id) GROUP BY name", "WHERE call_id = ?"),
                        ("SELECT call_id FROM calls ORDER BY call_id DESC LIMIT 1", "ORDER BY call_id DESC")):
        plan = s.run(CUDATRACE, "sql", "--db", s.db, f"EXPLAIN QUERY PLAN {query}", preload=False).stdout
        check(f"{read}\n" in plan and "MATERIALIZE" not in plan, query, plan)
    check_plans(s)
    report = s.run(CUDATRACE, "report", "--db", s.db, "processes", preload=False).stdout
    equal(len(re.findall(r"^ *\d+ +exited ", report, re.M)), 1 + 2 * KILLS, report)

# If the trace would exceed its limit, its oldest files are removed, and the remaining files must be correct. The ring is large enough for
# all calls, so that the trace reaches the limit even on a busy machine.
with Session() as s, fifo(s.dir, "hold") as hold:
    s.start_daemon("--max-db", "16M", "--ring", "32M")
    held = workload(s, 5000, "--hold", hold)
    program = workload(s, 450000)
    most = 0
    while program.poll() is None:
        s.flush()
        most = max(most, disk_bytes(s))
        with contextlib.suppress(subprocess.TimeoutExpired):
            program.wait(0.05)
    equal(program.returncode, 0, "the program's status")
    with open(hold, "w") as end:
        end.write("\n")
    equal(held.wait(), 0, "the held program's status")
    s.flush()
    print("files", files(s), "at most", most, "bytes")
    check(files(s)[0] > 1 and len(files(s)) > 4, "files", files(s))
    check(most <= 16 << 20, "the trace took", most, "bytes")
    check_series(s)
    check_truth(s)  # sums include the removed calls
    check(value(s, "SELECT sum(expired) FROM totals") > 100000, "hardly a call has gone")
    log = (s.dir / "daemon.log").read_text()
    equal(log.count(", because the trace is limited"), files(s)[0] - 1, log)
    s.stop_daemon()
    s.start_daemon("--max-db", "16M")
    equal(workload(s, 1000).wait(), 0, "a program's status")
    s.flush()
    check_series(s)

# Test a reader that holds its transaction open.
with Session() as s:
    s.start_daemon("--max-db", by_tier("32M", "64M"))
    equal(workload(s, 1000).wait(), 0, "a program's status")
    s.flush()
    with contextlib.closing(sqlite3.connect(f"file:{s.db}?mode=ro", uri=True, isolation_level=None)) as reader:
        reader.execute("BEGIN")
        seen = reader.execute("SELECT count(*) FROM call").fetchone()
        for _ in range(4):
            equal(workload(s, by_tier(20000, 40000)).wait(), 0, "a program's status")
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

# New files on request.
with Session() as s:
    s.start_daemon()
    for number in (1, 2, 3):
        equal(workload(s, 1000).wait(), 0, "a program's status")
        s.flush()
        equal(files(s), list(range(1, number + 1)), "files")
        s.daemon.send_signal(signal.SIGHUP)
        s.flush_until("the next file", lambda: files(s)[-1] > number)
    check_series(s)
    check_truth(s)
    # Request a new file while the daemon cannot write the trace. As soon as the daemon can write again, the trace must continue in the next
    # file.
    s.db.with_name("trace.4.db").rename(s.dir / "away")
    s.cudatrace("flush", status=1)
    s.daemon.send_signal(signal.SIGHUP)
    wait_for("the log's word of new files", lambda: "received SIGHUP" in s.log().rpartition("moved, deleted or replaced")[2])
    s.cudatrace("flush", status=1)
    (s.dir / "away").rename(s.db.with_name("trace.4.db"))
    wait_for("the next file", lambda: s.cudatrace("flush", status=None) and files(s)[-1] > 4)

# If an earlier file of the trace has been replaced by a different file, commands open this file only if it is a trace. Reading it must
# terminate in any case.
ENDLESS = "CREATE VIEW meta AS WITH RECURSIVE r(key) AS (SELECT 'a' UNION ALL SELECT 'b' FROM r) SELECT key, key AS value FROM r"
for kind in ("FIFO", "view"):
    with Session() as s:
        s.start_daemon()
        for number in (1, 2):
            equal(workload(s, 1000).wait(), 0, "a program's status")
            s.flush()
            if number == 2:
                s.db.unlink()
            if number == 2 and kind == "FIFO":
                os.mkfifo(s.db)
            elif number == 2:
                with contextlib.closing(sqlite3.connect(s.db)) as connection:
                    connection.execute(ENDLESS)
            s.daemon.send_signal(signal.SIGHUP)
            s.flush_until("the next file", lambda: files(s)[-1] > number)
        s.flush()

with Session() as s:
    for wrong in ("15M", "0", "-1G", "1T", "lots", "1e9", ""):
        done = s.run(DAEMON, "--session", s.name, "--db", s.db, "--max-db", wrong, preload=False, status=2)
        check("--max-db" in done.stderr and "16M" in done.stderr and done.stderr.count("\n") == 1, done.stderr)
    s.cudatrace("run", "--db", s.db, "--max-db", "1G", "--", WORKLOADS / "calls", "--calls", 100)
    check_series(s)
