"""Code shared by the end-to-end tests. The module gives each test a separate session, starts real processes, and reads the trace as rows.

A test is a script that imports this module and does its work inside `with Session() as s:`. The script exits with 0, with 77 if the test
is skipped, or with the status of a failed assertion. Tests never wait for a fixed time. Instead, they use `flush` as a barrier, and
programs report through pipes and FIFOs that they have reached a certain point. Every wait has a deadline, at which the test fails.
"""
import collections
import contextlib
import ctypes
import fcntl
import functools
import glob
import itertools
import json
import os
import pathlib
import platform
import pty
import random
import select
import shutil
import signal
import sqlite3
import struct
import subprocess
import sys
import tempfile
import termios
import time

BUILD = pathlib.Path(os.environ.get("CUDATRACE_BUILD", "build")).resolve()
# The build folder of the daemon and the command-line tool. If the hook is built for another architecture, this is a separate folder, or
# None.
TOOLS = os.environ.get("CUDATRACE_DAEMON_BUILD")
TOOLS = BUILD if TOOLS is None else pathlib.Path(TOOLS).resolve() if TOOLS else None
HOOK = BUILD / "hook/libcudatrace.so"
DAEMON = (TOOLS or BUILD) / "collector/cudatraced"
CUDATRACE = (TOOLS or BUILD) / "tools/cudatrace"
# Whether the build uses sanitizers, which use more memory and need an unlimited address space.
SANITIZED = DAEMON.exists() and b"__asan_init" in DAEMON.read_bytes()
# Whether the simulated driver's exported functions look like the functions of driver 535 or 580, or are plain functions (the default). Only
# the plain driver's folder contains the simulated NVRTC.
SHAPE = os.environ.get("CUDATRACE_SHAPE", "")
SIMCUDA = BUILD / "tests/simcuda" / SHAPE
DRIVER_PATH = f"{SIMCUDA}:{BUILD / 'tests/simcuda'}" if SHAPE else str(SIMCUDA)
# The value of --clock for the tests' daemons. "monotonic" is the clock of machines whose kernel distrusts the counter. By default, daemons
# choose the clock.
CLOCK = os.environ.get("CUDATRACE_CLOCK", "")
WORKLOADS = BUILD / "tests/workloads"
SOURCE = pathlib.Path(__file__).resolve().parents[2]
# How much work the tests do: "short" for tools/check, "full" for tools/check --full, "long" for tools/check --long.
TIER = os.environ.get("CUDATRACE_TIER", "short")
LONG = TIER == "long"
LONG_LIMITS = 30  # tools/check --long multiplies Meson's limits by this
# The deadline for each wait and for the whole test. Meson passes a deadline 20 seconds before its own limit.
DEADLINE_S = float(os.environ.get("CUDATRACE_TEST_DEADLINE", "380")) * (LONG_LIMITS if LONG else 1)

sys.path.insert(0, str(SOURCE / "tests/simcuda"))
import counts  # noqa: E402: next to the driver that writes the counts
from needs import NOBODY, can, causes, free_shm, have_shm, mount_namespace, needs, refused, skip  # noqa: E402, F401: for the tests


def check(condition, *what):
    """Asserts the condition, even under python -O, and prints the checked values on failure."""
    if not condition:
        raise AssertionError(" ".join(str(w) for w in what))


def equal(seen, wanted, what=""):
    if seen == wanted:
        return
    if isinstance(seen, list) and isinstance(wanted, list) and len(seen) + len(wanted) > 20:
        first = [(i, a, b) for i, (a, b) in enumerate(zip(seen, wanted)) if a != b][:5]
        check(False, what, f"has {len(seen)} items and should have {len(wanted)}; first differences:", first)
    check(False, what, "is", repr(seen), "and should be", repr(wanted))


def by_tier(short, full, long=None):
    """Returns the value for the current tier. If no value is given for the long tier, returns the full tier's value."""
    return {"short": short, "full": full, "long": full if long is None else long}[TIER]


def seed():
    """Returns the seed for the test's random choices. The seed is fixed, except in the long tier, where it is random. CUDATRACE_SEED sets
    it."""
    chosen = os.environ.get("CUDATRACE_SEED") or (random.SystemRandom().randrange(1 << 32) if LONG else 1)
    print(f"CUDATRACE_SEED={chosen}", flush=True)
    return int(chosen)


@functools.cache
def end_in_time():
    """Makes the test fail at its deadline, no matter what it is waiting for. The test's sessions can then report and clean up, which they
    could not do if Meson killed the test."""
    def over(*_):
        raise AssertionError(f"the test took more than {DEADLINE_S:.0f} s, its deadline")

    signal.signal(signal.SIGALRM, over)
    signal.setitimer(signal.ITIMER_REAL, DEADLINE_S)


def wait_for(what, condition):
    """Waits until the condition is true, and returns its value. Fails at the deadline. Sleeps between evaluations of the condition, to
    leave the processor to the programs under test."""
    deadline, pause_s = time.monotonic() + DEADLINE_S, 0.001
    while not (value := condition()):
        check(time.monotonic() < deadline, "waited in vain for", what)
        time.sleep(pause_s)
        pause_s = min(2 * pause_s, 0.03)
    return value


def in_turns(*cases):
    """Runs the test cases, which are generators, in turn, each up to its next yield. A case yields before it waits for a timer of its
    daemon, so that the timers of all cases run at the same time. If one case fails, the other cases are not continued."""
    with contextlib.ExitStack() as stack:
        for case in cases:
            stack.callback(case.close)
        while cases:
            cases = [case for case in cases if next(case, "ended") != "ended"]


def on_terminal(columns, *command, **env):
    """Runs a command on a terminal of the given width. Returns (the command's output on the terminal, its standard error)."""
    here, there = pty.openpty()
    fcntl.ioctl(there, termios.TIOCSWINSZ, struct.pack("HHHH", 50, columns, 0, 0))
    child = subprocess.Popen(list(map(str, command)), stdout=there, stderr=subprocess.PIPE, env=dict(os.environ, TERM="xterm", **env))
    os.close(there)
    said = b""
    while True:
        try:
            piece = os.read(here, 65536)
        except OSError:  # all writers have closed the terminal
            break
        if not piece:
            break
        said += piece
    os.close(here)
    _, errors = child.communicate()
    equal(child.returncode, 0, command)
    return said.decode().replace("\r\n", "\n"), errors.decode()


def first_thread_has_ended(pid):
    return pathlib.Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] == "Z"


def has_ended(pid):
    try:
        return first_thread_has_ended(pid)
    except (FileNotFoundError, ProcessLookupError):
        return True


def has_closed(child, path):
    """Returns whether the process, which has had the file open, has closed the file or exited."""
    try:
        return child.poll() is not None or os.path.realpath(path) not in [os.readlink(file) for file in glob.glob(f"/proc/{child.pid}/fd/*")]
    except OSError:  # it has just closed a descriptor, or ended
        return False


class Session:
    """A session with its own name, directory and database, which are all removed at the end."""

    numbers = itertools.count()

    def __init__(self, hook=HOOK, daemon_program=DAEMON):
        end_in_time()
        self.name = f"t{os.getpid()}-{next(self.numbers)}"
        self.hook, self.daemon_program = hook, daemon_program
        self.daemon = None
        self.children = []

    def __enter__(self):
        self.dir = pathlib.Path(tempfile.mkdtemp(prefix="cudatrace-test-"))
        self.db = self.dir / "trace.db"
        self.counts = self.dir / "counts"
        self.counts.mkdir()
        return self

    def end_all(self):
        """Kills every process that has this session's name in its environment. The programs of a failed test may leave children, which
        would still occupy shared memory that the next test needs."""
        mine = f"CUDATRACE_SESSION={self.name}".encode()
        for folder in glob.glob("/proc/[0-9]*"):
            with contextlib.suppress(OSError):  # the process has ended, or is another user's
                if mine in pathlib.Path(folder, "environ").read_bytes().split(b"\0"):
                    os.kill(int(folder.rpartition("/")[2]), signal.SIGKILL)

    def __exit__(self, kind, error, trace):
        for child in self.children:
            if child.poll() is None:
                child.kill()
                child.wait()
        if kind is not None:
            self.end_all()
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
        if kind in (None, KeyboardInterrupt, GeneratorExit):
            shutil.rmtree(self.dir, ignore_errors=True)
        else:
            print(f"kept for a look: {self.dir}", file=sys.stderr)
            print(self.log(), file=sys.stderr)

    # ---- programs ----

    def env(self, preload=True, **more):
        env = dict(os.environ, LD_LIBRARY_PATH=DRIVER_PATH, CUDATRACE_SESSION=self.name,
                   SIMCUDA_COUNTS=str(self.counts))
        env.pop("CUDATRACE_WAY", None)
        if preload:
            env["LD_PRELOAD"] = " ".join(filter(None, [str(self.hook), os.environ.get("LD_PRELOAD", "")]))
        env.update({key: str(value) for key, value in more.items()})
        return env

    def start(self, *command, preload=True, env=None, **options):
        child = subprocess.Popen([str(c) for c in command], env=self.env(preload, **(env or {})), **options)
        self.children.append(child)
        return child

    def run(self, *command, preload=True, env=None, status=0, **options):
        """Runs the command until it exits. Checks the exit status unless `status` is None."""
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

    def report(self, *options):
        """Returns {section: rows}."""
        return json.loads(self.run(CUDATRACE, "report", "--db", self.db, "--format", "json", *options, preload=False).stdout)

    def trace(self, *command, status=0, **options):
        """Runs a command with `cudatrace run`."""
        return self.cudatrace("run", "--db", self.db, "--", *command, status=status, **options)

    # ---- the daemon ----

    def daemon_command(self, *options, clock=CLOCK):
        return [str(self.daemon_program), "--foreground", "--db", str(self.db), "--session", self.name,
                *(["--clock", clock] if clock else []), *options]

    def start_daemon(self, *options, clock=CLOCK, **popen):
        """Starts the daemon in the foreground, as a child of the test. Returns once the daemon serves the session."""
        log = open(self.dir / "daemon.log", "ab")
        self.daemon = subprocess.Popen(self.daemon_command(*options, clock=clock), stdout=log, stderr=log, **popen)
        log.close()
        self.wait_until_served()
        return self.daemon

    def is_served(self, *options):
        return self.cudatrace("status", *options, status=None).returncode == 0

    def wait_until_served(self, *options, daemon=None, may_end=False):
        """Returns whether the daemon serves the session. Fails if the daemon has exited and `may_end` is false."""
        daemon = daemon or self.daemon
        served = wait_for("a daemon that serves", lambda: self.is_served(*options) or daemon.poll() is not None and "ended")
        check(may_end or served is True, "the daemon ended with", daemon.returncode, "and did not serve:", self.log())
        return served is True

    def status(self):
        """Returns the lines of `cudatrace status` as {first word of the line: rest of the line}."""
        return dict(line.split(" ", 1) for line in self.cudatrace("status").stdout.splitlines() if " " in line)

    def log(self):
        path = self.dir / "daemon.log"
        return path.read_text() if path.exists() else ""

    def stop_daemon(self):
        self.daemon.send_signal(signal.SIGTERM)
        equal(self.daemon.wait(DEADLINE_S), 0, "the daemon's exit status")
        self.daemon = None

    def flush(self):
        self.cudatrace("flush")

    def flush_until(self, what, condition):
        """Flushes repeatedly, and checks the condition after each flush until it is true. Returns the condition's value."""
        def flushed():
            self.flush()
            return condition()

        return wait_for(what, flushed)

    # ---- rows ----

    def rows(self, sql, *values, db=None):
        with contextlib.closing(sqlite3.connect(f"file:{db or self.db}?mode=ro", uri=True, timeout=30)) as connection:
            return connection.execute(sql, values).fetchall()

    def value(self, sql, *values, db=None):
        return self.rows(sql, *values, db=db)[0][0]

    def totals(self):
        """Returns {(pid, function): calls} for the driver layer."""
        return {(pid, name): calls for pid, name, calls in self.rows(
            "SELECT pid, totals.name, sum(calls) FROM totals JOIN processes USING (process_id) "
            "WHERE layer = 'driver' GROUP BY pid, totals.name")}

    def truth(self, column="returned"):
        """Returns the counts of the simulated driver: {(pid, function): calls}."""
        truth = collections.Counter()
        for pid, _, functions in counts.read_counts(self.counts):
            for name, (entered, returned) in functions.items():
                truth[pid, name] += entered if column == "entered" else returned
        return {key: calls for key, calls in truth.items() if calls}

    def check_identity(self, lost=0, killed=0):
        """Calls check_sums(). For each function, also checks that `stored` equals the number of the function's rows in `calls` plus its
        expired calls."""
        self.check_sums(lost, killed)
        equal(self.rows(
            "WITH seen AS (SELECT process_id, layer, name, count(*) AS calls, count(*) FILTER (WHERE status NOT IN (0, 600)) AS failed "
            "FROM calls GROUP BY process_id, layer, name) "
            "SELECT process_id, layer, name, stored, expired, totals.failed, seen.calls, seen.failed FROM totals "
            "LEFT JOIN seen USING (process_id, layer, name) WHERE (stored > expired AND seen.calls IS NOT stored - expired) OR "
            "(stored > 0 AND expired = 0 AND seen.failed IS NOT totals.failed)"), [],
            "functions whose stored, expired or failed are not the numbers of their rows")

    def check_sums(self, lost=0, killed=0):
        """Checks that calls = stored + lost + skipped, and that all sums agree with each other and with the number of rows. `killed` is the
        number of threads that were killed: each of them may have counted its last lost call by function, but not yet by cause. If `killed`
        is None, does not compare these two counts."""
        equal(self.rows("SELECT * FROM totals WHERE calls <> stored + lost + skipped"), [], "broken identities")
        equal(self.value("SELECT (SELECT ifnull(sum(stored - expired), 0) FROM totals) - (SELECT count(*) FROM call)"), 0,
              "rows that no total counts")
        equal(self.rows(
            "SELECT process_id, layer, name, stored, failed FROM totals WHERE stored > 0 EXCEPT "
            "SELECT process_id, layer, name, sum(calls), ifnull((SELECT sum(calls) FROM failures WHERE "
            "(failures.process_id, failures.layer, failures.name) = (durations.process_id, durations.layer, durations.name)), 0) "
            "FROM durations GROUP BY process_id, layer, name"), [], "functions whose durations or failures do not add up")
        equal(self.rows(
            "SELECT process_id, sum(threads.calls), (SELECT sum(stored) FROM totals WHERE totals.process_id = threads.process_id) "
            "AS stored FROM threads GROUP BY process_id HAVING sum(threads.calls) > stored OR (sum(threads.calls) < stored AND "
            "NOT EXISTS (SELECT 1 FROM totals WHERE totals.process_id = threads.process_id AND expired > 0))"), [],
            "processes whose threads' calls do not add up")
        if lost is not None:
            seen = self.value("SELECT ifnull(sum(lost), 0) FROM totals")
            # If there is too little shared memory, additional calls may be lost.
            more = self.value("SELECT ifnull(sum(calls), 0) FROM losses WHERE cause = 'memory'") if "memory" in causes() else 0
            check(lost <= seen <= lost + more, "calls lost are", seen, "and should be", lost, "and for want of memory at most", more)
        by_function, by_cause = self.rows("SELECT (SELECT ifnull(sum(lost), 0) FROM totals), "
                                          "(SELECT ifnull(sum(calls), 0) FROM losses WHERE cause NOT IN ('pressure', 'cupti'))")[0]
        check(killed is None or 0 <= by_function - by_cause <= killed, "lost by function", by_function, "and by thread", by_cause)
        skipped, pressed = self.rows("SELECT (SELECT ifnull(sum(skipped), 0) FROM totals), "
                                     "(SELECT ifnull(sum(calls), 0) FROM losses WHERE cause = 'pressure')")[0]
        check(killed is None or pressed <= skipped, "skipped under pressure, by thread", pressed, "and by function", skipped)

    def check_truth(self, of_hook=()):
        """Checks that the trace contains every call that the driver has counted, and no other calls. `of_hook` names functions that the
        hook itself has called once in each process."""
        seen, truth = self.totals(), self.truth()
        truth = {key: calls - (key[-1] in of_hook) for key, calls in truth.items()}
        wrong = {key: (seen.get(key, 0), truth.get(key, 0)) for key in seen.keys() | truth.keys()
                 if seen.get(key, 0) != truth.get(key, 0)}
        equal(wrong, {}, "calls in the trace and in the driver that differ")


@contextlib.contextmanager
def fifo(directory, name):
    path = pathlib.Path(directory) / name
    os.mkfifo(path)
    yield path


class HungCall:
    """A program that makes some calls, followed by a call to cuCtxSynchronize() that does not return. When the `with` block begins, the
    program is in that hanging call. `release()` lets the program run to completion. `kill()` kills the program while it is in the call, as
    does the end of the `with` block. `within` is a command that runs the program, and `start` replaces the session's start()."""

    def __init__(self, session, *options, within=(), program=WORKLOADS / "hang", start=None, env=None, **popen):
        self.session, self.command, self.popen = session, [*within, program, *options], popen
        self.start, self.env = start or session.start, env or {}

    def __enter__(self):
        places = [self.session.dir / f"{what}.{len(self.session.children)}" for what in ("blocked", "release")]
        for place in places:
            os.mkfifo(place)
            os.chmod(place, 0o666)
        self.go = os.open(places[1], os.O_RDWR)
        blocked = os.open(places[0], os.O_RDONLY | os.O_NONBLOCK)
        self.program = self.start(*self.command, env={
            "SIMCUDA_BLOCK": "cuCtxSynchronize", "SIMCUDA_BLOCK_NOTIFY": places[0], "SIMCUDA_BLOCK_RELEASE": places[1],
            **self.env}, **self.popen)
        self.pid = self.program.pid
        wait_for("a program to be in its call, or to end", lambda: select.select([blocked], [], [], 0.1)[0] or
                 self.program.poll() is not None)
        try:
            check(os.read(blocked, 1), "the program ended before its call, with", self.program.poll())
        finally:
            os.close(blocked)
        return self

    def release(self):
        os.write(self.go, b"\n")
        equal(self.program.wait(DEADLINE_S), 0, "the status of the program whose call was let go on")

    def kill(self):
        """Kills the program. If the program is a command that runs others, also waits until the kernel has killed that command's
        children."""
        children = pathlib.Path(f"/proc/{self.pid}/task/{self.pid}/children").read_text().split()
        self.program.kill()
        self.program.wait(DEADLINE_S)
        for child in children:
            wait_for("the children of the killed command to end", lambda child=child: has_ended(child))

    def __exit__(self, *error):
        if self.program.poll() is None:
            self.kill()
        os.close(self.go)


def refuse_system_call(name, error):
    """Makes a system call fail with the given error, as a container's filter does. Call this function in a new process (preexec_fn)."""
    number = {"kill": {"x86_64": 62, "aarch64": 129}, "linkat": {"x86_64": 265, "aarch64": 37}, "pidfd_open": {"x86_64": 434, "aarch64": 434},
              "unshare": {"x86_64": 272, "aarch64": 97}}[name][platform.machine()]
    set_no_new_privs, set_seccomp, mode_filter = 38, 22, 2
    load_number, equals, give = 0x20, 0x15, 0x06  # BPF: load the first word of seccomp_data; jump; return
    deny, allow = 0x50000, 0x7FFF0000
    program = b"".join(struct.pack("HBBI", *row) for row in (
        (load_number, 0, 0, 0), (equals, 0, 1, number), (give, 0, 0, deny | error), (give, 0, 0, allow)))
    code = ctypes.create_string_buffer(program)
    filters = ctypes.create_string_buffer(struct.pack("HxxxxxxP", 4, ctypes.addressof(code)))
    libc = ctypes.CDLL(None, use_errno=True)
    zeros = [ctypes.c_ulong(0)] * 2
    if libc.prctl(set_no_new_privs, ctypes.c_ulong(1), ctypes.c_ulong(0), *zeros) or \
            libc.prctl(set_seccomp, ctypes.c_ulong(mode_filter), filters, *zeros):
        raise OSError(ctypes.get_errno(), "no filter of system calls")
