"""Tests the report on a real training run on an H200 (tests/fixtures): its contents, and its layout on terminals of various widths. Also
tests an older database, a database without calls, and the database of a killed daemon."""
import contextlib
import json
import lzma
import pathlib
import re
import sqlite3

from cudatrace_test import CUDATRACE, SOURCE, Session, WORKLOADS, by_tier, can, check, equal, on_terminal

FIXTURE = pathlib.Path(__file__).resolve().parents[1] / "fixtures" / "h200-training.db.xz"
SECTIONS = ("summary xids bottleneck phases runs processes gpus activity threads categories layers functions inside kernels graphs launches gaps gpu shares work ranges queue idle pending "
            "waits blocked faults kernel hooks copies memory leaks contexts modules errors losses").split()
NEWER = ["runs", "gpus", "activity", "gpu", "shares", "work", "ranges", "queue", "idle", "pending"]  # sections that need views which the fixture lacks


def steps_of(database, section, from_ns):
    """Returns approximately how many steps SQLite takes to compute a section."""
    steps = []
    with contextlib.closing(sqlite3.connect(database)) as trace:
        trace.set_progress_handler(lambda: steps.append(100), 100)
        trace.execute((SOURCE / f"schema/reports/{section}.sql").read_text(), {"pid": None, "from_ns": from_ns, "to_ns": None}).fetchall()
    return sum(steps)


with Session() as s:
    s.db.write_bytes(lzma.decompress(FIXTURE.read_bytes()))
    found = s.report()
    equal(list(found), [section for section in SECTIONS if section not in NEWER], "sections")
    equal({name for name, rows in found.items() if not rows}, {"xids", "graphs", "blocked", "faults", "kernel", "hooks", "losses"}, "sections without a row")
    equal([(row["phase"], row["times"], row["by"]) for row in found["phases"]], [("step N", 20, "nvtx")], "phases")
    process, = found["processes"]
    equal((process["calls"], process["failed"], process["lost"], process["state"]),
          s.rows("SELECT sum(calls), sum(failed) FILTER (WHERE layer = 'driver'), sum(lost), 'exited' FROM totals")[0], "the process")
    equal(sum(row["launches"] for row in found["launches"]), s.value("SELECT count(*) FROM launches"), "launches")
    equal(sum(row["copies"] for row in found["copies"]), s.value("SELECT count(*) FROM copies"), "copies")
    equal(sum(row["calls"] for row in found["errors"]),
          s.value("SELECT count(*) FROM calls WHERE status NOT IN (0, 600)"), "errors of all layers")
    # If the trace contains no kernel events and no hooks, the sections about them must not read all calls.
    for section in ("blocked", "faults", "kernel", "hooks"):
        for from_ns in (None, 1):
            check(steps_of(s.db, section, from_ns) < s.value("SELECT count(*) FROM calls"), section, "reads all calls")
    equal(found["bottleneck"][0]["bound_by"], "host", "what bounds a training of twenty steps")
    equal({row["kind"]: row["seconds"] for row in found["bottleneck"]},
          {"start_driver": 0.283, "start_other": 0.016, "outside": 0.221, "load": 0.207, "launch": 0.008, "memory": 0.005, "other": 0.002, "end": 0.753}, "the parts of the run")

    # On a terminal, lines are truncated to the terminal's width. Lines written to a pipe are not truncated.
    titles = re.findall(r"^  \w+ +(.+)$", s.run(CUDATRACE, "report", "--help", preload=False).stdout, re.M)
    for columns in by_tier((20, 80), (20, 40, 80, 200)) if can("terminals", "lines cut at a terminal's width") else ():
        text, errors = on_terminal(columns, CUDATRACE, "report", "--db", s.db)
        equal(re.findall(r"report: (\w+): left out: [^\n]*\n", errors), NEWER, "sections that are left out")
        wide = [line for line in text.splitlines() if len(line) > columns and not line.startswith(("(no room", "No data"))
                and line not in titles]
        equal(wide, [], f"lines of more than {columns} columns")
        check("…" in text, "nothing was cut")
        check(columns > 100 or "(no room for" in text, "no column was left out")
        check(text.endswith("No data: xids, graphs, blocked, faults, kernel, hooks, losses\n"), text[-100:])
    whole = s.run(CUDATRACE, "report", "--db", s.db, preload=False).stdout
    check("…" not in whole and "no room" not in whole, "a pipe got less")
    longest = s.value("SELECT kernel FROM launches ORDER BY length(kernel) DESC LIMIT 1")
    check(longest in whole, "the longest kernel is not there")

    # Turn the trace into one from a version that did not have the views `durations` and `failures`. The command must omit the sections that
    # need these views, and report that it has omitted them.
    with sqlite3.connect(s.db) as old:
        old.executescript("DROP VIEW durations; DROP VIEW failures; DROP TABLE duration; DROP TABLE failure; PRAGMA user_version = 4;")
    done = s.run(CUDATRACE, "report", "--db", s.db, "--format", "json", preload=False)
    left_out = {"summary", "bottleneck", "functions", "hooks", "errors", *NEWER}
    equal(set(SECTIONS) - set(json.loads(done.stdout)), left_out, "what is left out")
    for section in left_out:
        check(f"report: {section}: left out: the trace was written by an older cudatrace (schema 4" in done.stderr, done.stderr)

    # The other commands must work with the data that the older trace has. If data is missing that a command requires, the command must
    # report that an older cudatrace wrote the trace.
    for command in ("top", "--once"), ("timeline",), ("export",), ("html", "--output", s.dir / "old.html"):
        done = s.run(CUDATRACE, command[0], "--db", s.db, *command[1:], preload=False)
        equal(done.stderr, "", f"{command[0]} of an older trace")
    check("left out: the trace was written by an older cudatrace (schema 4" in (s.dir / "old.html").read_text(), "the page of an older trace")
    with sqlite3.connect(s.db) as old:
        old.executescript("DROP VIEW totals; ALTER TABLE site RENAME COLUMN depth TO level; PRAGMA user_version = 3;")
    for command in ("top", "--once"), ("timeline",), ("export",), ("html", "--output", s.dir / "older.html"):
        done = s.run(CUDATRACE, command[0], "--db", s.db, *command[1:], preload=False, status=1)
        check(done.stderr.count("\n") == 1 and "the trace was written by an older cudatrace (schema 3, this one reads" in done.stderr, command, done.stderr)

# While a trace is being written, all sections of a report must describe the same point in time.
with Session() as s:
    s.start_daemon("--ring", "64M")  # sums count lost calls, too
    s.run(WORKLOADS / "calls", "--calls", 40000, "--mix", "launch")  # so that sections take different times
    busy = s.start(WORKLOADS / "demo", "--rounds", 1 << 30, stdout=-3, env={"SIMCUDA_LATENCY": "cuMemcpyHtoD_v2=100000"})
    s.flush_until("its calls", lambda: (s.value("SELECT sum(calls) FROM totals") or 0) > 1000)
    seen = set()
    for _ in range(4):
        found = s.report()
        sums = {section: sum(row["calls"] for row in found[section]) for section in ("processes", "categories", "functions")}
        equal(set(sums.values()), {sums["processes"]}, f"calls by section: {sums}")
        launches = sum(row["calls"] for row in found["categories"] if (row["layer"], row["category"]) == ("driver", "launch"))
        equal([sum(row["launches"] for row in found[section]) for section in ("launches", "kernels")], [launches] * 2, "launches by section")
        equal(sum(row["copies"] for row in found["copies"]),
              sum(row["calls"] for row in found["categories"] if (row["layer"], row["category"]) == ("driver", "copy")), "copies by section")
        seen.add(sums["processes"])
    check(len(seen) > 1, "the trace did not grow", seen)
    busy.kill()
    busy.wait()

# An empty trace.
with Session() as s:
    s.start_daemon()
    done = s.run(CUDATRACE, "report", "--db", s.db, preload=False)
    check("has no calls yet" in done.stderr, done.stderr)
    equal(done.stdout, "No data: " + ", ".join(SECTIONS) + "\n", "a report of nothing")
    equal(json.loads(s.run(CUDATRACE, "report", "--db", s.db, "--format", "json", preload=False).stdout),
          {section: [] for section in SECTIONS}, "a report of nothing, as json")
    # Test a window without calls, an invalid window, and the database of a killed daemon.
    s.run(WORKLOADS / "calls", "--calls", 1000)
    s.flush()
    s.daemon.kill()
    s.daemon.wait()
    for options, status, says in ((("--from", "1h"), 1, "report: no calls in this window: the trace lasts"),
                                  (("--from", "5", "--to", "4"), 2, "ends before it begins"),
                                  (("--to", "soon"), 2, "invalid value 'soon' for --to: expected seconds"),
                                  (("--pid", "1"), 1, "no process 1")):
        done = s.run(CUDATRACE, "report", "--db", s.db, *options, preload=False, status=status)
        check(says in done.stderr, options, done.stderr)
        equal(done.stdout, "", options)
    equal(len(json.loads(s.run(CUDATRACE, "report", "--db", s.db, "--format", "json", "processes", preload=False).stdout)["processes"]),
          1, "processes of a killed daemon's trace")
    s.start_daemon()  # removes the files of the killed one
