"""Tests that each database has its own session, whether many concurrent runs use separate databases or the same one. Commands must find the
session by its database, no matter how its daemon was started. If a command does not find its session, it lists the existing ones."""
import contextlib
import os
import pathlib
import re
import signal
import sqlite3
import subprocess
import sys
import tempfile

from cudatrace_test import CUDATRACE, DAEMON, DEADLINE_S, HungCall, Session, WORKLOADS, by_tier, check, equal, wait_for

MANY = by_tier(20, 50, 100)
CALLS = (WORKLOADS / "calls", "--calls", 50)


class Place:
    """A folder for runs, with its own directory for shared memory and an environment that names no session."""

    def __init__(self, s, shm):
        self.s, self.folder, self.shm = s, s.dir, pathlib.Path(shm)

    def popen(self, *command, cwd=None, env=None, **options):
        environment = self.s.env(preload=False, CUDATRACE_SHM_DIR=self.shm, **(env or {}))
        if "CUDATRACE_SESSION" not in (env or {}):
            del environment["CUDATRACE_SESSION"]
        child = subprocess.Popen([str(word) for word in command], cwd=cwd or self.folder, env=environment, text=True,
                                 **{"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, **options})
        self.s.children.append(child)
        return child

    def finish(self, child, status=0):
        out, err = child.communicate(timeout=DEADLINE_S)
        check(child.returncode == status, child.args, "ended with", child.returncode, "and not", status, out, err)
        return out, err

    def tool(self, *arguments, status=0, **options):
        return self.finish(self.popen(CUDATRACE, *arguments, **options), status)

    def run(self, *options, command=CALLS, **popen):
        return self.popen(CUDATRACE, "run", *options, "--", *command, **popen)

    def sessions(self):
        """Returns the names of the sessions that have files in shared memory."""
        return sorted({name.split(".")[2] for name in os.listdir(self.shm)})

    def processes(self, database, is_written=False):
        """Counts the processes in a database. Checks that the database is one closed file, unless `is_written` is true. Reads it in a way
        that creates no other file."""
        path = self.folder / database
        equal((self.folder / f"{database}-wal").exists(), is_written, "whether there is a log")
        how = "mode=ro" if is_written else "immutable=1"
        with contextlib.closing(sqlite3.connect(f"file:{path}?{how}", uri=True)) as connection:
            return connection.execute("SELECT count(*) FROM processes").fetchone()[0]

    def hung(self, *options, **popen):
        """Starts a run whose command hangs in a call. The command is killed at the end of the `with` block, unless it has been released."""
        return HungCall(self.s, within=(CUDATRACE, "run", *options, "--"),
                        start=lambda *command, env, **rest: self.popen(*command, env=env, **rest), stdout=subprocess.DEVNULL,
                        stderr=subprocess.DEVNULL, **popen)


@contextlib.contextmanager
def place():
    with Session() as s, tempfile.TemporaryDirectory(dir="/dev/shm") as shm:
        here = Place(s, shm)
        yield here
        equal(here.sessions(), [], "sessions of which something is left")


# Start runs with different databases at the same time, all in one folder. Each run has its own daemon, and no file is left.
with place() as here:
    runs = [here.run("--db", f"{n}.db", stdout=subprocess.DEVNULL) for n in range(MANY)]
    for child in runs:
        here.finish(child)
    for n in range(MANY):
        equal(here.processes(f"{n}.db"), 1, f"processes in {n}.db")
        here.s.db = here.folder / f"{n}.db"
        here.s.check_identity()
    with contextlib.closing(sqlite3.connect(":memory:")) as one:
        seen = {}
        for n in range(MANY):
            one.execute("ATTACH ? AS trace", (str(here.folder / f"{n}.db"),))
            for pid, name, calls in one.execute("SELECT pid, totals.name, calls FROM trace.totals JOIN trace.processes USING "
                                                "(process_id) WHERE layer = 'driver'"):
                seen[pid, name] = calls
            one.execute("DETACH trace")
        equal(seen, here.s.truth(), "calls in all databases")

# If a run's daemon is killed, `flush` prints a command that starts a daemon for the same session. This daemon stores all calls.
with place() as here:
    with here.hung("--db", "k.db") as hung:
        here.tool("flush", "--db", "k.db")
        os.kill(int(re.search(r"^daemon (\d+)", here.tool("status", "--db", "k.db")[0], re.M)[1]), signal.SIGKILL)
        err = wait_for("the advice", lambda: "was killed" in (said := here.tool("flush", "--db", "k.db", status=1)[1]) and said)
        equal(err.split("`")[1], f"cudatraced --session {here.sessions()[0]} --db k.db", "the advice")
        said = here.tool("doctor", "--db", "k.db")[0]
        check(f"Session {here.sessions()[0]}\n" in said and "was killed; a new daemon continues" in said and "`cudatrace run --db k.db`" in said, said)
        here.popen(DAEMON, *err.split("`")[1].split()[1:])
        wait_for("the next daemon", lambda: here.popen(CUDATRACE, "flush", "--db", "k.db").wait(DEADLINE_S) == 0)
        hung.release()
    here.tool("stop", "--db", "k.db")
    equal(here.processes("k.db"), 1, "processes")

# Start runs that write to the same database, but name it by different paths. There must be only one session.
with place() as here:
    (here.folder / "link.db").symlink_to("one.db")
    (here.folder / "sub").mkdir()
    (here.folder / "other").symlink_to(here.folder)
    with here.hung("--db", "one.db") as hung:
        equal(len(here.sessions()), 1, "sessions")
        ways = [("one.db", here.folder), ("./one.db", here.folder), ("../one.db", here.folder / "sub"), ("link.db", here.folder),
                (here.folder / "other/one.db", "/"), ("other/sub/../one.db", here.folder)]
        runs = [here.run("--db", path, cwd=cwd, stdout=subprocess.DEVNULL) for path, cwd in ways]
        for child in runs:
            here.finish(child)
        os.link(here.folder / "one.db", here.folder / "hard.db")
        here.tool("flush", "--db", "hard.db")
        os.unlink(here.folder / "hard.db")
        equal(len(here.sessions()), 1, "sessions")
        hung.release()
    equal(here.processes("one.db"), 1 + len(ways), "processes of all runs")
    # Start ten runs with the same database at once. Exactly one run starts a daemon.
    runs = [here.run("--db", "race.db", stdout=subprocess.DEVNULL) for _ in range(10)]
    for child in runs:
        here.finish(child)
    equal(here.processes("race.db"), 10, "processes of runs that raced")

# Start a daemon manually, with an arbitrary session name. Then run commands with and without the path of the daemon's database.
with place() as here:
    daemon = here.popen(DAEMON, "--foreground", "--db", "jobs.db", "--session", "jobs")
    wait_for("the daemon", lambda: here.popen(CUDATRACE, "status", "--session", "jobs").wait() == 0)
    here.finish(here.run("--db", "jobs.db", command=("sh", "-c", f"test $CUDATRACE_SESSION = jobs && {WORKLOADS}/calls --calls 5")))
    equal(here.processes("jobs.db", is_written=True), 1, "processes in a trace that a daemon was there for")
    for command in (["flush"], ["set", "--sample", "1"], ["status"], ["top", "--once"]):
        here.tool(*command, "--db", "jobs.db")
    check("Session jobs\n" in here.popen(CUDATRACE, "doctor", "--db", "jobs.db").communicate()[0], "doctor by --db")
    out, err = here.tool("status")
    check("session jobs\n" in out and "session 'jobs' (process" in err, "the only session", out, err)
    _, err = here.tool("stop", status=1)
    check("session jobs, process" in err and f"writes {here.folder}/jobs.db" in err, "stop takes no guess", err)
    # If the current folder contains the database of a session, commands use this session rather than guessing one.
    with here.hung() as hung:
        name = [session for session in here.sessions() if session != "jobs"]
        equal(len(name), 1, "sessions but jobs")
        for command in (["status"], ["flush"]):
            here.tool(*command)
        check(f"session {name[0]}\n" in here.tool("status")[0], "the session of ./trace.db")
        out, err = here.tool("top", "--once")
        check("hang" in out, "top beside run, in the same folder", out, err)
        out, err = here.tool("flush", cwd="/", status=1)
        check("session jobs, process" in err and f"session {name[0]}, process" in err, "which sessions there are", err)
        out, err = here.tool("flush", "--db", "none.db", status=1)
        check("no cudatraced writes 'none.db'" in err and "session jobs, process" in err, "a database that nobody writes", err)
        # If a session is named explicitly, no other session is used.
        for way in ({"env": {"CUDATRACE_SESSION": "no-such"}}, {}):
            _, err = here.tool("flush", *([] if way else ["--session", "no-such"]), status=1, **way)
            check("no cudatraced serves session 'no-such'" in err, err)
        # A daemon that writes a different database does not prevent a run, unless the run names the session of that daemon.
        here.finish(here.run("--db", "third.db", env={"CUDATRACE_SESSION": "jobs"}))
        _, err = here.finish(here.run("--db", "third.db", "--session", "jobs"), 1)
        check(f"served by a daemon that writes {here.folder}/jobs.db" in err, err)
        hung.release()
    equal((here.processes("trace.db"), here.processes("third.db")), (1, 1), "processes in ./trace.db and third.db")
    here.tool("stop", "--db", "jobs.db")
    equal(daemon.wait(DEADLINE_S), 0, "the daemon's status")
    # A run that names neither a session nor a database joins the session `default`.
    daemon = here.popen(DAEMON, "--foreground", "--db", "usual.db")
    wait_for("the daemon", lambda: here.popen(CUDATRACE, "status", "--session", "default").wait() == 0)
    here.finish(here.run())
    equal((here.processes("usual.db", is_written=True), here.processes("trace.db")), (1, 1), "processes in default's trace and in ./trace.db")
    here.tool("stop")
    equal(daemon.wait(DEADLINE_S), 0, "the daemon's status")
sys.exit(0)
