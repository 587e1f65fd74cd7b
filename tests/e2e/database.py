"""Tests databases that cudatrace must not write to: damaged or locked databases, databases from another boot or on a full disk, and
databases that another program or a newer cudatrace has made. Also tests that a daemon leaves the trace as one plain file, and that the next
daemon continues in that file."""
import contextlib
import fcntl
import os
import pathlib
import shutil
import signal
import sqlite3
import subprocess

from cudatrace_test import CUDATRACE, DAEMON, Session, WORKLOADS, can, check, equal, mount_namespace

HERE = f"process {os.getpid()} ({pathlib.Path('/proc/self/comm').read_text().strip()}) of user {os.geteuid()}"

with Session() as s:
    def refused(path, says):
        before = path.read_bytes()
        done = s.run(DAEMON, "--session", s.name, "--db", path, preload=False, status=1)
        equal(done.stderr.count("\n"), 1, f"lines of {done.stderr!r}")
        check(says in done.stderr, done.stderr)
        equal(path.read_bytes(), before, f"the bytes of {path}")
        # If the daemon cannot use the database, `cudatrace run` does not start the command.
        ran = s.dir / "ran"
        done = s.run(CUDATRACE, "run", "--session", s.name, "--db", path, "--", "touch", ran, preload=False, status=1)
        check(not ran.exists(), "the command ran")
        check("run: cannot start a daemon: '" in done.stderr and done.stderr.count("\n") == 1, done.stderr)
        equal(path.read_bytes(), before, f"the bytes of {path}")

    text = s.dir / "letter.db"
    text.write_text("Dear reader, this is no database at all.\n" * 100)
    refused(text, "not a readable database")

    foreign = s.dir / "foreign.db"
    with sqlite3.connect(foreign) as connection:
        connection.execute("CREATE TABLE songs (name)")
    connection.close()
    refused(foreign, "another program")

    s.trace(WORKLOADS / "calls", "--calls", 100)
    newer = s.dir / "newer.db"
    newer.write_bytes(s.db.read_bytes())
    with sqlite3.connect(newer) as connection:
        connection.execute("PRAGMA user_version = 99")
    connection.close()
    refused(newer, "newer cudatrace")
    check("newer cudatrace" in s.run(CUDATRACE, "sql", "--db", newer, "SELECT 1", preload=False, status=1).stderr, "sql")
    check("is not a cudatrace trace" in s.run(CUDATRACE, "sql", "--db", foreign, "SELECT 1", preload=False, status=1).stderr, "sql")

    # A file that was copied without its write-ahead log may be empty.
    with contextlib.closing(sqlite3.connect(s.dir / "live.db")) as connection:
        connection.executescript("PRAGMA journal_mode = WAL; PRAGMA wal_autocheckpoint = 0; CREATE TABLE anything (a)")
        (s.dir / "copy.db").write_bytes((s.dir / "live.db").read_bytes())
        copied = s.run(CUDATRACE, "sql", "--db", s.dir / "copy.db", "SELECT 1", preload=False, status=1).stderr
        check("copy.db-wal: copy or move both files together" in copied, "a copy without its log", copied)

    damaged = s.dir / "damaged.db"
    damaged.write_bytes(s.db.read_bytes()[:4096] + b"\xff" * 8192)
    refused(damaged, "damaged.db")

    # Test a valid trace that another program has locked.
    with contextlib.closing(sqlite3.connect(s.db, isolation_level=None)) as locked:
        locked.execute("BEGIN EXCLUSIVE")
        done = s.run(CUDATRACE, "run", "--session", s.name, "--db", s.db, "--", "true", preload=False, status=1)
        wanted = f"database '{s.db}' is locked by {HERE}: end that process, or name another file with --db"
        check(wanted in done.stderr and "run: cannot start a daemon: " in done.stderr, done.stderr)

    # Readers wait for a program that has locked a trace with a write-ahead log, and then name the program.
    shutil.copy(s.db, s.dir / "held.db")
    with contextlib.closing(sqlite3.connect(s.dir / "held.db", isolation_level=None)) as locked:
        locked.execute("PRAGMA locking_mode = EXCLUSIVE")
        locked.execute("PRAGMA journal_mode = WAL")
        locked.execute("CREATE TABLE anything (a)")
        done = s.run(CUDATRACE, "sql", "--db", s.dir / "held.db", "SELECT 1", preload=False, status=1)
        equal(done.stderr, f"cudatrace: cannot read '{s.dir / 'held.db'}': it is locked by {HERE}; end that process\n", "what is said")

    # Test a trace that another program has locked without SQLite.
    for kind in (fcntl.LOCK_SH, fcntl.LOCK_EX):
        with open(s.db, "rb") as locked:
            fcntl.flock(locked, kind)
            done = s.run(DAEMON, "--session", s.name, "--db", s.db, preload=False, status=1)
            check(wanted in done.stderr, done.stderr)
    s.start_daemon()
    done = s.run(DAEMON, "--session", f"{s.name}b", "--db", s.db, preload=False, status=1)
    writer = f"another cudatraced, process {s.daemon.pid} (cudatraced) of user {os.geteuid()}"
    check(f"'{s.db}' is being written by {writer}: name another file with --db" in done.stderr, done.stderr)
    s.stop_daemon()

    # After a reboot, the trace continues in the file with the next number, and the earlier file stays unchanged.
    with sqlite3.connect(s.db) as connection:
        connection.execute("UPDATE meta SET value = 'another boot' WHERE key = 'boot_id'")
    connection.close()
    old = s.db.read_bytes()
    s.trace(WORKLOADS / "calls", "--calls", 100)
    equal(s.db.read_bytes(), old, "the database of another boot")
    check(s.value("SELECT count(*) FROM calls", db=s.dir / "trace.2.db") >= 100, "the next file")

    # A deleted current folder.
    gone = s.dir / "gone"
    script = f"mkdir {gone} && cd {gone} && rmdir {gone} && exec {CUDATRACE} run --session {s.name} -- true"
    done = s.run("sh", "-c", script, preload=False, status=2)
    check("--db trace.db: the current directory was deleted: change to another one" in done.stderr, done.stderr)

    # If the disk is full when the daemon starts, the daemon reports this and leaves no file.
    mount = s.dir / "full"
    mount.mkdir()
    script = f"mount -t tmpfs -o size=16k none {mount} && {DAEMON} --session {s.name} --db {mount}/trace.db; " \
             f"echo status $?; ls -A {mount}"
    if can("mount namespaces", "a full disk as the daemon starts"):
        done = subprocess.run([*mount_namespace(), "sh", "-c", script], capture_output=True, text=True)
        equal(done.stdout, "status 1\n", "status and files on a full disk")
        equal(done.stderr.count("\n"), 1, f"lines of {done.stderr!r}")
        check("full" in done.stderr, done.stderr)

LOG = b"\2\2"  # bytes 18 and 19 of a database that needs a write-ahead log


def is_plain(path):
    return path.read_bytes()[18:20] != LOG and not [beside for beside in path.parent.glob(f"{path.name}-*")]


def calls(s, db=None):
    return int(s.run(CUDATRACE, "sql", "--db", db or s.db, "--format", "csv", "SELECT count(*) FROM calls", preload=False).stdout.split()[1])


# While a daemon writes a trace, another name of the file is read under the daemon's name. If no daemon can be reached, the name is refused,
# because the write-ahead log with the newest calls is next to the daemon's name only.
with Session() as s:
    s.start_daemon()
    for folder in ("link", "mount", "empty"):
        (s.dir / folder).mkdir()
    link, mounted = s.dir / "link/trace.db", s.dir / "mount/trace.db"
    link.hardlink_to(s.db)
    mounted.touch()
    elsewhere = {"CUDATRACE_SHM_DIR": str(s.dir / "empty"), "CUDATRACE_SESSION": ""}
    query = "--format", "csv", "SELECT count(*) FROM calls"

    def by_other_name(script, says, **env):
        done = s.run(*script, env=env, preload=False, status=None)
        check((says in done.stdout and not done.stderr) if says.isdigit() else (says in done.stderr and done.returncode == 1), says, "by", script,
              "is", done.stdout, done.stderr)

    for round in range(2):
        s.run(WORKLOADS / "calls", "--calls", 100)
        s.flush()
        equal(s.value("SELECT 1"), 1, "a connection through the daemon's name")
        count = str(calls(s))
        names = [(link, (CUDATRACE, "sql", "--db", link, *query))]
        if can("mount namespaces", "a mount of the single file"):
            names += [(mounted, (*mount_namespace(), "sh", "-ec", f'mount --bind {s.db} {mounted}; exec "$@"', "sh", CUDATRACE, "sql", "--db", mounted, *query))]
        for name, command in names:
            by_other_name(command, count)
            by_other_name(command, f"cannot read '{name}': a daemon writes it under another name", **elsewhere)
            equal(sorted(path.name for path in name.parent.iterdir()), ["trace.db"], "files next to another name")
        # Copy the log into the file, so that the file has a part of the trace under each name.
        with contextlib.closing(sqlite3.connect(s.db)) as connection:
            connection.execute("PRAGMA wal_checkpoint").fetchall()
    s.stop_daemon()
    by_other_name(names[0][1], str(calls(s)), **elsewhere)

# A symbolic link to an unfinished trace is read, like the file itself, with the calls in its write-ahead log and in its numbered files. A
# daemon that is given the link continues the trace next to the link's target.
with Session() as s:
    (s.dir / "link").mkdir()
    link = s.dir / "link/latest"
    link.symlink_to(s.db)
    outside = {"CUDATRACE_SHM_DIR": str(s.dir / "link"), "CUDATRACE_SESSION": ""}

    def through_link(wanted):
        for env in ({}, outside):
            done = s.run(CUDATRACE, "sql", "--db", link, "--format", "csv", "SELECT count(*) FROM calls", env=env, preload=False, status=None)
            equal((done.returncode, done.stderr, done.stdout), (0, "", f"count(*)\n{wanted}\n"), "through the link")

    for i in range(2):
        s.start_daemon("--db", link if i else s.db)
        s.run(WORKLOADS / "calls", "--calls", 100)
        s.flush()
        through_link(calls(s))
        s.daemon.send_signal(signal.SIGHUP)
        s.flush_until("the next file", lambda: s.status()["file"] == str(s.dir / f"trace.{i + 2}.db"))
        s.run(WORKLOADS / "calls", "--calls", 100)
        s.flush()
        through_link(calls(s))
        s.daemon.kill()
        s.daemon.wait()
        through_link(calls(s))
    s.start_daemon("--db", link)
    s.stop_daemon()
    through_link(calls(s))
    equal(os.listdir(link.parent), ["latest"], "files next to the link")

# A finished trace is a plain file without a write-ahead log. A later daemon uses the file with a log again, and when it exits, the trace is
# again a plain file.
with Session() as s:
    for n in (1, 2):
        s.start_daemon()
        check(not is_plain(s.db), "the file has no log while a daemon writes")
        s.run(WORKLOADS / "calls", "--calls", 100)
        s.stop_daemon()
        check(is_plain(s.db), "a finished trace is not plain:", *s.dir.iterdir())
        equal(s.value("SELECT count(*) FROM processes"), n, "processes")
    # If another program is reading the file, the file stays unchanged, and the trace continues in the next file. The test itself reads the
    # file here. It compares the file's bytes only afterwards, because opening and closing the file a second time would drop the reader's
    # lock.
    before = s.db.read_bytes()
    with contextlib.closing(sqlite3.connect(s.db)) as reader:
        reading = reader.execute("SELECT * FROM call")
        reading.fetchone()
        s.start_daemon()
        s.run(WORKLOADS / "calls", "--calls", 100)
        s.stop_daemon()
    check(s.db.read_bytes() == before, "the file that is read was written")
    second = s.dir / "trace.2.db"
    check(is_plain(second), "the next file is not plain")
    equal(calls(s), s.value("SELECT count(*) FROM calls") + s.value("SELECT count(*) FROM calls", db=second), "calls of both files")

# When the trace continues in another file, the previous file becomes a plain file. While another program is reading a file, the file's log
# remains.
with Session() as s:
    s.start_daemon()
    s.run(WORKLOADS / "calls", "--calls", 100)
    s.flush()
    s.daemon.send_signal(signal.SIGHUP)
    s.flush_until("the next file", lambda: (s.dir / "trace.2.db").exists() and s.status()["file"].endswith("trace.2.db"))
    check(is_plain(s.db), "the file before is not plain")
    with contextlib.closing(sqlite3.connect(s.dir / "trace.2.db")) as reader:
        reader.execute("SELECT * FROM meta").fetchall()
        s.stop_daemon()
        check(not is_plain(s.dir / "trace.2.db"), "the log was taken from a reader")
        equal(reader.execute("SELECT count(*) FROM calls").fetchone(), (0,), "calls of the next file")

# `export --format sqlite` creates one plain file, both from a killed daemon's files and from a trace that is still being written.
with Session() as s:
    s.start_daemon()
    s.run(WORKLOADS / "calls", "--calls", 100)
    s.flush()
    plain = s.dir / "plain.db"
    for _ in range(2):
        s.run(CUDATRACE, "export", "--db", s.db, "--format", "sqlite", "--output", plain, preload=False)
        check(is_plain(plain), "what is exported is not plain:", *s.dir.iterdir())
        for query in ("SELECT * FROM calls", "SELECT * FROM totals", "PRAGMA integrity_check"):
            equal(s.rows(query, db=plain), s.rows(query), query)
        if s.daemon.poll() is None:
            s.daemon.kill()
            s.daemon.wait()
    check(s.rows("SELECT * FROM calls", db=plain), "calls")
    check(not is_plain(s.db), "a killed daemon left a plain file")
    part = s.run(CUDATRACE, "export", "--db", s.db, "--format", "sqlite", "--output", plain, "--from", "0", preload=False, status=2)
    check("exports the whole trace" in part.stderr, part.stderr)
    s.start_daemon()
    s.stop_daemon()
    check(is_plain(s.db), "the next daemon leaves a log")
