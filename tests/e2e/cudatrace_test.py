"""What the end-to-end tests share: a session of their own, real processes, and the trace as rows.

A test is a script that imports this, does its work inside `with Session() as s:` and ends with the exit status of
a failed assertion, 0, or 77 for a skip. Nothing here waits for time: `flush` is the barrier, pipes and FIFOs say
when a program has come to a place, and every wait has a deadline that fails the test.
"""
import collections
import contextlib
import glob
import os
import pathlib
import shutil
import signal
import sqlite3
import subprocess
import sys
import tempfile

BUILD = pathlib.Path(os.environ.get("CUDATRACE_BUILD", "build")).resolve()
# Another build's daemon and tool, where the hook is built for another architecture; None where there is no such build.
TOOLS = os.environ.get("CUDATRACE_DAEMON_BUILD")
TOOLS = BUILD if TOOLS is None else pathlib.Path(TOOLS).resolve() if TOOLS else None
HOOK = BUILD / "hook/libcudatrace.so"
DAEMON = (TOOLS or BUILD) / "collector/cudatraced"
CUDATRACE = (TOOLS or BUILD) / "tools/cudatrace"
SIMCUDA = BUILD / "tests/simcuda"
WORKLOADS = BUILD / "tests/workloads"
SOURCE = pathlib.Path(__file__).resolve().parents[2]
DEADLINE_S = float(os.environ.get("CUDATRACE_TEST_DEADLINE", "240"))
SKIP = 77

sys.path.insert(0, str(SOURCE / "tests/simcuda"))
import counts  # noqa: E402: lies beside the driver that writes them


def skip(why):
    print(f"skipped: {why}")
    sys.exit(SKIP)


def check(condition, *what):
    """An assertion that survives python -O and says what it saw."""
    if not condition:
        raise AssertionError(" ".join(str(w) for w in what))


def equal(seen, wanted, what=""):
    if isinstance(seen, list) and isinstance(wanted, list) and len(seen) + len(wanted) > 20:
        first = [(i, a, b) for i, (a, b) in enumerate(zip(seen, wanted)) if a != b][:5]
        check(seen == wanted, what, f"has {len(seen)} items and should have {len(wanted)}; first differences:", first)
    check(seen == wanted, what, "is", repr(seen), "and should be", repr(wanted))


class Session:
    """A session with a name, a directory and a database of its own; all of it is gone at the end."""

    def __init__(self, hook=HOOK, daemon_program=DAEMON):
        self.name = f"t{os.getpid()}-{len(os.listdir('/proc/self/fd'))}"
        self.hook, self.daemon_program = hook, daemon_program
        self.daemon = None
        self.children = []

    def __enter__(self):
        self.dir = pathlib.Path(tempfile.mkdtemp(prefix="cudatrace-test-"))
        self.db = self.dir / "trace.db"
        self.counts = self.dir / "counts"
        self.counts.mkdir()
        return self

    def __exit__(self, kind, error, trace):
        for child in self.children:
            if child.poll() is None:
                child.kill()
                child.wait()
        if self.daemon and self.daemon.poll() is None:
            if kind is None:
                self.stop_daemon()
            else:
                self.daemon.kill()
                self.daemon.wait()
        left = glob.glob(f"/dev/shm/cudatrace.{os.geteuid()}.{self.name}*")
        for path in left:
            os.unlink(path)
        if kind is None:
            equal(left, [], "what is left in /dev/shm")
        if kind in (None, KeyboardInterrupt):
            shutil.rmtree(self.dir, ignore_errors=True)
        else:
            print(f"kept for a look: {self.dir}", file=sys.stderr)
            with contextlib.suppress(OSError):
                print((self.dir / "daemon.log").read_text(), file=sys.stderr)

    # ---- programs ----

    def env(self, preload=True, **more):
        env = dict(os.environ, LD_LIBRARY_PATH=str(SIMCUDA), CUDATRACE_SESSION=self.name,
                   SIMCUDA_COUNTS=str(self.counts))
        if preload:
            env["LD_PRELOAD"] = " ".join(filter(None, [str(self.hook), os.environ.get("LD_PRELOAD", "")]))
        env.update({key: str(value) for key, value in more.items()})
        return env

    def start(self, *command, preload=True, env=None, **options):
        child = subprocess.Popen([str(c) for c in command], env=self.env(preload, **(env or {})), **options)
        self.children.append(child)
        return child

    def run(self, *command, preload=True, env=None, status=0, **options):
        """Runs to the end; checks the exit status unless it is None."""
        options.setdefault("stdout", subprocess.PIPE)
        options.setdefault("stderr", subprocess.PIPE)
        options.setdefault("text", True)
        done = subprocess.run([str(c) for c in command], env=self.env(preload, **(env or {})), timeout=DEADLINE_S,
                              **options)
        if status is not None:
            check(done.returncode == status, command, "ended with", done.returncode, "and not", status, done.stdout,
                  done.stderr)
        return done

    def cudatrace(self, command, *arguments, status=0, **options):
        return self.run(CUDATRACE, command, "--session", self.name, *arguments, preload=False, status=status, **options)

    def trace(self, *command, status=0, **options):
        """`cudatrace run` of a command."""
        return self.cudatrace("run", "--db", self.db, "--", *command, status=status, **options)

    # ---- the daemon ----

    def start_daemon(self, *options, **popen):
        """In the foreground of a child of ours; returns once it serves the session."""
        log = open(self.dir / "daemon.log", "ab")
        self.daemon = subprocess.Popen(
            [str(self.daemon_program), "--foreground", "--db", str(self.db), "--session", self.name, *options], stdout=log, stderr=log,
            **popen)
        log.close()
        while self.daemon.poll() is None:
            if self.cudatrace("status", status=None).returncode == 0:
                return self.daemon
        raise AssertionError("the daemon did not start: " + (self.dir / "daemon.log").read_text())

    def stop_daemon(self):
        self.daemon.send_signal(signal.SIGTERM)
        equal(self.daemon.wait(DEADLINE_S), 0, "the daemon's exit status")
        self.daemon = None

    def flush(self):
        self.cudatrace("flush")

    # ---- rows ----

    def rows(self, sql, *values, db=None):
        with contextlib.closing(sqlite3.connect(f"file:{db or self.db}?mode=ro", uri=True, timeout=30)) as connection:
            return connection.execute(sql, values).fetchall()

    def value(self, sql, *values, db=None):
        return self.rows(sql, *values, db=db)[0][0]

    def totals(self):
        """{(pid, function): calls} of the driver layer."""
        return {(pid, name): calls for pid, name, calls in self.rows(
            "SELECT pid, totals.name, sum(calls) FROM totals JOIN processes USING (process_id) "
            "WHERE layer = 'driver' GROUP BY pid, totals.name")}

    def truth(self, column="returned"):
        """What the simulated driver counted: {(pid, function): calls}."""
        truth = collections.Counter()
        for pid, _, functions in counts.read_counts(self.counts):
            for name, (entered, returned) in functions.items():
                truth[pid, name] += entered if column == "entered" else returned
        return {key: calls for key, calls in truth.items() if calls}

    def check_identity(self, lost=0, killed=0):
        """calls = stored + lost + skipped, and stored is what is in `calls` or has expired. Each thread that was `killed` may
        have counted its last loss by function and not yet by cause; None where processes lie about their losses."""
        equal(self.rows("SELECT * FROM totals WHERE calls <> stored + lost + skipped"), [], "broken identities")
        equal(self.rows(
            "SELECT * FROM (SELECT process_id, layer, name, stored - expired FROM totals WHERE stored > expired EXCEPT "
            "SELECT process_id, layer, name, count(*) FROM calls GROUP BY process_id, layer, name)"), [],
            "functions whose stored is not the number of their rows")
        equal(self.value("SELECT (SELECT ifnull(sum(stored - expired), 0) FROM totals) - (SELECT count(*) FROM calls)"), 0,
              "rows that no total counts")
        equal(self.rows(
            "SELECT process_id, layer, name, failed FROM totals WHERE stored > 0 AND expired = 0 EXCEPT "
            "SELECT process_id, layer, name, count(*) FILTER (WHERE status NOT IN (0, 600)) FROM calls "
            "GROUP BY process_id, layer, name"), [], "functions whose failed is not the number of their failed rows")
        if lost is not None:
            equal(self.value("SELECT ifnull(sum(lost), 0) FROM totals"), lost, "calls lost")
        by_function, by_cause = self.rows("SELECT (SELECT ifnull(sum(lost), 0) FROM totals), "
                                          "(SELECT ifnull(sum(calls), 0) FROM losses)")[0]
        check(killed is None or 0 <= by_function - by_cause <= killed, "lost by function", by_function, "and by thread", by_cause)

    def check_truth(self, **only):
        """Every call that the driver counted is in the trace, and no other."""
        seen, truth = self.totals(), self.truth()
        wrong = {key: (seen.get(key, 0), truth.get(key, 0)) for key in seen.keys() | truth.keys()
                 if seen.get(key, 0) != truth.get(key, 0)}
        equal(wrong, {}, "calls in the trace and in the driver that differ")


@contextlib.contextmanager
def fifo(directory, name):
    path = pathlib.Path(directory) / name
    os.mkfifo(path)
    yield path
