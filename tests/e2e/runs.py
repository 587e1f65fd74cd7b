"""Tests runs: which processes belong to a run, the list of runs, and that --run and --last show the same as a trace that contains only the
run, even if the trace consists of several files. `run --new` must leave existing traces unchanged."""
import contextlib
import json
import re
import shutil
import signal
import sqlite3

from cudatrace_test import BUILD, CUDATRACE, SIMCUDA, WORKLOADS, HungCall, Session, by_tier, check, equal

CALLS = (WORKLOADS / "calls", "--calls", 300, "--mix", "training")
RUNS = "SELECT run_id, processes, command FROM runs ORDER BY run_id"
# Tables whose rows belong to a process through another table: {table: (column, table with the same column)}
BY_OTHERS = {"site": ("thread_id", "thread"), "call": ("site_id", "site"), "long_call": ("call_id", None), "launch": ("call_id", None),
             "transfer": ("call_id", None), "call_subject": ("call_id", None), "lane": ("segment_id", "segment"),
             "unsent": ("segment_id", "segment"), "loss": ("segment_id", "segment"), "gpu_run": ("gpu_task_id", "gpu_task")}


def only_run(path, run_id):
    """Removes the rows of all other runs from a trace."""
    with contextlib.closing(sqlite3.connect(path)) as db:
        db.execute("DELETE FROM process WHERE run_id <> ?", (run_id,))
        for table, in db.execute("SELECT name FROM sqlite_master WHERE type = 'table' AND name NOT LIKE 'sqlite_%'").fetchall():
            if table != "process" and any(column[1] == "process_id" for column in db.execute(f"PRAGMA table_info({table})")):
                db.execute(f"DELETE FROM {table} WHERE process_id NOT IN (SELECT process_id FROM process)")
        for table, (column, other) in BY_OTHERS.items():
            kept = f"SELECT {column} FROM {other}" if other else "SELECT end_ns FROM call"
            db.execute(f"DELETE FROM {table} WHERE {column} NOT IN ({kept})")
        db.commit()


def said(s, command, *options, db=None):
    return s.run(CUDATRACE, command, "--db", db or s.db, *options, preload=False).stdout


def report(s, *options, db=None):
    sections = json.loads(said(s, "report", "--format", "json", *options, db=db))
    sections["summary"] = [row for row in sections["summary"] if row["about"] not in ("trace", "next")]  # these name the file
    return sections


def check_like_alone(s, run_id, *options):
    """Compares the run with a trace that contains nothing else."""
    alone = s.dir / "alone.db"
    shutil.copy(s.db, alone)
    only_run(alone, run_id)
    wanted = report(s, db=alone)
    check(len([section for section, rows in wanted.items() if rows]) > 10, "sections", wanted)
    equal(report(s, *options), wanted, f"the report of {options}")
    for command in (["timeline", "--width", 120], ["export", "--format", "csv"], ["export", "--format", "jsonl"], ["export", "--format", "chrome"]):
        equal(said(s, *command, *options), said(s, *command, db=alone), f"{command} of {options}")
    pages = []
    for db, selected in ((alone, ()), (s.db, options)):
        said(s, "html", *selected, "--output", s.dir / "page.html", db=db)
        pages.append((s.dir / "page.html").read_text().replace(db.name, "TRACE"))
    check(pages[0] == pages[1], "the pages of", options, "differ")
    for page in pages:
        check(len(page) > 1000, "a page")
    alone.unlink()


with Session() as s:
    commands = [f"{CALLS[0]} --calls 300 --mix training"]
    s.trace(*CALLS)
    check("No data" not in said(s, "report", "--last", "runs", "processes"), "the only run")
    # A run with records of GPU work, which may have no call.
    s.run(CUDATRACE, "run", "--session", s.name, "--db", s.db, "--gpu", "--", WORKLOADS / "gpu_work", "--rounds", 10, preload=False,
          env={"LD_LIBRARY_PATH": f"{SIMCUDA}:{BUILD / 'tests/simcupti/13'}", "SIMCUDA_LAUNCH_NS": 5000})
    # A command inside another is part of the same run.
    s.trace(CUDATRACE, "run", "--session", s.name, "--db", s.db, "--", "sh", "-c", f"{' '.join(map(str, CALLS))}; {WORKLOADS / 'bottlenecks'} --launches 40")
    equal(s.rows(RUNS), [(1, 1, commands[0]), (2, 1, f"{WORKLOADS / 'gpu_work'} --rounds 10"), (3, 2, commands[0])], "runs")
    for run_id in by_tier((2,), (1, 2, 3), (1, 2, 3)):
        check_like_alone(s, run_id, "--run", run_id)
    equal(report(s, "--last"), report(s, "--run", 3), "the last run")

    # The list of runs agrees with the rows.
    rows = report(s)["runs"]
    equal([(row["run"], row["processes"], row["command"]) for row in rows], s.rows(RUNS), "the section")
    equal([(row["calls"], row["seconds"]) for row in rows],
          s.rows("SELECT (SELECT count(*) FROM calls JOIN processes USING (process_id) WHERE run_id = runs.run_id), round((ended_ns - started_ns) / 1e9, 3) "
                 "FROM runs ORDER BY run_id"), "calls and times")
    equal([row["run"] for row in report(s, "--run", 2)["runs"]], [2], "runs of a run")
    pid = s.value("SELECT pid FROM processes WHERE run_id = 2")
    equal([row["run"] for row in report(s, "--pid", pid)["runs"]], [2], "the run of a process")
    check("The trace has 3 runs" in said(s, "report", "summary") and "runs" not in said(s, "report", "--last", "summary"), "the note")
    check(f"report --db {s.db} --run 3 " in said(s, "report", "--last", "summary"), "the next command")

    # `diff` compares runs, also of the same trace.
    found = json.loads(s.run(CUDATRACE, "diff", "--run-a", 1, "--last", s.db, s.db, "summary", "--format", "json", preload=False).stdout)
    equal([(row["a"], row["b"]) for row in found["summary"] if row["what"] in ("processes", "calls")],
          [(1, 2), (s.value("SELECT count(*) FROM calls JOIN processes USING (process_id) WHERE run_id = 1"), rows[2]["calls"])], "the two runs")

    for status, says, *command in (
            (1, "has no run 4: `cudatrace report runs` lists them", "report", "--run", 4),
            (1, "has no process 1:", "report", "--last", "--pid", 1),
            (1, f"has no process {pid}:", "timeline", "--last", "--pid", pid),
            (2, "--last cannot be combined with --run", "timeline", "--run", 1, "--last"),
            (2, "options that select a part are not possible", "export", "--format", "sqlite", "--output", s.dir / "x.db", "--last")):
        done = s.run(CUDATRACE, *command, "--db", s.db, preload=False, status=status)
        check(says in done.stderr, command, done.stderr)

    # The same for a trace of two files.
    found, last_of_first = [report(s, "--run", run_id) for run_id in (1, 2, 3)], s.value("SELECT max(call_id) FROM calls JOIN processes USING (process_id) WHERE run_id = 2")
    shutil.copy(s.db, s.dir / "trace.2.db")
    for path, gone in ((s.db, f"> {last_of_first}"), (s.dir / "trace.2.db", f"<= {last_of_first}")):
        with contextlib.closing(sqlite3.connect(path)) as trace:
            trace.execute(f"DELETE FROM call WHERE end_ns {gone}")
            for table in "long_call", "launch", "transfer", "call_subject":
                trace.execute(f"DELETE FROM {table} WHERE call_id {gone}")
            trace.execute("DELETE FROM gpu_run WHERE ?", (path != s.db,))
            trace.commit()
    equal([report(s, "--run", run_id) for run_id in (1, 2, 3)], found, "runs of a trace of two files")

    # An older trace has no runs.
    with contextlib.closing(sqlite3.connect(s.db)) as trace:
        trace.executescript("DROP VIEW runs; PRAGMA user_version = 17")
    (s.dir / "trace.2.db").unlink()
    done = s.run(CUDATRACE, "report", "--last", "--db", s.db, preload=False, status=1)
    check("written by an older cudatrace (schema 17" in done.stderr, done.stderr)

# A daemon that keeps running begins a run with each command that finds it unused. A process that runs for longer stays in its first run, and
# the next file of the trace keeps the runs.
with Session() as s:
    s.start_daemon()
    with HungCall(s) as hung:
        s.flush_until("the process", lambda: s.value("SELECT count(*) FROM processes"))
        s.trace(*CALLS)
        s.trace(*CALLS)
        s.flush()
        equal(s.rows("SELECT run_id, processes FROM runs"), [(1, 1), (2, 1), (3, 1)], "runs")
        equal(s.value("SELECT run_id FROM processes WHERE pid = ?", hung.pid), 1, "the run of the process that goes on")
        s.daemon.send_signal(signal.SIGHUP)
        second = s.dir / "trace.2.db"
        s.flush_until("the next file", second.exists)
        s.trace(*CALLS)
        s.flush()
        equal([(row["run"], row["processes"]) for row in report(s)["runs"]], [(1, 1), (2, 1), (3, 1), (4, 1)], "runs of both files")
        equal(s.rows("SELECT run_id FROM run", db=second), [(1,), (2,), (3,), (4,)], "runs known to the second file")
    s.flush()

# With --new, a run writes a trace that does not exist yet.
with Session() as s:
    def run_new(*options):
        return s.run(CUDATRACE, "run", "--new", *options, "--", *CALLS, preload=False, cwd=s.dir, env={"CUDATRACE_SESSION": ""}).stderr

    equal(run_new(), "", "what is said of the first trace")
    before = s.db.read_bytes()
    for number in 2, 3:
        equal(run_new(), f"cudatrace: run: 'trace.db' exists, so this run is traced into 'trace-{number}.db'\n", "what is said of another trace")
    check("'trace-2-2.db'" in run_new("--db", "trace-2.db"), "a trace with a number")
    equal(sorted(path.name for path in s.dir.glob("*.db")), ["trace-2-2.db", "trace-2.db", "trace-3.db", "trace.db"], "traces")
    equal(s.db.read_bytes(), before, "the first trace")
    equal([s.value("SELECT count(*) FROM runs", db=path) for path in s.dir.glob("*.db")], [1] * 4, "runs of each trace")
    done = s.run(CUDATRACE, "run", "--new", "--db", s.dir / "none/trace.db", "--", "true", preload=False, status=1)
    check(re.fullmatch(r"cudatrace: run: cannot create '.*/none/trace.db': No such file or directory\n", done.stderr), done.stderr)
    done = s.run(CUDATRACE, "run", "--new", "--session", s.name, "--", "true", preload=False, status=2)
    check("--new cannot be combined with --session" in done.stderr, done.stderr)
    done = s.run(CUDATRACE, "run", "--new", "--ring", "1", "--", "true", preload=False, status=None, cwd=s.dir)
    check(done.returncode and not (s.dir / "trace-4.db").exists(), "a daemon that cannot start left a file", done.stderr)
