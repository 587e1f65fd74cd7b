"""Tests wrong usage and failures. Each command must print one line that names the problem and the remedy, exit with status 2 or 1, and
change no file."""
import os

from cudatrace_test import CUDATRACE, DAEMON, Session, check, equal

with Session() as s:
    def refuses(status, *command, says, **options):
        done = s.run(*command, preload=False, status=status, **options)
        equal(done.stdout, "", f"standard output of {command}")
        equal(done.stderr.count("\n"), 1, f"lines of {done.stderr!r}")
        check(says in done.stderr, command, "said", done.stderr)
        return done

    equal(s.run(CUDATRACE, preload=False, status=2).stdout, "", "no command at all")
    refuses(2, CUDATRACE, "frobnicate", says="unknown command 'frobnicate'")
    for command in ("timeline", "top", "tail", "html", "export", "flush", "set", "status", "stop", "gc"):
        refuses(2, CUDATRACE, command, "extra", says=f"{command}: unknown argument 'extra'")
    for command in ("--help",), ("-h",), ("--version",), ("help", "gc"):
        refuses(2, CUDATRACE, *command, "extra", says=f"unknown argument 'extra' after {command[0]} ")
    refuses(2, CUDATRACE, "help", "frobnicate", says="unknown command 'frobnicate'")
    for command in ("run", "sql", "report", "flush", "status", "stop", "doctor", "gc"):
        refuses(2, CUDATRACE, command, "--frobnicate", says="--frobnicate")
        refuses(2, CUDATRACE, command, "--session", "a/b", "x", says="invalid session name 'a/b'")
        refuses(2, CUDATRACE, command, "--session", says="option '--session' requires a value")
        check("Usage: cudatrace " + command in s.run(CUDATRACE, command, "--help", preload=False).stdout, "help")
    usage = s.run(CUDATRACE, "probe", "--help", preload=False).stdout
    check("Usage: cudatrace probe (--pid PID | --all | --children PID | --hooked) " in usage, "the synopsis lacks the required choice", usage)
    usage = s.run(CUDATRACE, "set", "--help", preload=False).stdout
    check("[--gpu on|off|DURATION]" in usage and "\n  --gpu on|off|DURATION\n" + " " * 18 + "record " in usage, "the values of set --gpu", usage)
    refuses(2, CUDATRACE, "run", says="no command")
    refuses(2, CUDATRACE, "run", "--", says="no command")
    refuses(2, CUDATRACE, "run", "--session", s.name, "--db", s.db, "--ring", "0", "--", "true", says="invalid value '0' for --ring")
    refuses(2, CUDATRACE, "run", "--session", s.name, "--db", s.db, "--keep", "soon", "--", "true", says="invalid value 'soon' for --keep")
    for command in ("sql", "stop"):
        refuses(2, CUDATRACE, command, "-xy", "SELECT 1", says=f"{command}: unknown option -x ")
        refuses(2, CUDATRACE, command, "--db=x.db", "-xy", says=f"{command}: unknown option -x ")
    refuses(2, CUDATRACE, "gc", "--db", s.db, says="unknown option --db")
    refuses(1, CUDATRACE, "sql", "--db", "/etc/passwd/x", "SELECT 1", says="no trace at '/etc/passwd/x', Not a directory")
    refuses(2, CUDATRACE, "sql", says="specify one query")
    refuses(2, CUDATRACE, "sql", "--format", "xml", "SELECT 1", says="invalid value 'xml' for --format")
    refuses(2, CUDATRACE, "report", "--pid", "many", says="invalid value 'many' for --pid")
    refuses(2, CUDATRACE, "report", "nosuch", says="no section 'nosuch'")
    refuses(2, CUDATRACE, "report", "kernels", "--frobnicate", says="unknown option --frobnicate")
    refuses(2, CUDATRACE, "report", "--", "--db", says="no section '--db'")
    refuses(1, CUDATRACE, "sql", "--db", s.dir / "none.db", "SELECT 1", says="no trace at")
    refuses(1, CUDATRACE, "report", "--db", s.dir, says=f"cannot read '{s.dir}': it is a directory")
    refuses(1, CUDATRACE, "sql", "--db", "/dev/null", "SELECT 1", says="cannot read '/dev/null': it is not a regular file")
    for command in ("flush", "status", "stop"):
        refuses(1, CUDATRACE, command, "--session", s.name, says=f"no cudatraced serves session '{s.name}'")

    here = ["--session", s.name, "--db", s.db]
    for size in ("0", "-1", "65", "63K", "3M", "2G", "huge", ""):
        refuses(2, DAEMON, *here, "--ring", size, says="--ring")
    for duration in ("0s", "5", "5x", "-5m", "1.5h", "5mm", " 5m", "4000d", "99999999999999999999s", ""):
        refuses(2, DAEMON, *here, "--keep", duration, says=f"invalid value '{duration}' for --keep: expected a duration")
    for clock in ("sundial", "count", ""):
        refuses(2, DAEMON, *here, "--clock", clock, says="--clock")
    for level in ("loud", "warn", ""):
        refuses(2, DAEMON, *here, "--log-level", level, says="--log-level")
    refuses(2, CUDATRACE, "gc", "everything", says="'everything'")
    refuses(2, DAEMON, *here, "--frobnicate", says="--frobnicate")
    refuses(2, DAEMON, *here, "surplus", says="'surplus'")
    refuses(2, DAEMON, "--db", s.db, "--session", "a/b", says="'a/b'")
    refuses(2, DAEMON, "--db", s.db, "--session", "", says="invalid session name ''")
    refuses(2, DAEMON, "--session", s.name, "--db", "", says="--db")
    refuses(1, DAEMON, "--session", s.name, "--db", "/nowhere/trace.db", says="/nowhere/trace.db")
    refuses(1, DAEMON, "--session", s.name, "--db", s.dir, says="is a directory")
    equal(sorted(os.listdir(s.dir)), ["counts"], "files after all that")

    # Start two daemons for one session, start two daemons for one database, and run commands with a different database from the daemon's.
    s.start_daemon()
    refuses(1, DAEMON, "--session", s.name, "--db", s.dir / "other.db", says=f"process {s.daemon.pid}")
    refuses(1, DAEMON, "--session", s.name + "x", "--db", s.db, says="written by another cudatraced")
    refuses(1, CUDATRACE, "run", "--session", s.name, "--db", s.dir / "other.db", "--", "true", says="omit --db")
    refuses(1, CUDATRACE, "flush", "--session", s.name, "--db", s.dir / "other.db", says="not")
    for query in (f"ATTACH '{s.dir}/other.db' AS other", "CREATE TEMP TABLE other (a)", "PRAGMA journal_mode = DELETE"):
        refuses(1, CUDATRACE, "sql", "--db", s.db, query, says="a query may only read its trace")
    check(not (s.dir / "other.db").exists(), "the other database was made")
    s.run(CUDATRACE, "run", "--session", s.name, "--", "true", preload=False)

    # Run invalid queries, and queries that would write to the trace.
    for query in ("SELECT nothing FROM nowhere", "SELECT 1 +"):
        refuses(1, CUDATRACE, "sql", "--db", s.db, query, says="sql: ")
    version = s.value("PRAGMA user_version")
    for query in ("DELETE FROM call", "DROP VIEW calls", "ATTACH '/tmp/x.db' AS x", "PRAGMA user_version = 9",
                  "CREATE TABLE x (a)", "VACUUM"):
        s.run(CUDATRACE, "sql", "--db", s.db, query, preload=False, status=None)
        equal(s.value("PRAGMA user_version"), version, "the schema version after " + query)
        equal(s.value("SELECT count(*) FROM sqlite_master WHERE name IN ('calls', 'call')"), 2, query)
    refuses(1, CUDATRACE, "report", "--db", s.db, "--pid", "1", says="no process 1")

    # Check that commands report an error if they cannot read their input or write their output.
    with open("/dev/full", "w") as full:
        for command in (["sql", "--db", s.db, "SELECT 1"], ["report", "--db", s.db], ["status", "--session", s.name], ["gc", "--dry-run"],
                        ["--help"], ["--version"], ["help", "sql"]):
            done = s.run(CUDATRACE, *command, preload=False, status=1, stdout=full)
            check("cannot write standard output: No space left" in done.stderr, command, done.stderr)
    folder = os.open(s.dir, os.O_RDONLY)
    refuses(1, CUDATRACE, "sql", "--db", s.db, "-", says="cannot read the query: Is a directory", stdin=folder)
    os.close(folder)
    s.stop_daemon()
    for path in (f"//{s.db}", f"/{s.db}", os.path.relpath(s.db)):
        equal(s.run(CUDATRACE, "sql", "--db", path, "--format", "csv", "SELECT 1", preload=False).stdout, "1\n1\n", path)
    equal(s.run(CUDATRACE, "sql", "--db", s.db, 'SELECT 1 AS "a\tb", 2 AS c', preload=False).stdout,
          "a\\tb  c\n----  -\n   1  2\n", "a name that is made printable, and what stands below it")
