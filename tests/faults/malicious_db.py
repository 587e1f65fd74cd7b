"""Tests malicious queries and database files. A query must only read, and reading a file made by another user must be safe. A damaged file
may cause an error message, but never a crash. Escape sequences must not be sent to the terminal."""
import contextlib
import csv
import io
import json
import os
import pty
import random
import re
import shutil
import signal
import sqlite3
import subprocess

from fault_test import CUDATRACE, DAEMON, DEADLINE_S, HOOK, Session, WORKLOADS, by_tier, can, check, equal, promise, wait_for

VARIANTS, DAEMONS = by_tier((60, 4), (400, 10), (4000, 200))
NASTY = "a\x1b]0;owned\x07b\x9bc\rd\ne\tf\u202eg\u2028h\u061ci\x7f"


def tool(s, *arguments, status=None, text=True):
    done = s.run(CUDATRACE, *arguments, preload=False, status=status, text=text)
    check(done.returncode in (0, 1), arguments, "ended with", done.returncode, done.stderr)
    if done.returncode == 1 and text and arguments[0] != "doctor":
        lines = done.stderr.split("\n")
        check(lines.pop() == "" and lines and all(line.startswith("cudatrace: ") for line in lines), arguments, "said",
              repr(done.stderr))
    return done


def sql(s, db, query, *options, **more):
    return tool(s, "sql", "--db", db, *options, query, **more)


def values(s, db, query):
    return [list(row.values()) for row in json.loads(sql(s, db, query, "--format", "json").stdout)]


@contextlib.contextmanager
def edited(s, name, trace, *statements):
    """Yields the path of a copy of the trace that the given SQL statements have modified."""
    path = s.dir / name
    shutil.copy(trace, path)
    with contextlib.closing(sqlite3.connect(path, isolation_level=None)) as connection:
        for statement in statements:
            connection.execute(*statement) if isinstance(statement, tuple) else connection.execute(statement)
    yield path


def queries_that_would(s, trace):
    """Checks that queries that would have an effect are refused, and that queries that only return rows are allowed."""
    target = s.dir / "made-by-a-query"
    before = trace.read_bytes()
    wal = s.dir / "live.db"
    shutil.copy(trace, wal)
    live = sqlite3.connect(wal, isolation_level=None)  # with a -wal next to it, as while a daemon writes
    live.execute("PRAGMA journal_mode = WAL")
    live.execute("UPDATE meta SET value = value")
    sums = live.execute("SELECT count(*), sum(calls) FROM totals").fetchall()
    refused = ["DELETE FROM call", "UPDATE meta SET value = 1", "INSERT INTO meta VALUES ('x', 1)", "DROP VIEW calls",
               "CREATE TABLE x (a)", "CREATE TEMP TABLE x (a)", "CREATE TEMP VIEW x AS SELECT 1",
               "CREATE TEMP TRIGGER x AFTER INSERT ON call BEGIN SELECT 1; END",
               "CREATE VIRTUAL TABLE temp.x USING fts4(a)", "ALTER TABLE call RENAME TO caller", "REINDEX", "ANALYZE",
               f"ATTACH '{target}' AS x", f"VACUUM INTO '{target}'", "VACUUM", "DETACH main",
               "SELECT load_extension('/lib/x86_64-linux-gnu/libm.so.6')", "SELECT fts3_tokenizer('simple')",
               f"SELECT writefile('{target}', 'x')", "SELECT readfile('/etc/passwd')",
               "PRAGMA user_version = 9", "PRAGMA application_id = 9", "PRAGMA writable_schema = ON",
               "PRAGMA journal_mode = DELETE", "PRAGMA journal_mode = OFF", "PRAGMA wal_checkpoint(TRUNCATE)",
               f"PRAGMA temp_store_directory = '{s.dir}'", "PRAGMA trusted_schema = ON", "PRAGMA mmap_size = 1000000000",
               "PRAGMA locking_mode = EXCLUSIVE", "PRAGMA optimize", "PRAGMA incremental_vacuum",
               "PRAGMA no_such_pragma", "SELECT * FROM pragma_wal_checkpoint", "EXPLAIN ATTACH 'x' AS y"]
    for query in refused:
        for path in (trace, wal):
            with promise("query_reads_only"):
                equal(sql(s, path, query).returncode, 1, query)
                check(not target.exists(), query, "made a file")
    equal(trace.read_bytes(), before, "the trace after all queries")
    equal(live.execute("SELECT count(*), sum(calls) FROM totals").fetchall(), sums, "the live one")
    live.close()
    allowed = ["PRAGMA table_info(call)", "PRAGMA user_version", "SELECT name FROM pragma_table_info('calls')",
               "PRAGMA integrity_check", "BEGIN; SELECT count(*) FROM calls; SELECT count(*) FROM totals; COMMIT",
               "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 9) SELECT sum(i) FROM n",
               "SELECT name, group_concat(printf('%d', calls)) FROM totals GROUP BY name", "EXPLAIN QUERY PLAN SELECT * FROM calls"]
    for query in allowed:
        sql(s, trace, query, status=0)


def schemas_that_would(s, trace):
    bomb = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT {} FROM n"
    target = s.dir / "made-by-a-view"
    with promise("foreign_schema"), edited(
            s, "view.db", trace, "DROP VIEW processes",
            f"CREATE VIEW processes AS SELECT writefile('{target}', 'x'), load_extension('x') AS pid") as path:
        equal(sql(s, path, "SELECT * FROM processes").returncode, 1, "a view that writes")
        equal(tool(s, "report", "--db", path).returncode, 1, "its report")
        check(not target.exists(), "a view made a file")
    # If the tables of a file have been replaced by endless views, the daemon and `cudatrace doctor` must stop reading the file, because no
    # user has requested so much work.
    with promise("foreign_schema"), edited(s, "meta.db", trace, "DROP TABLE meta",
                                           "CREATE VIEW meta AS " + bomb.format("'boot_id' AS key, i AS value") +
                                           " WHERE i < 0") as path:
        done = s.run(DAEMON, "--foreground", "--session", s.name + "m", "--db", path, preload=False, status=1)
        check("is damaged (interrupted)" in done.stderr, done.stderr)
        tool(s, "doctor", "--db", path, "--session", s.name + "m")
    # Ctrl-C must end a query that never ends by itself, in each format.
    with edited(s, "bomb.db", trace, "DROP VIEW calls",
                "CREATE VIEW calls AS " + bomb.format("i, printf('%0500d', i)")) as path:
        for form in ("text", "csv", "json"):
            with promise("endless_query"):
                child = s.start(CUDATRACE, "sql", "--db", path, "--format", form, "SELECT * FROM calls", preload=False,
                                stdout=subprocess.PIPE)
                check(child.stdout.read(100000), "no output")
                child.send_signal(signal.SIGINT)
                child.stdout.close()
                check(child.wait(DEADLINE_S) in (-signal.SIGINT, -signal.SIGPIPE), "it ended with", child.returncode)
    # `tail` blocks the signal while it reads, so that its output ends with a whole line.
    def blocks(child):
        status = open(f"/proc/{child.pid}/status").read()
        return int(re.search(r"SigBlk:\t(\w+)", status).group(1), 16) >> signal.SIGINT - 1 & 1

    with promise("endless_query"), edited(s, "processes.db", trace, "DROP VIEW processes", "CREATE VIEW processes AS " + bomb.format(
            "count(*) AS process_id, 1 AS pid")) as path:
        child = s.start(CUDATRACE, "tail", "--last", "5", "--db", path, preload=False, stderr=subprocess.DEVNULL)
        wait_for("the blocked signal", lambda: blocks(child))
        child.send_signal(signal.SIGINT)
        equal(child.wait(DEADLINE_S), 1, "the status of tail")
    # Calls of absurd sizes must not keep a query from showing anything.
    with promise("foreign_schema"), edited(s, "sizes.db", trace, f"UPDATE call SET bytes = {2 ** 62}") as path:
        calls = values(s, path, "SELECT count(*) FROM calls")
        equal(values(s, path, "SELECT sum(bytes), sum(-bytes), sum(1), sum(0.5) = 0.5 * count(*) FROM calls"),
              [[2 ** 63 - 1, -2 ** 63, calls[0][0], 1]], "bounded sums")
        equal(values(s, path, "SELECT DISTINCT sum(n) OVER (ORDER BY n ROWS 1 PRECEDING) FROM (SELECT 1 AS n UNION SELECT 2 UNION SELECT NULL "
                                "UNION SELECT 9223372036854775807)"), [[None], [1], [3], [2 ** 63 - 1]], "sums of a window")
        equal(values(s, path, "SELECT sum(bytes) FROM calls WHERE 0"), [[None]], "the sum of nothing")
        equal(tool(s, "report", "--db", path).returncode, 0, "the report")
    with promise("foreign_schema"), edited(s, "empty.db", trace) as path:
        with contextlib.closing(sqlite3.connect(path)) as connection:
            names = connection.execute("SELECT type, name FROM sqlite_master WHERE type IN ('view', 'table') AND "
                                       "name NOT LIKE 'sqlite%'").fetchall()
            for kind, name in sorted(names, reverse=True):
                connection.execute(f'DROP {kind} "{name}"')
            connection.execute("CREATE TABLE totals (a BLOB)")
            connection.commit()
        for command in ("report", "doctor"):
            tool(s, command, "--db", path)
        equal(tool(s, "report", "--db", path).returncode, 1, "ours by number alone")
    with promise("foreign_schema"), edited(
            s, "types.db", trace, ("UPDATE process SET pid = 'x', exe = zeroblob(1000000), cmdline = ?, started_ns = -9e99",
                                   (b"\xff\x00\x9b" * 1000,)),
            "UPDATE total SET calls = 'many', total_ns = 9e999, min_ns = x'00', max_ns = ''",
            "UPDATE meta SET value = zeroblob(100000)") as path:
        for form in ("text", "csv", "json"):
            tool(s, "report", "--db", path, "--format", form, text=False)
            tool(s, "sql", "--db", path, "--format", form, "SELECT * FROM processes; SELECT * FROM totals", text=False)
        tool(s, "doctor", "--db", path, text=False)
    # A daemon that continues a malicious file must not run triggers that the file contains.
    with promise("foreign_schema"), edited(
            s, "trigger.db", trace, "CREATE TABLE sprung (a)", "CREATE TRIGGER t AFTER INSERT ON process BEGIN "
            "INSERT INTO sprung VALUES (load_extension('x')); DELETE FROM meta; END") as path:
        s.db, before = path, s.db
        s.start_daemon()
        s.run(WORKLOADS / "calls", "--calls", 50)
        s.flush()
        s.stop_daemon()
        equal(s.rows("SELECT (SELECT count(*) FROM sprung), (SELECT count(*) > 0 FROM meta), (SELECT count(*) FROM processes "
                     "WHERE cmdline LIKE '%--calls 50')"), [(0, 1, 1)], "triggers sprung, rows of meta, processes")
        s.check_identity()
        s.db = before


def what_a_terminal_obeys(s, trace):
    with edited(s, "escapes.db", trace, ("UPDATE process SET exe = ?, cmdline = ?", (NASTY, NASTY)),
                ("UPDATE function SET name = name || ?", (NASTY,)), (f'CREATE VIEW odd AS SELECT 1 AS "{NASTY}"',)) as path:
        for arguments in (["sql", "--db", path, "SELECT exe, cmdline FROM processes"], ["sql", "--db", path, "SELECT * FROM odd"],
                          ["sql", "--db", path, "SELECT * FROM functions"], ["report", "--db", path],
                          ["sql", "--db", path, f'SELECT "{NASTY}".x FROM odd']):
            with promise("terminal_obeys"):
                done = tool(s, *arguments)
                for said in (done.stdout, done.stderr):
                    bad = set(said) & set("\x1b\x07\x9b\r\t\u202e\u2028\u061c\x7f")
                    check(not bad, arguments, "sent", bad, "in", repr(said[:500]))
        check("a\\x1b]0;owned\\x07b\\xc2\\x9bc\\x0dd\\ne\\tf\\xe2\\x80\\xaeg" in
              sql(s, path, "SELECT exe FROM processes").stdout, "how it is written")
        # Formats that programs read must contain the exact bytes.
        with promise("formats_exact"):
            query = "SELECT DISTINCT exe AS x FROM processes"
            equal([row["x"] for row in json.loads(sql(s, path, query, "--format", "json").stdout)], [NASTY], "as JSON")
            raw = sql(s, path, query, "--format", "csv", text=False).stdout.decode()
            equal(list(csv.reader(io.StringIO(raw, newline=""))), [["x"], [NASTY]], "as CSV")
    with promise("formats_exact"):
        query = "SELECT 'a' || char(0) || 'b' AS n, cast(x'61ff62' AS text) AS u, 9e999 AS i, printf('%.3000c', 'x') AS l"
        row = json.loads(sql(s, trace, query, "--format", "json").stdout)[0]
        equal((row["n"], row["u"], row["i"], len(row["l"])), ("a\0b", "a\ufffdb", float("inf"), 3000), "NUL, bytes, infinity")
        types = "SELECT 1 AS i, 1.5 AS f, '2' AS t, x'3334' AS b, NULL AS n, typeof(cast(5 AS text)) AS o"
        equal(sql(s, trace, types, "--format", "json").stdout,
              '[\n{"i":1,"f":1.5,"t":"2","b":"34","n":null,"o":"text"}\n]\n', "each value as its type")
        check(b'"a\0b",a\xffb,' in sql(s, trace, query, "--format", "csv", text=False).stdout, "as CSV")
        check("a\\x00b  a\\xffb  " in sql(s, trace, query).stdout, "as a table")


OBEYED = "\x1b]0;owned\x07", "\x07", "\x9b", "\x7f", "\u202e", "\udc9b", "\udc90"
EVIL = "evil\x1b]0;owned\x07\x9b31m\x7f\u202e".encode() + b"\x9b31m\x90"
KEYS = {("meta", "key"), ("function", "layer"), ("status", "layer")}
KINDS = {("function", "category"), ("process", "state")}


def on_terminal(s, *command):
    """Runs a command with a terminal as its output. Returns its output."""
    mine, its = pty.openpty()
    child = s.start(*command, preload=False, stdin=subprocess.DEVNULL, stdout=its, stderr=its, env={"TERM": "xterm"})
    os.close(its)
    said = b""
    with contextlib.suppress(OSError):  # EIO once the command has ended
        while part := os.read(mine, 65536):
            said += part
    os.close(mine)
    child.wait(DEADLINE_S)
    return said.decode(errors="surrogateescape")


def what_every_command_prints(s):
    """Puts escape sequences into each text of a trace, and prints the trace with every command and in every format."""
    nvtx = {"NVTX_INJECTION64_PATH": HOOK}
    s.start_daemon()
    for workload in ("demo", "ranges", "named", "graph", "objects"):
        s.run(WORKLOADS / workload, env=nvtx, status=None, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    s.run(WORKLOADS / "calls", "--calls", 300, "--mix", "training", env={"SIMCUDA_FAIL": "cuLaunchKernel"}, status=None)
    s.flush()
    s.stop_daemon()
    trace = s.dir / "copy.db"
    shutil.copy(s.db, trace)
    (s.dir / "hooks").write_bytes(b"kprobe:" + EVIL + b"\nfoo " + EVIL + b"=arg0\n" + EVIL)
    with contextlib.closing(sqlite3.connect(trace)) as connection:
        tables = [name for (name,) in connection.execute("SELECT name FROM sqlite_master WHERE type = 'table' AND name NOT LIKE 'sqlite%'")]
        texts = [(table, column[1]) for table in tables for column in connection.execute(f"PRAGMA table_info({table})") if column[2] == "TEXT"]
    for name, spared in (("all.db", KEYS), ("names.db", KEYS | KINDS)):
        statements = [(f"UPDATE OR IGNORE {table} SET {column} = {column} || CAST(? AS TEXT)", (EVIL,)) for table, column in texts
                      if (table, column) not in spared and table != "meta"]
        with edited(s, name, trace, *statements) as path:
            of = "--db", path
            copy = "SELECT " + ", ".join(f"(SELECT max({column}) FROM {table}) AS {table}_{column}" for table, column in texts)
            commands = [*(["sql", *of, "--format", form, query] for form in ("text", "csv", "json")
                          for query in (copy, "SELECT * FROM calls LIMIT 50", "SELECT * FROM ranges; SELECT * FROM processes")),
                        *(["report", *of, "--format", form] for form in ("text", "markdown", "csv", "json")),
                        *(["tail", *of, "--from", "0", "--all", "--format", form, "--color", "never"] for form in ("text", "json")),
                        *(["export", *of, "--format", form] for form in ("chrome", "pytorch", "jsonl", "csv")),
                        *(["export", *of, "--format", form, "--output", "-"] for form in ("perfetto", "nsys", "sqlite")), ["html", *of, "--output", "-"],
                        ["timeline", *of, "--color", "never"], ["top", *of, "--once"], ["diff", path, path], ["doctor", *of], ["status", *of],
                        ["sql", *of, f'SELECT "{NASTY}"."x"'], ["report", "--db", s.dir / NASTY], ["import", "--db", s.dir / "new.db", s.dir / NASTY],
                        ["export", *of, "--output", s.dir / NASTY / "x"], ["run", "--db", s.dir / NASTY / "x", "--", "true"],
                        ["probe", "--hooks", s.dir / "hooks", "--dry-run"], ["run", "--session", s.name, "--db", s.db, "--", f"./{NASTY}"], [NASTY], ["report", *of, NASTY]]
            printed = ""
            for command in commands:
                with promise("terminal_obeys"):
                    said = on_terminal(s, CUDATRACE, *command)
                    printed += said
                    bad = [sequence for sequence in OBEYED if sequence in said]
                    check(not bad, command, "sent", bad, "in", repr(said[max(said.find(bad[0]) - 300, 0):][:600]) if bad else "")
            check(printed.count("evil") > 500, "names in what was printed:", printed.count("evil"))


def files_that_are_none(s, trace):
    pipe, link, loop = s.dir / "pipe", s.dir / "link", s.dir / "loop"
    os.mkfifo(pipe)
    link.symlink_to(trace)
    loop.symlink_to(loop)
    for path, what in ((pipe, "regular"), ("/dev/zero", "regular"), ("/dev/full", "regular"), (s.dir, "directory"),
                       (loop, "no trace")):
        with promise("no_file"):
            for command in (["sql", "--db", path, "SELECT 1"], ["report", "--db", path]):
                done = tool(s, *command)
                check(done.returncode == 1 and what in done.stderr, command, done.returncode, done.stderr)
            tool(s, "doctor", "--db", path)
            s.run(DAEMON, "--foreground", "--session", s.name + "f", "--db", path, preload=False, status=1)
    sql(s, link, "SELECT count(*) FROM calls", status=0)
    check(pipe.is_fifo(), "the pipe is there")


def damage(s, trace):
    """Makes damaged copies of the trace, and checks that no command crashes on them. Changes random bytes, preferably in the structural
    parts of a page. Truncates some copies, and gives some a stray -wal, -journal or -shm file."""
    whole = trace.read_bytes()
    asked = "; ".join(f"SELECT * FROM {view}" for view in (
        "processes", "threads", "functions", "calls", "launches", "copies", "allocations", "open_calls", "totals", "losses",
        "meta", "sqlite_master")) + "; PRAGMA integrity_check"
    path = s.dir / "damaged.db"
    drawn = [("timeline",), ("top", "--once"), ("html", "--output", s.dir / "page.html"),
             *(("export", "--format", form, "--output", s.dir / "exported") for form in ("chrome", "perfetto", "pytorch", "jsonl", "csv", "nsys", "sqlite"))]
    crashes = []
    for seed in range(VARIANTS):
        chance = random.Random(seed)
        data = bytearray(whole)
        for _ in range(chance.choice((1, 4, 30))):
            page = 4096 * chance.randrange(len(data) // 4096)
            place = chance.choice((chance.randrange(100), page + chance.randrange(12), page + chance.randrange(200),
                                   page + chance.randrange(4096)))
            data[max(place, 16)] = chance.choice((0, 1, 0x7f, 0x80, 0xff, chance.randrange(256)))
        if chance.random() < 0.1:
            del data[chance.randrange(len(data)):]
        path.write_bytes(data)
        beside = [s.dir / ("damaged.db" + end) for end in ("-wal", "-journal", "-shm")]
        for rest in beside:
            rest.unlink(missing_ok=True)
            if chance.random() < 0.05:
                rest.write_bytes(bytes(data[:32 * 1024]) if chance.random() < 0.5 else chance.randbytes(40000))
        commands = [[CUDATRACE, "sql", "--db", path, "--format", chance.choice(("text", "csv", "json")), asked],
                    [CUDATRACE, "report", "--db", path],
                    [CUDATRACE, *chance.choice(drawn), "--db", path]]
        if seed % (VARIANTS // DAEMONS) == 0:
            commands.append([CUDATRACE, "doctor", "--db", path, "--session", s.name])
            commands.append([CUDATRACE, "run", "--session", s.name + "d", "--db", path, "--", "true"])
        for command in commands:
            with promise("damaged_file"):
                done = s.run(*command, preload=False, status=None, text=False)
                said = done.stderr.decode(errors="replace")
                if done.returncode not in (0, 1) or "Sanitizer" in said or "runtime error" in said or \
                        (done.returncode == 1 and "cudatrace" not in said and command[1] != "doctor"):
                    crashes.append((seed, command[1], done.returncode, said[-2000:]))
                equal(crashes, [], "crashes (seed, command, status, what it said)")


with Session() as s:
    s.start_daemon()
    s.run(WORKLOADS / "calls", "--processes", 2, "--threads", 2, "--calls", 300, "--mix", "training")
    s.flush()
    s.stop_daemon()
    trace = s.dir / "copy.db"
    shutil.copy(s.db, trace)
    queries_that_would(s, trace)
    schemas_that_would(s, trace)
    what_a_terminal_obeys(s, trace)
    files_that_are_none(s, trace)
    damage(s, trace)

if can("terminals", "each command on a terminal"):
    with Session() as s:
        what_every_command_prints(s)
