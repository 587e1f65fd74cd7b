"""Tests the writers of `cudatrace probe`: the process that writes the calls of a probed process is killed or stopped. No call is lost
without being counted."""
import os
import pathlib
import signal
import subprocess
import sys

from cudatrace_test import DEADLINE_S, HungCall, can, check, equal, wait_for
from probing import OwnDriver, Probe, await_stored, truth_of, writer_of
from untraced import VERSION, Program


def kill_writer(probe, pid):
    """Kills the writer, and returns once a new writer has replaced it."""
    killed = wait_for("a writer", lambda: writer_of(probe, pid))
    os.kill(killed, signal.SIGKILL)
    wait_for("another writer", lambda: writer_of(probe, pid) not in (None, killed))


def writer_killed(s):
    """Checks that a new writer takes over, does not report losses a second time, and shows open calls."""
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
    """Kills the writer after it has taken a call from the ring, and before it has written the call. The next writer counts this call as
    lost."""
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
    """Checks that a second Ctrl-C ends a probe that is waiting for a writer, and leaves nothing in the kernel."""
    p = Program(s, "steps")
    probe = Probe(s, "--pid", p.pid)
    os.kill(writer_of(probe, p.pid), signal.SIGSTOP)
    probe.child.send_signal(signal.SIGINT)
    wait_for("the first signal to be taken", lambda: "SigPnd:\t0000000000000000\nShdPnd:\t0000000000000000" in
             pathlib.Path(f"/proc/{probe.child.pid}/status").read_text())
    probe.child.send_signal(signal.SIGINT)
    said = probe.end(number=None)
    check(f"process {p.pid}: its writer does not end" in said, said)
    p.end()


def open_calls_adopted(s):
    """Checks that if a writer is killed during a call, the next writer records the call's return in the lane of the same thread."""
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


CASES = writer_killed, writer_killed_midway, writer_stopped, open_calls_adopted
for unknown in set(sys.argv[1:]) - {case.__name__ for case in CASES}:
    sys.exit(f"no test is called '{unknown}'")
for case in CASES:
    if not sys.argv[1:] or case.__name__ in sys.argv[1:]:
        print(case.__name__, flush=True)
        with OwnDriver() as s:
            s.start_daemon()
            case(s)
