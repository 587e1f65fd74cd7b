"""Tests that programs in separate namespaces appear in the trace of a daemon outside them. The programs use the machine's /dev/shm or
another directory. Some programs run as root in a user namespace, and some run in a pid namespace that the daemon cannot see into.

    containers.py shared | private | user | sibling | clocks | refused
"""
import os
import pathlib
import subprocess
import sys
import tempfile
import time

from trap_test import (CUDATRACE, DAEMON, HungCall, LIFECYCLE, LINKED, NOBODY, Session, WORKLOADS, check, compiled, equal, fifo, needs,
                       wait_for)

(trap,) = sys.argv[1:]
CALLS = [WORKLOADS / "calls", "--mix", "getctx", "--threads", 1, "--calls", 5000]
CONTAINER = ("unshare", "-r", "-p", "-f", "--mount-proc")
# Gives the container a private /dev/shm.
PRIVATE = ("sh", "-c", 'mount -t tmpfs none /dev/shm && "$0" "$@" && ls -A /dev/shm')


def ended(s, states):
    """Checks how all processes ended. Flushes first, because the daemon then notices that a process in another namespace has exited."""
    s.flush()
    equal(sorted(s.rows("SELECT state, count(*) FROM processes GROUP BY state")), sorted(states.items()), "states")
    s.check_identity()


def shared(s):
    s.start_daemon()
    for _ in range(5):
        s.run(*CONTAINER, *CALLS)
    ended(s, {"exited": 5})


def private(s):
    """Tests --shm-dir as an option and as an environment variable, with relative and absolute paths, and with `run` outside the
    container. No files may appear in any other directory."""
    shm = s.dir / "shm"
    shm.mkdir()
    os.chdir(s.dir)
    env = {"CUDATRACE_SHM_DIR": shm}
    plain = s.run(*CONTAINER, *PRIVATE, *CALLS, preload=False)
    s.daemon = subprocess.Popen([DAEMON, "--foreground", "--db", s.db, "--session", s.name, "--shm-dir", "shm"])
    s.wait_until_served("--shm-dir", "shm")
    seen = s.run(*CONTAINER, *PRIVATE, *CALLS, env=env)
    equal((seen.stdout, seen.stderr), (plain.stdout, plain.stderr), "the output in there, /dev/shm being empty after it")
    s.cudatrace("run", "--shm-dir", "shm", "--", *CONTAINER, *PRIVATE, *CALLS)
    s.cudatrace("run", "--", *CALLS, env=env)
    # To the hook, a relative path would denote a different directory once the program has called chdir(). No file is left if the path is
    # too long.
    for wrong in ("shm", "/" + "x" * 300, shm / "none"):
        s.run(*CALLS, env={"CUDATRACE_SHM_DIR": wrong})
    s.cudatrace("flush", "--shm-dir", shm)
    equal(s.rows("SELECT state FROM processes"), [("exited",)] * 3, "processes")
    s.check_identity()
    equal(s.cudatrace("sql", "--shm-dir", "shm", "--format", "csv", "SELECT count(*) FROM processes").stdout.split()[-1], "3",
          "by the session's name")
    said = s.cudatrace("doctor", "--shm-dir", "shm", status=None).stdout
    check(f"ok    {shm}" in said or f"note  {shm}" in said, said)
    check("serves it; it follows" in said, said)
    equal([name for name in os.listdir("/dev/shm") if s.name in name], [], "files in /dev/shm")
    s.cudatrace("stop", "--shm-dir", "shm")
    equal(s.daemon.wait(), 0, "the daemon's status")
    s.daemon = None
    equal(os.listdir(shm), [], "what is left")
    # If `run` starts a daemon, that daemon also uses the directory.
    s.cudatrace("run", "--db", s.db, "--shm-dir", "shm", "--", *CALLS)
    equal(s.value("SELECT count(*) FROM processes"), 4, "processes")
    equal(os.listdir(shm), [], "what is left")


def user(s):
    """Tests that root in a user namespace is recorded as the user who created the namespace, whether the daemon or the program is inside
    the namespace."""
    os.chmod(s.dir, 0o777)
    os.chmod(s.counts, 0o777)
    as_user = {} if os.geteuid() else {"user": NOBODY, "group": NOBODY, "extra_groups": []}
    for daemon, program in (((), CONTAINER), (CONTAINER, ()), (CONTAINER, CONTAINER)):
        options = ("--session", s.name)
        server = subprocess.Popen([*daemon, DAEMON, "--foreground", "--db", s.db, *options], env=s.env(preload=False),
                                  stderr=subprocess.DEVNULL, **as_user)
        s.children.append(server)
        wait_for("a daemon that serves", lambda: server.poll() is not None or s.run(
            CUDATRACE, "status", *options, preload=False, status=None, **as_user).returncode == 0)
        equal(server.poll(), None, "the daemon's status")
        before = s.value("SELECT count(*) FROM processes")
        s.run(*program, *CALLS, **as_user)
        s.run(*program, CUDATRACE, "flush", *options, preload=False, **as_user)
        equal(s.value("SELECT count(*) FROM processes WHERE state = 'exited'"), before + 1, (daemon, program))
        s.run(*program, CUDATRACE, "stop", *options, preload=False, **as_user)
        equal(server.wait(), 0, "the daemon's status")
    s.check_identity()


def sibling(s):
    """The daemon is in a pid namespace that contains none of the programs. The daemon still notices when each program exits, even in the
    middle of a call."""
    inside = ("unshare", "-p", "-f", "--mount-proc", "--kill-child")
    program = compiled(s, "lifecycle.c", *LIFECYCLE, *LINKED, "-lpthread")
    with fifo(s.dir, "hold") as hold:
        server = s.start(*inside, DAEMON, "--foreground", "--db", s.db, "--session", s.name, preload=False,
                         stderr=subprocess.DEVNULL)
        s.wait_until_served(daemon=server)
        for _ in range(3):
            s.run(*inside, *CALLS)
        s.run(*CALLS)
        ended(s, {"exited": 4})
        # A child that shares its parent's memory does not hold the parent's lock.
        s.run(program, "orphan", s.dir, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        ended(s, {"exited": 5})
        for within in (inside, ()):
            before = s.value("SELECT count(*) FROM processes WHERE state = 'killed'")
            with HungCall(s, "--calls", 100, within=within) as victim:
                for _ in range(3):
                    ended(s, {"exited": 5, "running": 1} if not before else {"exited": 5, "killed": 1, "running": 1})
                victim.kill()
            # unshare has already exited, but the processes that it kills exit a moment later.
            s.flush_until("its end", lambda: s.value("SELECT count(*) FROM processes WHERE state = 'running'") == 0)
            ended(s, {"exited": 5, "killed": before + 1})
        equal(s.rows("SELECT DISTINCT name FROM open_calls"), [("cuCtxSynchronize",)], "what they were in")
        equal([name for name in os.listdir("/dev/shm") if f".{s.name}." in name and not name.endswith(".sock")], [],
              "segments")
        with open(hold, "wb"):
            pass
        s.cudatrace("stop")
        server.wait()


AHEAD_S = 100000


def clocks(s):
    """A time namespace gives its clocks separate offsets. The times of calls must be stored in the daemon's time, whether the daemon or the
    program is inside the namespace, and whichever of its two clocks cudatrace uses. A process inside the namespace must count as running
    until it exits."""
    inside = ("unshare", "--time", "--monotonic", AHEAD_S, "--boottime", 2 * AHEAD_S, "--fork", "--kill-child")
    origins = {(): 0, inside: AHEAD_S * 10**9}
    for daemon, program in (((), inside), (inside, ())):
        for clock in ("counter", "monotonic"):
            name = f"{s.name}-{clock[0]}{len(daemon)}"
            db = s.dir / f"{name}.db"
            options = ("--session", name)
            server = s.start(*daemon, DAEMON, "--foreground", "--db", db, "--clock", clock, *options, preload=False)
            s.wait_until_served(*options, daemon=server)
            began = time.monotonic_ns() + origins[daemon]
            with HungCall(s, "--calls", 100, within=program, env={"CUDATRACE_SESSION": name}):
                s.run(*program, *CALLS, env={"CUDATRACE_SESSION": name})
                s.cudatrace("flush", *options)
                equal(s.rows("SELECT state FROM processes ORDER BY process_id", db=db), [("running",), ("exited",)], (daemon, clock))
            s.cudatrace("flush", *options)
            ended_ns = time.monotonic_ns() + origins[daemon]
            what = f"of a program in {program or 'no'} namespace, with the clock {clock}"
            equal(s.value("SELECT sum(stored) FROM totals WHERE name = 'cuCtxGetCurrent'", db=db), 5100, f"calls {what}")
            first, last = s.rows("SELECT min(start_ns), max(end_ns) FROM calls", db=db)[0]
            check(began - 10**9 < first < last < ended_ns + 10**9, "times", what, began, first, last, ended_ns)
            equal(s.rows("SELECT count(*) FROM processes WHERE started_ns NOT BETWEEN ? AND ?", began - 10**9, ended_ns, db=db),
                  [(0,)], f"starts {what}")
            equal(s.rows("SELECT state, count(*) FROM processes GROUP BY 1 ORDER BY 1", db=db), [("exited", 1), ("killed", 1)], what)
            s.cudatrace("stop", *options)
            server.wait()


def refused(s):
    """Tests that an unusable --shm-dir is rejected with a message."""
    long = pathlib.Path(tempfile.mkdtemp(dir=s.dir)) / ("x" * 90)
    long.mkdir()
    plain = s.dir / "file"
    plain.write_text("")
    for command in ((DAEMON, "--foreground", "--db", s.db), (CUDATRACE, "status"), (CUDATRACE, "run", "--", "true")):
        options = ["--session", s.name, "--shm-dir", long]
        done = s.run(command[0], *command[1:2], *options, *command[2:], preload=False, status=None)
        check(done.returncode in (1, 2) and "107 bytes" in done.stderr, command, done.stderr)
    for wrong, why in ((s.dir / "none", "No such file"), (plain, "Not a directory")):
        done = s.run(DAEMON, "--foreground", "--db", s.db, "--session", s.name, "--shm-dir", wrong, preload=False, status=1)
        check(why in done.stderr and str(wrong) in done.stderr, done.stderr)
        done = s.cudatrace("status", "--shm-dir", wrong, status=2)
        check(why in done.stderr and str(wrong) in done.stderr, done.stderr)


needs(*{"shared": ["user namespaces"], "private": ["user namespaces"], "user": ["user namespaces"], "sibling": ["pid namespaces"],
        "clocks": ["time namespaces"]}.get(trap, []))
with Session() as session:
    {"shared": shared, "private": private, "user": user, "sibling": sibling, "clocks": clocks, "refused": refused}[trap](session)
