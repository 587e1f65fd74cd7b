"""Tests that `cudatrace run COMMAND` behaves towards its caller like `env COMMAND`. The cases test which state the command inherits, which
signals it receives and how many times, when it stops and continues, and how it ends. In each case, `run` must behave as env does."""
import contextlib
import ctypes
import os
import pathlib
import pty
import re
import resource
import select
import signal
import subprocess
import sys
import time

from cudatrace_test import CUDATRACE, DEADLINE_S, HungCall, Session, can, check, equal, wait_for

sys.path.append(str(pathlib.Path(__file__).resolve().parents[1] / "faults"))
from fault_test import promise  # noqa: E402: next to the table of promises

LISTENER = """
import os, signal
signal.pthread_sigmask(signal.SIG_BLOCK, signal.valid_signals())
print("ready", os.getpid(), flush=True)
while True:
    got = signal.sigwaitinfo(signal.valid_signals())
    print(got.si_signo, "value" if got.si_code == -1 else "plain", flush=True)
    if got.si_signo == signal.SIGTERM:
        break
"""
# This program answers SIGUSR1 with a line. The line shows that the program has also handled all earlier signals.
ANSWERER = """
import os, signal
signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGUSR1})
print("ready", os.getpid(), flush=True)
while signal.sigwait({signal.SIGUSR1}):
    print("here", flush=True)
"""
SLEEPER = ("sh", "-c", "echo ready $$; exec sleep 1000")
# The environment variables that `run` may change, according to its documentation.
OURS = ("LD_PRELOAD", "CUDATRACE_SESSION", "CUDATRACE_RUN", "NVTX_INJECTION64_PATH", "ASAN_OPTIONS", "_")
libc = ctypes.CDLL(None, use_errno=True)
# By default, a sanitizer disables core dumps for the program and for the program's children.
os.environ["ASAN_OPTIONS"] = ":".join(filter(None, [os.environ.get("ASAN_OPTIONS"), "disable_coredump=0"]))


def start_afresh():
    """Resets signal handling in a new process. A test that runs in the background ignores some signals, and the new process would otherwise
    ignore them, too."""
    for number in signal.valid_signals() - {signal.SIGKILL, signal.SIGSTOP}:
        signal.signal(number, signal.SIG_DFL)
    signal.pthread_sigmask(signal.SIG_SETMASK, ())


class Run:
    """Runs commands either with env or with `cudatrace run`."""

    def __init__(self, session, traced):
        self.session, self.traced = session, traced
        self.prefix = [str(CUDATRACE), "run", "--db", str(session.db), "--"] if traced else ["env"]

    def start(self, *command, group=True, prepare=None, **options):
        def before():
            start_afresh()
            if group:
                os.setpgid(0, 0)
            if prepare:
                prepare()

        return subprocess.Popen([*self.prefix, *map(str, command)], preexec_fn=before, env=self.session.env(preload=False),
                                **{"stdout": subprocess.PIPE, "stderr": subprocess.DEVNULL, **options})

    def output(self, *command, **options):
        """Returns (status, standard output)."""
        child = self.start(*command, **options)
        out = child.communicate(timeout=DEADLINE_S)[0]
        return child.returncode, out

    def listen(self, *command, **options):
        """Starts a command that prints `ready PID`. Returns (child, PID)."""
        child = self.start(*command, **options)
        said = child.stdout.readline().split()
        equal(said[:1], [b"ready"], "what the command said first")
        return child, int(said[1])

    def lines(self, child, count):
        return [child.stdout.readline().decode().strip() for _ in range(count)]


def change(child):
    """Waits until waitpid() reports that the child has stopped, continued or exited, and returns what has happened."""
    _, status = wait_for(f"a change of process {child.pid}",
                         lambda: (seen := os.waitpid(child.pid, os.WNOHANG | os.WUNTRACED | os.WCONTINUED))[0] and seen)
    if os.WIFSTOPPED(status):
        return "stopped", os.WSTOPSIG(status)
    if os.WIFCONTINUED(status):
        return "continued"
    child.returncode = os.waitstatus_to_exitcode(status)
    return "ended", child.returncode


def state(pid):
    return pathlib.Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]


def parent(pid):
    return int(pathlib.Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1])


def is_blocked(pid, number):
    mask = re.search(r"^SigBlk:\s+(\w+)", pathlib.Path(f"/proc/{pid}/status").read_text(), re.MULTILINE)
    return int(mask[1], 16) >> (number - 1) & 1


def send_value(pid, number):
    class Value(ctypes.Union):
        _fields_ = [("number", ctypes.c_int), ("pointer", ctypes.c_void_p)]

    libc.sigqueue(pid, number, Value(number=7))


# ---- inherited state ----

def inherited(run):
    folder = run.session.dir

    def odd():
        signal.signal(signal.SIGPIPE, signal.SIG_DFL)
        for number in (signal.SIGCHLD, signal.SIGINT, signal.SIGUSR2, signal.SIGTTOU, signal.SIGRTMIN + 3):
            signal.signal(number, signal.SIG_IGN)
        signal.pthread_sigmask(signal.SIG_SETMASK, {signal.SIGALRM, signal.SIGTERM, signal.SIGTSTP, signal.SIGRTMAX})
        os.umask(0o137)
        os.nice(3)
        os.chdir("/usr")
        resource.setrlimit(resource.RLIMIT_CORE, (4096, 8192))
        resource.setrlimit(resource.RLIMIT_NOFILE, (200, 300))

    def closed(*numbers):
        return lambda: [os.close(number) for number in numbers]

    for prepare in (None, odd):
        yield run.output("grep", "-E", "^Sig(Ign|Blk|Cgt)", "/proc/self/status", prepare=prepare)
        yield run.output("sh", "-c", "umask; nice; pwd; ulimit -a; ls /proc/$$/fd", prepare=prepare)
        yield run.output("sh", "-c", "exit 3", prepare=prepare)
    for numbers in ((0,), (1,), (2,), (0, 1, 2)):
        listed = folder / "descriptors"
        yield numbers, run.output("sh", "-c", f"ls /proc/$$/fd >{listed}", prepare=closed(*numbers)), listed.read_text()
    _, environment = run.output("env", "-0")
    yield sorted(line for line in environment.split(b"\0") if line.split(b"=")[0].decode() not in OURS)
    child, pid = run.listen("sh", "-c", "echo ready $$; ps -o pgid= -o sid= -o tpgid= -p $$ >&2; cat", stdin=subprocess.PIPE)
    yield os.getpgid(pid) == child.pid, os.getsid(pid) == os.getsid(0)
    child.stdin.close()
    yield change(child)


def closed_by_command(run):
    """Tests that `run` does not keep a pipe open: the pipe's reader must see end-of-file as soon as the command closes the pipe."""
    ours, its = os.pipe()
    child, _ = run.listen("sh", "-c", f"echo ready $$; exec {its}>&-; exec <&-; exec >&-; exec sleep 1000", stdin=subprocess.PIPE,
                          pass_fds=[its])
    os.close(its)
    yield os.read(ours, 1), child.stdout.read()
    os.close(ours)
    reader = select.poll()
    reader.register(child.stdin, 0)
    yield wait_for("nobody to read from the pipe", lambda: reader.poll(100))[0][1] == select.POLLERR
    child.terminate()
    yield change(child)


# ---- signals ----

def signals(run):
    numbers = sorted(set(signal.valid_signals()) - {signal.SIGKILL, signal.SIGSTOP, signal.SIGTERM})
    child, pid = run.listen(sys.executable, "-c", LISTENER)
    for number in numbers:
        os.kill(child.pid, number)
        yield number, run.lines(child, 1)
    send_value(child.pid, signal.SIGRTMIN + 1)
    yield "sigqueue", run.lines(child, 1)
    # A signal sent to the whole process group must reach the command only once. If the next line is about a different signal, the first
    # signal has not arrived twice.
    for number in (signal.SIGINT, signal.SIGHUP, signal.SIGUSR1, signal.SIGCONT, signal.SIGRTMIN):
        os.killpg(child.pid, number)
        yield "group", run.lines(child, 1)
        os.kill(child.pid, signal.SIGRTMIN + 2)
        yield "behind", run.lines(child, 1)
    # After a signal to the whole group, `run` must not ignore the next signal, which only `run` receives.
    os.kill(child.pid, signal.SIGINT)
    yield "alone", run.lines(child, 1)
    os.kill(child.pid, signal.SIGTERM)
    yield run.lines(child, 1), change(child)

    # Default actions.
    for number in (signal.SIGINT, signal.SIGALRM, signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT, signal.SIGSEGV,
                   signal.SIGPIPE, signal.SIGRTMAX, signal.SIGKILL):
        child, pid = run.listen(*SLEEPER, prepare=lambda: resource.setrlimit(resource.RLIMIT_CORE, (0, 0)))
        command = os.pidfd_open(pid)
        os.kill(child.pid, number)
        yield number, change(child)
        check(select.select([command], [], [], DEADLINE_S)[0], "the command lives on after signal", number)
        os.close(command)

    # Test a signal that is already pending when the command is started, and a timer that is already set.
    def leave_pending():
        signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGUSR1})
        os.kill(os.getpid(), signal.SIGUSR1)

    child, _ = run.listen(sys.executable, "-c", LISTENER, prepare=leave_pending)
    yield "pending", run.lines(child, 1)
    os.kill(child.pid, signal.SIGTERM)
    child.communicate(timeout=DEADLINE_S)
    yield "alarm", run.output("sleep", "1000", prepare=lambda: signal.setitimer(signal.ITIMER_REAL, 0.5))
    yield "core", run.output("sh", "-c", "kill -ABRT $$")[0]


# ---- stopping and continuing ----

def stops(run):
    for whom in ("front", "group", "command"):
        # The stop signals of a terminal work for the command's process group, because the group is not orphaned: its parent is in the same
        # session, but in another group.
        for number in (signal.SIGTSTP, signal.SIGSTOP, signal.SIGTTIN):
            if whom == "front" and number == signal.SIGSTOP:
                continue  # no program can pass SIGSTOP on
            child, pid = run.listen(sys.executable, "-c", ANSWERER)
            send = {"front": lambda n: os.kill(child.pid, n), "group": lambda n: os.killpg(child.pid, n),
                    "command": lambda n: os.kill(pid, n)}[whom]
            for _ in range(2):
                send(number)
                yield whom, number, change(child)
                wait_for("the command to be stopped", lambda: state(pid) == "T")
                send(signal.SIGCONT)
                yield whom, number, change(child)
                for _ in range(2):
                    os.kill(child.pid, signal.SIGUSR1)
                    yield run.lines(child, 1)
            send(signal.SIGTERM)
            yield change(child)


@contextlib.contextmanager
def held(pid):
    """Holds a process with ptrace, so that it does not run even if it receives signals."""
    SEIZE, INTERRUPT, DETACH = 0x4206, 0x4207, 17
    check(libc.ptrace(SEIZE, pid, None, None) == 0 and libc.ptrace(INTERRUPT, pid, None, None) == 0, "ptrace", ctypes.get_errno())
    os.waitpid(pid, 0)
    try:
        yield
    finally:
        check(libc.ptrace(DETACH, pid, None, None) == 0, "ptrace", ctypes.get_errno())


def second_stop(run):
    """Tests that the group can be continued and stopped again before the keeper, the process of `run` that waits for the command, has
    noticed either event."""
    child, pid = run.listen(*SLEEPER)
    os.killpg(child.pid, signal.SIGTSTP)
    yield change(child)
    wait_for("the command to be stopped", lambda: state(pid) == "T")
    with held(parent(pid)) if run.traced else contextlib.nullcontext():
        os.killpg(child.pid, signal.SIGCONT)
        yield change(child)
        # Wait until `run` has handled the signal, and therefore blocks it again.
        wait_for("the front to wait",
                 lambda: state(child.pid) == "S" and (not run.traced or is_blocked(child.pid, signal.SIGTSTP)))
        os.killpg(child.pid, signal.SIGTSTP)
        wait_for("the command to be stopped again", lambda: state(pid) == "T")
    yield change(child), state(pid)
    os.killpg(child.pid, signal.SIGCONT)
    yield change(child)
    child.terminate()
    yield change(child)


# ---- files that cannot be executed ----

def failures(run):
    folder = run.session.dir
    for name, text, mode in (("plain", "echo hello\n", 0o755), ("orphan", "#!/nowhere/interpreter\n", 0o755),
                             ("data", "echo hello\n", 0o644)):
        (folder / name).write_text(text)
        (folder / name).chmod(mode)
    if not (folder / "loop").is_symlink():
        (folder / "loop").symlink_to("loop")
    for command in ("/nowhere/program", "no-such-program", folder, folder / "plain", folder / "orphan", folder / "data",
                    folder / "loop", folder / "plain/x", ""):
        yield command, run.output(command)


# ---- on a terminal ----

def terminal(run):
    """Tests Ctrl-Z, Ctrl-C and Ctrl-\ on a terminal, under a shell with job control."""
    pid, fd = pty.fork()
    if pid == 0:
        start_afresh()
        os.environ.update(run.session.env(preload=False), PS1="$ ", TERM="dumb")
        os.execvp("bash", ["bash", "--norc", "--noediting", "-i"])
    seen = b""

    def until(text):
        nonlocal seen
        deadline = time.monotonic() + DEADLINE_S
        while text not in seen:
            check(select.select([fd], [], [], max(0, deadline - time.monotonic()))[0], "waited for", text, "and saw", seen)
            seen += os.read(fd, 4096)
        before, _, seen = seen.partition(text)
        return before

    def say(line):
        os.write(fd, line + b"\n")

    run_it = " ".join(run.prefix).encode()
    say(b"stty -echo; echo set-$((1 + 1))")
    until(b"set-2\r\n$ ")
    say(run_it + b" sh -c 'echo up-$((1 + 1)); exec sleep 1000'")
    until(b"up-2")
    os.write(fd, b"\x1a")
    yield "stopped", b"Stopped" in until(b"$ ")
    say(b"echo left-$?; jobs -l | grep -c Stopped")
    yield "as", until(b"$ ").split()
    say(b"fg")
    until(b"sleep 1000'")
    # The shell prints the command line before it gives the terminal to the command and continues the command. A key pressed before that
    # would be lost.
    wait_for("the command to go on", lambda: os.tcgetpgrp(fd) != pid and state(os.tcgetpgrp(fd)) != "T")
    os.write(fd, b"\x1a")
    yield "stopped again", b"Stopped" in until(b"$ ")
    say(b"bg; jobs -l | grep -c Running; kill -INT %1; wait %1; echo was-$?")
    yield "in the background", b"1\r\n" in until(b"was-130\r\n$ ")
    # If the command handles the signal that a key sends, both the command and `run` continue.
    say(run_it + b" sh -c 'trap \"echo caught-2\" INT; echo up-$((1 + 2)); while :; do sleep 0.01; done'")
    until(b"up-3")
    os.write(fd, b"\x03")
    until(b"caught-2")
    os.write(fd, b"\x1c")
    until(b"$ ")
    say(b"echo end-$?")
    until(b"end-131\r\n$ ")
    say(b"exit")
    os.close(fd)
    os.waitpid(pid, 0)


# {case: (what it needs, which part is skipped if the need is refused)}
NEEDS = {terminal: ("terminals", "keys on a terminal"), second_stop: ("ptrace", "a second stop that overtakes the keeper")}


def case(name, both):
    seen = []
    for run in both:
        seen.append(list(name(run)))
    by_env, by_run = seen
    check(len(by_env) == len(by_run), name.__name__, by_env, by_run)
    for truth, found in zip(by_env, by_run):
        equal(found, truth, f"{name.__name__}: what run gives")
    print(f"{name.__name__}: {len(by_env)} as by env")


def killed(s):
    """Checks that killing `run` also kills its command, that the command's calls are stored, and that no process or file is left."""
    with HungCall(s, "--calls", 200, within=(CUDATRACE, "run", "--session", s.name, "--db", s.db, "--"),
                  start=lambda *command, env, **options: s.start(*command, env=env, preload=False, **options),
                  stdout=subprocess.DEVNULL) as hung:
        hung.kill()
        wait_for("the daemon to leave", lambda: not any(s.name in name for name in os.listdir("/dev/shm")))
        equal(s.rows("SELECT state, (SELECT count(*) FROM open_calls WHERE name = 'cuCtxSynchronize') FROM processes"),
              [("killed", 1)], "the command's process")
        s.check_truth()
        s.check_identity()


with promise("run-killed"), Session() as s:
    killed(s)
with Session() as s:
    both = Run(s, False), Run(s, True)
    wanted = sys.argv[1:]
    for name in (inherited, closed_by_command, signals, stops, second_stop, failures, terminal):
        if (not wanted or name.__name__ in wanted) and (name not in NEEDS or can(*NEEDS[name])):
            case(name, both)
    # If `run` is killed, the command's calls are stored, and the daemon exits.
    wait_for("the daemon to leave", lambda: not any(s.name in name for name in os.listdir("/dev/shm")))
    s.check_identity()
sys.exit(0)
