"""Tests the writers of `cudatrace probe`, the processes that write the calls of probed processes. If a writer is killed or stopped, every
lost call must be counted."""
import contextlib
import errno
import os
import pathlib
import signal
import subprocess
import sys
import time

from cudatrace_test import DEADLINE_S, HungCall, can, check, equal, refuse_system_call, wait_for
from probing import OwnDriver, Probe, await_stored, truth_of, writer_of
from untraced import VERSION, Program


def kill_writer(probe, pid):
    """Kills the process's writer, and returns once a new writer has replaced it."""
    killed = wait_for("a writer", lambda: writer_of(probe, pid))
    os.kill(killed, signal.SIGKILL)
    wait_for("another writer", lambda: writer_of(probe, pid) not in (None, killed))


def writer_killed(s):
    """Checks that if a writer is killed, a new writer takes over, and does not report the earlier losses a second time."""
    p = Program(s, "steps")
    probe = Probe(s, "--pid", p.pid)
    stopped = writer_of(probe, p.pid)
    os.kill(stopped, signal.SIGSTOP)
    before = truth_of(s, p.pid)[VERSION]
    p.step(40000)  # more than the ring has room for
    os.kill(stopped, signal.SIGCONT)
    seen = "SELECT sum(calls), sum(lost) > 0 FROM totals JOIN processes USING (process_id) WHERE pid = ?"
    s.flush_until("all calls", lambda: s.rows(seen, p.pid) == [(40000, 1)])
    kill_writer(probe, p.pid)
    p.step(10)
    p.end()
    probe.end(number=None)
    s.flush()
    equal(s.rows(seen, p.pid), [(truth_of(s, p.pid)[VERSION] - before, 1)], "calls, and whether some were lost")


def writer_killed_midway(s):
    """Kills the writer after it has taken a call from the ring, but before it has written the call. Checks that the next writer counts this
    call as lost."""
    if not all(can(need, "a writer that is killed between reading a call and writing it") for need in ("gdb", "ptrace")):
        return
    p = Program(s, "steps")
    probe = Probe(s, "--pid", p.pid)
    writer = writer_of(probe, p.pid)
    p.step(100)
    await_stored(s, p.pid, {VERSION: 100})
    debugger = s.start("gdb", "-q", "-batch", "-p", writer, "-ex", "break write_record", "-ex", "shell echo armed", "-ex", "continue",
                       "-ex", "kill", preload=False, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    check(any("armed" in line for line in debugger.stdout), "the debugger has not attached")
    p.step(10)
    said = debugger.communicate(timeout=DEADLINE_S)[0]
    check("Breakpoint 1" in said, "the writer did not stop:", said)
    wait_for("another writer", lambda: writer_of(probe, p.pid) not in (None, writer))
    p.step(5)
    await_stored(s, p.pid, {VERSION: 115})
    equal(s.rows("SELECT lost FROM totals WHERE name = ?", VERSION), [(1,)], "lost calls")
    p.end()
    probe.end(number=None)


def writer_stopped(s):
    """Checks that the end of the probe continues a stopped writer, which then writes all calls."""
    p = Program(s, "steps")
    probe = Probe(s, "--pid", p.pid)
    stop(writer_of(probe, p.pid))
    p.step(100)
    said = probe.end()
    check("its writer does not end" not in said, said)
    await_stored(s, p.pid, {VERSION: 100})
    p.end()


def writer_kept_stopped(s, interrupts):
    """Checks that a probe waits for two seconds for a writer that it may not continue, or until a second Ctrl-C. The writer writes all calls
    when it is continued."""
    p = Program(s, "steps")
    probe = Probe(s, "--pid", p.pid, preexec_fn=lambda: refuse_system_call("kill", errno.EPERM))
    writer = writer_of(probe, p.pid)
    stop(writer)
    p.step(100)
    since = time.monotonic()
    probe.child.send_signal(signal.SIGINT)
    if interrupts > 1:
        wait_for("the first signal to be taken", lambda: "SigPnd:\t0000000000000000\nShdPnd:\t0000000000000000" in
                 pathlib.Path(f"/proc/{probe.child.pid}/status").read_text())
        probe.child.send_signal(signal.SIGINT)
    probe.child.wait(DEADLINE_S)
    check(time.monotonic() - since < 10, "the probe waited as long as for a running writer")
    os.kill(writer, signal.SIGCONT)  # it has the probe's standard error open
    said = probe.end(number=None)
    check(f"process {p.pid}: its writer does not end" in said, said)
    await_stored(s, p.pid, {VERSION: 100})
    p.end()


def writer_given_up(s):
    writer_kept_stopped(s, 1)


def writer_given_up_by_ctrl_c(s):
    writer_kept_stopped(s, 2)


def stop(pid):
    """Stops the process, and returns once it has stopped."""
    os.kill(pid, signal.SIGSTOP)
    wait_for("a stopped process", lambda: pathlib.Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] == "T")


@contextlib.contextmanager
def writer_killed_unnoticed(s, p, probe):
    """Kills the writer while its probe is stopped. Calls wait in the kernel's ring until the end of the `with` block, which continues the
    probe."""
    killed = writer_of(probe, p.pid)
    p.step(10)
    await_stored(s, p.pid, {VERSION: 10})
    stop(probe.child.pid)
    stop(killed)
    p.step(500)
    os.kill(killed, signal.SIGKILL)
    yield
    equal(s.value("SELECT state FROM processes WHERE pid = ?", p.pid), "running", "the state while calls wait in the ring")
    os.kill(probe.child.pid, signal.SIGCONT)


def await_all_calls(s, p):
    s.flush_until("the end", lambda: s.value("SELECT state FROM processes WHERE pid = ?", p.pid) == "exited")
    equal(s.rows("SELECT sum(calls), sum(lost) FROM totals JOIN processes USING (process_id) WHERE pid = ?", p.pid), [(510, 0)],
          "calls, and lost ones")


def writer_killed_before_the_end(s):
    """Checks that if a process exits after its writer was killed and before the next writer starts, the calls that waited in the kernel are
    stored."""
    p = Program(s, "steps")
    probe = Probe(s, "--pid", p.pid)
    with writer_killed_unnoticed(s, p, probe):
        p.end()
        s.flush()  # the daemon takes notice of the process's end
    await_all_calls(s, p)
    probe.end(number=None)


def writer_killed_before_ctrl_c(s):
    """Checks that a probe replaces a writer that was killed even if the probe itself is about to exit."""
    p = Program(s, "steps")
    probe = Probe(s, "--pid", p.pid)
    with writer_killed_unnoticed(s, p, probe):
        p.end()
        s.flush()
        probe.child.send_signal(signal.SIGINT)
    probe.end(number=None)
    await_all_calls(s, p)


def ring_full_at_the_end(s):
    """Checks that the trace shows how a process ended even if the process had filled its ring. The daemon starts after the process has
    ended, so it cannot query the kernel."""
    for state in "exited", "killed":
        p = Program(s, "steps")
        probe = Probe(s, "--pid", p.pid, "--calls", VERSION)
        writer = writer_of(probe, p.pid)
        stop(writer)
        p.step(40000)
        s.daemon.kill()
        s.daemon.wait()
        if state == "killed":
            p.child.kill()
            p.child.communicate(timeout=DEADLINE_S)
        else:
            p.end()
        os.kill(writer, signal.SIGCONT)
        probe.end(number=None)
        s.start_daemon()
        s.flush_until("the end and all calls", lambda: s.rows(
            "SELECT state, sum(calls), sum(lost) > 0 FROM totals JOIN processes USING (process_id) WHERE pid = ?", p.pid) == [(state, 40000, 1)])


EXECUTES = """
import ctypes, os, sys
driver = ctypes.CDLL(sys.argv[1])
for calls in sys.stdin:
    for _ in range(int(calls)):
        driver.cuDriverGetVersion(ctypes.byref(ctypes.c_int()))
    print("made", flush=True)
    if calls == "20\\n":
        os.execv("/bin/cat", ["cat"])
"""


def writer_killed_before_exec(s):
    """Checks that if a writer is killed, and its process execs another program before the next writer starts, all calls of the first
    program are stored."""
    script = s.dir / "executes.py"
    script.write_text(EXECUTES)
    p = s.start(sys.executable, script, s.driver_file, preload=False, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, bufsize=1)
    probe = Probe(s, *s.every)

    def step(calls):
        p.stdin.write(f"{calls}\n")
        equal(p.stdout.readline(), "made\n", "a step")

    step(10)
    await_stored(s, p.pid, {VERSION: 10})
    killed = writer_of(probe, p.pid)
    stop(probe.child.pid)
    stop(killed)
    step(20)
    wait_for("the other program", lambda: pathlib.Path(f"/proc/{p.pid}/comm").read_text() == "cat\n")
    os.kill(killed, signal.SIGKILL)
    os.kill(probe.child.pid, signal.SIGCONT)
    await_stored(s, p.pid, {VERSION: 30})
    equal(s.value("SELECT sum(lost) FROM totals JOIN processes USING (process_id) WHERE pid = ?", p.pid), 0, "lost calls")
    s.flush_until("the end of the program", lambda: s.value("SELECT state FROM processes WHERE pid = ?", p.pid) != "running")
    p.communicate(timeout=DEADLINE_S)
    probe.end()


def open_calls_adopted(s):
    """Checks that if a writer is killed while a call is open, the next writer shows the open call, and records the call's return in the
    lane of the same thread."""
    probe = Probe(s, *s.every)
    with HungCall(s, start=lambda *command, **options: s.start(*command, preload=False, **options)) as hung:
        kill_writer(probe, hung.pid)
        s.flush_until("the call that hangs", lambda: s.value(
            "SELECT count(*) FROM open_calls JOIN processes USING (process_id) WHERE pid = ? AND name = 'cuCtxSynchronize'", hung.pid) == 1)
        hung.release()
    await_stored(s, hung.pid, dict(truth_of(s, hung.pid)))
    s.flush_until("its end", lambda: s.value("SELECT state FROM processes WHERE pid = ?", hung.pid) == "exited")
    equal(s.rows("SELECT name FROM open_calls JOIN processes USING (process_id) WHERE pid = ?", hung.pid), [], "open calls")
    equal(s.rows("SELECT DISTINCT threads.name FROM threads JOIN processes USING (process_id) WHERE pid = ?", hung.pid), [("hang",)], "threads")
    probe.end()


CASES = (writer_killed, writer_killed_midway, writer_killed_before_the_end, writer_killed_before_ctrl_c,
         writer_killed_before_exec, ring_full_at_the_end, writer_stopped, writer_given_up, writer_given_up_by_ctrl_c, open_calls_adopted)
for unknown in set(sys.argv[1:]) - {case.__name__ for case in CASES}:
    sys.exit(f"no test is called '{unknown}'")
for case in CASES:
    if not sys.argv[1:] or case.__name__ in sys.argv[1:]:
        print(case.__name__, flush=True)
        with OwnDriver() as s:
            s.start_daemon()
            case(s)
