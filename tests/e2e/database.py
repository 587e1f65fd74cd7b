"""Databases that are not ours to write: foreign, damaged, newer, of another boot, on a full disk."""
import sqlite3
import subprocess

from cudatrace_test import CUDATRACE, DAEMON, Session, WORKLOADS, can, check, equal, mount_namespace

with Session() as s:
    def refused(path, says):
        before = path.read_bytes()
        done = s.run(DAEMON, "--session", s.name, "--db", path, preload=False, status=1)
        equal(done.stderr.count("\n"), 1, f"lines of {done.stderr!r}")
        check(says in done.stderr, done.stderr)
        equal(path.read_bytes(), before, f"the bytes of {path}")
        # A run does not start the command either.
        ran = s.dir / "ran"
        s.run(CUDATRACE, "run", "--session", s.name, "--db", path, "--", "touch", ran, preload=False, status=1)
        check(not ran.exists(), "the command ran")
        equal(path.read_bytes(), before, f"the bytes of {path}")

    text = s.dir / "letter.db"
    text.write_text("Dear reader, this is no database at all.\n" * 100)
    refused(text, "no readable database")

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
    check("no cudatrace" in s.run(CUDATRACE, "sql", "--db", foreign, "SELECT 1", preload=False, status=1).stderr, "sql")

    damaged = s.dir / "damaged.db"
    damaged.write_bytes(s.db.read_bytes()[:4096] + b"\xff" * 8192)
    refused(damaged, "damaged.db")

    # Another boot: the next numbered file, and the old one stays as it was.
    with sqlite3.connect(s.db) as connection:
        connection.execute("UPDATE meta SET value = 'another boot' WHERE key = 'boot_id'")
    connection.close()
    old = s.db.read_bytes()
    s.trace(WORKLOADS / "calls", "--calls", 100)
    equal(s.db.read_bytes(), old, "the database of another boot")
    check(s.value("SELECT count(*) FROM calls", db=s.dir / "trace.2.db") >= 100, "the next file")

    # A full disk at start: said, and nothing left behind.
    mount = s.dir / "full"
    mount.mkdir()
    script = f"mount -t tmpfs -o size=16k none {mount} && {DAEMON} --session {s.name} --db {mount}/trace.db; " \
             f"echo status $?; ls -A {mount}"
    if can("mount namespaces", "a full disk as the daemon starts"):
        done = subprocess.run([*mount_namespace(), "sh", "-c", script], capture_output=True, text=True)
        equal(done.stdout, "status 1\n", "status and files on a full disk")
        equal(done.stderr.count("\n"), 1, f"lines of {done.stderr!r}")
        check("full" in done.stderr, done.stderr)
