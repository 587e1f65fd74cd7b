"""Tests a file system without shared memory mappings, as with FUSE's direct_io and some network drives. A trace, a trace with a write-ahead
log, and the session's files cannot be there. The messages give the reason and the remedy. All exports can be written there."""
import os
import shutil
import subprocess
import sys

from cudatrace_test import CUDATRACE, DAEMON, Session, WORKLOADS, check, equal, mount_namespace, needs

INSIDE = "CUDATRACE_TEST_NO_MAPPINGS"
if INSIDE not in os.environ:
    needs("mount namespaces", "FUSE", "bindfs")
    done = subprocess.run([*mount_namespace(), sys.executable, __file__], env=dict(os.environ, **{INSIDE: "1"}))
    sys.exit(done.returncode)

REASON = "its file system does not support shared memory mappings"

with Session() as s:
    behind, there = s.dir / "behind", s.dir / "there"
    behind.mkdir()
    there.mkdir()
    subprocess.run(["bindfs", "-o", "direct_io", behind, there], check=True)

    def refused(*command, says):
        done = s.run(*command, preload=False, status=1)
        equal(done.stderr.count("\n"), 1, f"lines of {done.stderr!r}")
        check(REASON in done.stderr and says in done.stderr, command, done.stderr)

    for command in ((DAEMON, "--session", s.name), (CUDATRACE, "run", "--session", s.name)):
        run = ("--", "touch", s.dir / "ran") if "run" in command else ()
        refused(*command, "--db", there / "trace.db", *run, says="name a file on a local disk with --db")
        refused(*command, "--db", s.db, "--shm-dir", there, *run, says="choose a directory on a tmpfs with --shm-dir")
    equal(sorted(path.name for path in behind.iterdir()), [], "files after a refusal")
    check(not (s.dir / "ran").exists(), "the command ran")

    s.start_daemon()
    s.run(WORKLOADS / "calls", "--calls", 100)
    s.flush()
    count = s.value("SELECT count(*) FROM calls")
    for part in ("", "-wal"):
        shutil.copyfile(f"{s.db}{part}", there / f"live.db{part}")
    for command in (["sql", "--db", there / "live.db", "SELECT 1"], ["report", "--db", there / "live.db"]):
        refused(CUDATRACE, *command, says="copy the trace and its -wal file to a local disk")
    doctor = s.run(CUDATRACE, "doctor", "--session", s.name + "x", "--db", there / "live.db", preload=False, status=None)
    check(REASON in doctor.stdout, "the doctor", doctor.stdout)

    for form in ("chrome", "perfetto", "nsys", "sqlite", "jsonl"):
        s.run(CUDATRACE, "export", "--db", s.db, "--format", form, "--output", there / form, preload=False)
        check((behind / form).stat().st_size > 0, form)
    done = s.run(CUDATRACE, "sql", "--db", there / "sqlite", "--format", "csv", "SELECT count(*) FROM calls", preload=False)
    equal(done.stdout.split()[1], str(count), "calls of the export")
    subprocess.run(["umount", there], check=True)
