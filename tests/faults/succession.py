"""Starts daemons while an earlier daemon of the session still holds the session's lock, because it is exiting after SIGKILL or stores its
last calls. One of the new daemons must wait and then serve the session. If the earlier daemon keeps serving, or a second new daemon is
faster, a new daemon must exit at once."""
import contextlib
import ctypes
import os
import re
import signal
import subprocess

from fault_test import (CUDATRACE, DAEMON, DEADLINE_S, FAULT_DAEMON, Session, WORKLOADS, at_point, by_tier, can, check, equal, points,
                        promise, wait_for)

PTRACE_CONT, PTRACE_SEIZE, PTRACE_O_TRACEEXIT, PTRACE_EVENT_EXIT = 7, 0x4206, 0x40, 6
LIBC = ctypes.CDLL(None, use_errno=True)
WAITING = "control_lock.waiting"
check(WAITING in points(FAULT_DAEMON), "no point", WAITING)


def ptrace(request, pid, data=0):
    result = LIBC.ptrace(ctypes.c_long(request), ctypes.c_int(pid), None, ctypes.c_void_p(data))
    check(result == 0, "ptrace", request, os.strerror(ctypes.get_errno()))


@contextlib.contextmanager
def held_while_exiting(s):
    """Kills the daemon, and holds it in exit() during the `with` block. The daemon then has all its files and locks."""
    pid = s.daemon.pid
    ptrace(PTRACE_SEIZE, pid, PTRACE_O_TRACEEXIT)
    os.kill(pid, signal.SIGKILL)
    _, status = os.waitpid(pid, 0)
    equal(status >> 8, signal.SIGTRAP | PTRACE_EVENT_EXIT << 8, "how the killed daemon stopped")
    try:
        yield pid
    finally:
        ptrace(PTRACE_CONT, pid)
    equal(s.daemon.wait(DEADLINE_S), -signal.SIGKILL, "how the daemon ended")


@contextlib.contextmanager
def held_while_stopping(s):
    """Orders the daemon, which was started with a test point, to stop, and suspends it there."""
    s.daemon.send_signal(signal.SIGTERM)
    os.waitid(os.P_PID, s.daemon.pid, os.WSTOPPED | os.WNOWAIT)
    try:
        yield s.daemon.pid
    finally:
        s.daemon.send_signal(signal.SIGCONT)
    equal(s.daemon.wait(DEADLINE_S), 0, "how the daemon ended")


@contextlib.contextmanager
def held_before_stopping(s):
    """Orders a suspended daemon to stop. The daemon cannot take the signal."""
    s.daemon.send_signal(signal.SIGSTOP)
    os.waitid(os.P_PID, s.daemon.pid, os.WSTOPPED | os.WNOWAIT)
    s.daemon.send_signal(signal.SIGTERM)
    try:
        yield s.daemon.pid
    finally:
        s.daemon.send_signal(signal.SIGCONT)
    equal(s.daemon.wait(DEADLINE_S), 0, "how the daemon ended")


class Next:
    """A daemon that is started while another one has the session."""

    def __init__(self, s, *options, program=FAULT_DAEMON, foreground=True, env=None):
        self.s, self.path = s, s.dir / f"next.{len(s.children)}"
        s.daemon_program = program
        command = s.daemon_command(*options)
        if not foreground:
            command.remove("--foreground")
        with open(self.path, "wb") as log:
            self.child = s.start(*command, preload=False, env=env, stdout=log, stderr=log)

    def said(self):
        return self.path.read_text()

    def wait_until_waiting(self, pid, doing):
        wait_for("the daemon to wait", lambda: "waiting for it" in self.said() or self.child.poll() is not None)
        check(f"is served by another cudatraced (process {pid}), which is {doing}: waiting for it" in self.said(), self.said())
        equal(self.said().count("\n"), 1, f"lines: {self.said()}")
        equal(self.child.poll(), None, "the daemon's status while it waits")


def one_serves(s, both):
    """Waits until one of the daemons serves and the other one has exited, and makes the first one the session's daemon."""
    wait_for("one daemon to exit", lambda: any(one.child.poll() is not None for one in both))
    serving, = [one for one in both if one.child.poll() is None]
    refused, = [one for one in both if one is not serving]
    s.wait_until_served(daemon=serving.child)
    equal(refused.child.returncode, 1, "the status of the other one")
    check(f"is served by another cudatraced (process {serving.child.pid}): stop it" in refused.said(), refused.said())
    s.children.remove(serving.child)
    s.daemon = serving.child


def succeeded(held, doing, **daemon):
    """Starts two daemons while the session's daemon is held. When it is released, one of them must serve, and store what is waiting."""
    with Session() as s, promise("daemon-succeeds"):
        s.start_daemon(**daemon)
        s.run(WORKLOADS / "calls", "--calls", 100)
        with held(s) as pid:
            both = [Next(s), Next(s)]
            for one in both:
                one.wait_until_waiting(pid, doing)
        one_serves(s, both)
        s.run(WORKLOADS / "calls", "--calls", 100)
        s.flush()
        equal(s.value("SELECT count(*) FROM processes"), 2, "processes")
        s.check_identity()
        s.check_truth()


def is_ended_by_a_signal(held):
    """Ends a waiting daemon, and the process that waits for a daemon in the background."""
    with Session() as s, promise("daemon-succeeds"):
        s.start_daemon()
        with held(s) as pid:
            waiting = [Next(s), Next(s), Next(s, foreground=False)]
            for one, number in zip(waiting, (signal.SIGTERM, signal.SIGINT, signal.SIGINT)):
                one.wait_until_waiting(pid, "exiting" if held is held_while_exiting else "stopping")
                # A daemon in the background is another process, which keeps the log open.
                ended = in_background(one) if one is waiting[-1] else one.child.pid
                one.child.send_signal(number)
                equal(one.child.wait(DEADLINE_S), -number, "how the waiting one ended")
                wait_for("the daemon in the background to end", lambda ended=ended: not os.path.exists(f"/proc/{ended}"))
                equal(one.said().count("\n"), 1, f"lines: {one.said()}")
        s.start_daemon()  # the session is free


def in_background(one):
    """Returns the process ID of a daemon that was started in the background, from its log."""
    return int(re.search(r"cudatraced\[(\d+)\]", one.said())[1])


def run_finds_the_next(held):
    """Starts a run while the session's daemon is exiting. The run must find or start the next daemon."""
    with Session() as s, promise("daemon-succeeds"):
        s.start_daemon()
        with held(s):
            run = s.start(CUDATRACE, "run", "--session", s.name, "--db", s.db, "--", WORKLOADS / "calls", "--calls", 100, preload=False,
                          env={"CUDATRACE_DAEMON": FAULT_DAEMON}, stdout=subprocess.DEVNULL)
        equal(run.wait(DEADLINE_S), 0, "the run's status")
        s.daemon = None
        equal(s.value("SELECT count(*) FROM processes"), 1, "processes")


def serving_is_not_awaited():
    with Session() as s, promise("daemon-succeeds"):
        daemon = s.start_daemon()
        # This daemon would be killed if it waited.
        refused = Next(s, env=at_point(WAITING))
        equal(refused.child.wait(DEADLINE_S), 1, "the status of a second daemon")
        check(f"is served by another cudatraced (process {daemon.pid}): stop it" in refused.said(), refused.said())


def is_given_up():
    """Uses the ordinary daemon, which waits for ten seconds."""
    with Session() as s, promise("daemon-succeeds"):
        s.start_daemon()
        with held_before_stopping(s) as pid:
            refused = Next(s, program=DAEMON)
            equal(refused.child.wait(DEADLINE_S), 1, "the status of a daemon that has waited")
            check(f"is still served by another cudatraced (process {pid}), which is stopping" in refused.said(), refused.said())
        s.daemon = None


if can("ptrace", "a daemon that is held while it exits"):
    succeeded(held_while_exiting, "exiting")
    is_ended_by_a_signal(held_while_exiting)
    run_finds_the_next(held_while_exiting)
for place in ("session.hidden", "daemon.let_go", "daemon.store_closed", "session.closing"):
    succeeded(held_while_stopping, "stopping", env=dict(os.environ, **at_point(place, action="stop")))
succeeded(held_before_stopping, "stopping")
serving_is_not_awaited()
for _ in by_tier((), range(1)):
    is_given_up()
