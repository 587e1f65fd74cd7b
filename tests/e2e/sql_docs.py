"""Tests that docs/sql.md and .schema are correct. Every query in docs/sql.md must run on a trace. The statement that SQLite stores for a
table or view must contain an explanation of it. Every place that explains causes of losses must explain all causes.

If the path of a database is given as an argument, the queries run on that database, which is opened read-only. By default, the queries run
on a new trace of several processes. One process was killed during a call.
"""
import contextlib
import json
import pathlib
import re
import sqlite3
import sys

SOURCE = pathlib.Path(__file__).resolve().parents[2]
DOCUMENT = SOURCE / "docs/sql.md"
RETURNS_NOTHING = {"Is every call accounted for?"}
QUERIES_MIN = 12


def check(condition, *what):
    if not condition:
        raise AssertionError(" ".join(str(w) for w in what))


def queries(text):
    """Returns [(line number, heading, query)] for the ```sql blocks in a document."""
    found, heading, fence, start = [], "", None, 0
    for number, line in enumerate(text.splitlines(), 1):
        if fence is not None:
            if line.strip() == "```":
                found.append((start, heading, "\n".join(fence)))
                fence = None
            else:
                fence.append(line)
        elif line.strip() == "```sql":
            fence, start = [], number + 1
        elif line.startswith("## "):
            heading = line[3:].strip()
    check(fence is None, f"{DOCUMENT}: the fence of line {start - 1} does not end")
    return found


def check_causes():
    """Checks that each of the files that explain the causes of losses explains every cause."""
    causes = re.findall(r"^LOSS\(\w+, (\w+),", (SOURCE / "proto/loss_cause.def").read_text(), re.M)
    check(len(causes) >= 5, "causes", causes)
    for file, phrase in {"docs/sql.md": r"\| `%s` \|", "docs/operations.md": r"\| (`losses` has rows|…) of cause `%s` \|",
                         "schema/reports/losses.sql": r"\b%s: ", "schema/views.sql": r"\b%s \(",
                         "schema/tables.sql": r"cause .*\b%s\b"}.items():
        text = (SOURCE / file).read_text()
        missing = [cause for cause in causes if not re.search(phrase % cause, text)]
        check(not missing, file, "does not explain", *missing)


def check_queries(database, found, with_rows):
    """Runs each query, and returns a list of errors. `with_rows` contains the headings of queries that must return at least one row."""
    wrong = []
    connection = sqlite3.connect(f"file:{database}?mode=ro", uri=True, timeout=30)
    with contextlib.closing(connection):
        connection.execute("PRAGMA query_only = 1")
        for line, heading, query in found:
            try:
                rows = connection.execute(query).fetchall()
            except (sqlite3.Error, sqlite3.Warning) as error:
                wrong.append(f"{DOCUMENT}:{line}: {heading}: {error}")
                continue
            if heading in RETURNS_NOTHING and rows:
                wrong.append(f"{DOCUMENT}:{line}: {heading}: returned {rows[:3]} and should return nothing")
            if heading in with_rows and not rows:
                wrong.append(f"{DOCUMENT}:{line}: {heading}: returned nothing")
    return wrong


def check_schema(database, text):
    """Checks that the statement of every table and view contains a comment, and that every view is used in an example query."""
    wrong = []
    with contextlib.closing(sqlite3.connect(f"file:{database}?mode=ro", uri=True, timeout=30)) as connection:
        objects = connection.execute("SELECT type, name, sql FROM sqlite_master WHERE type IN ('table', 'view') "
                                     "AND name NOT LIKE 'sqlite_%'").fetchall()
    check(len(objects) > 20, "the schema has only", len(objects), "tables and views")
    for kind, name, sql in objects:
        # The comment with the explanation must directly follow "CREATE VIEW x AS" or "CREATE TABLE x (".
        if not re.match(r"CREATE (TABLE \w+ \(|VIEW \w+ AS)\s*\n\s*-- \S", sql):
            wrong.append(f"schema: {kind} {name}: no comment inside its statement; .schema shows: {sql[:80]!r}")
        if kind == "view" and not re.search(rf"\b(FROM|JOIN)\s+{name}\b", text):
            wrong.append(f"{DOCUMENT}: no query reads the view {name}")
    return wrong


def check_database(database, with_rows=()):
    text = DOCUMENT.read_text()
    found = queries(text)
    check(len(found) >= QUERIES_MIN, DOCUMENT, "has only", len(found), "queries")
    check({h for h in with_rows} <= {h for _, h, _ in found}, "headings that went:",
          {h for h in with_rows} - {h for _, h, _ in found})
    wrong = check_queries(database, found, with_rows) + check_schema(database, "\n".join(q for _, _, q in found))
    for line in wrong:
        print(line, file=sys.stderr)
    check(not wrong, len(wrong), "things are wrong")
    print(len(found), "queries ran")


# (name, layer, begin in us, end in us, depth, fields), and the row of each call in the slowest copy: (at_ms, name, ms, own_ms)
COPIES = (
    ("cuMemcpyHtoD_v2", "driver", 0, 1500, 0, None, None),
    ("cuMemcpyDtoH_v2", "driver", 2000, 5000, 0, None, (0, "cuMemcpyDtoH_v2", 3.0, 0.5)),
    ("ioctl", "hook", 2100, 4100, 1, {"command": 42}, (0.1, "  ioctl", 2.0, 0.5)),
    ("blocked", "kernel", 2200, 3700, 2, None, (0.2, "    blocked", 1.5, 1.5)),
    ("page_fault", "kernel", 4200, 4200, 1, None, (2.2, "  page_fault", 0, 0)),
    ("cuMemcpyAsync", "driver", 4300, 4800, 1, None, (2.3, "  cuMemcpyAsync", 0.5, 0.5)),
)


def check_slow_copy(s, command):
    """Runs the query that shows everything inside the slowest copy on an imported trace with exact times, and checks its rows."""
    lines, trace = s.dir / "copies.jsonl", s.dir / "copies.db"
    with open(lines, "w") as file:
        for number, (name, layer, begin_us, end_us, depth, fields, _) in enumerate(COPIES):
            for phase, at_us in ("B", begin_us), ("E", end_us):
                details = {"depth": depth, "status": 0, **({"fields": fields} if fields else {})}
                print(json.dumps({"ts": at_us / 1e6, "op_id": number, "phase": phase, "name": name, "layer": layer, "details": details}), file=file)
    s.run(command, "import", "--db", trace, lines, preload=False)
    query, = (query for _, heading, query in queries(DOCUMENT.read_text()) if heading == "Why was this cuMemcpy slow?")
    wanted = [(at_ms, name, layer, ms, own_ms, json.dumps(fields or {}, separators=(",", ":")) if layer == "hook" else None)
              for _, layer, _, _, _, fields, row in COPIES if row for at_ms, name, ms, own_ms in [row]]
    seen = s.rows(query, db=trace)
    check(seen == wanted, "inside the slowest copy:", seen, "and not", wanted)


def check_on_new_trace():
    from cudatrace_test import CUDATRACE, HOOK, HungCall, SIMCUDA, Session, WORKLOADS, equal

    with Session() as s:
        check_slow_copy(s, CUDATRACE)
        s.start_daemon()
        devices = s.dir / "devices"
        devices.mkdir()
        for name, target in (("nvidiactl", "/dev/null"), ("nvidia0", "/dev/zero"), ("nvidia-uvm", "/dev/ptmx")):
            (devices / name).symlink_to(target)
        asks = {"SIMCUDA_IOCTLS": 1, "CUDATRACE_DEVICES": devices, "LD_PRELOAD": f"{HOOK} {SIMCUDA / 'libsimdevice.so'}"}
        others = [s.start(WORKLOADS / "calls", "--calls", 300, "--mix", "alloc", env=asks),
                  s.start(WORKLOADS / "calls", "--calls", 3000, "--threads", 2, "--mix", "training"),
                  s.start(WORKLOADS / "calls", "--calls", 3000, "--mix", "alloc"),
                  s.start(WORKLOADS / "graph"),
                  s.start(WORKLOADS / "ranges", "--do", "train", "--count", 20, stdout=-3,
                          env={"NVTX_INJECTION64_PATH": HOOK}),
                  s.start(WORKLOADS / "demo", stdout=-3)]
        with HungCall(s, "--calls", 100):
            equal([p.wait() for p in others], [0] * len(others), "statuses")
            s.flush()
            check_database(s.db)  # while the daemon writes
        s.flush()
        check_database(s.db, with_rows={
            "Who is in the trace, and when was that?",
            "Where does each process spend its time?",
            "Who allocates most, and who holds most at its peak?",
            "When did all of them together hold most, and who held it?",
            "Which process waits longest in synchronising calls?",
            "How much is copied in which direction, and how fast?",
            "How many launches a second does each process make?",
            "Which kernels are launched most?",
            "How many kernels ran, graph replays counted?",
            "What is a hung process in, and what was a killed one in?",
            "What began in a second, and what went on?",
            "How long were two processes in the driver at the same time?",
            "What does the driver ask of the kernel?",
            "Which calls make it ask?",
            "How does a process start?",
            "Which threads do the work?",
            "How long do the application's own ranges take?",
            "Which kernels were launched inside which range?",
            "What happened inside the longest step?",
            "How much code is loaded, and how long does it take?",
            "Why was this cuMemcpy slow?",
        })


check_causes()
if len(sys.argv) > 2 or sys.argv[1:2] == ["--help"]:
    print("Usage: sql_docs.py [DATABASE]", file=sys.stderr)
    sys.exit(0 if sys.argv[1:2] == ["--help"] else 2)
if len(sys.argv) == 2:
    check(pathlib.Path(sys.argv[1]).exists(), "no database", sys.argv[1])
    check_database(sys.argv[1])
else:
    check_on_new_trace()
