"""Shared by the tests that attach to a program that runs (attached.c) and detach it again."""
import glob
import os
import pathlib
import re
import select
import signal
import subprocess

from cudatrace_test import CUDATRACE, DEADLINE_S, SHAPE, WORKLOADS, check, equal, skip, wait_for

PROGRAM = WORKLOADS / "attached"
VERSION = "cuDriverGetVersion"

if not SHAPE:
    skip("a driver without a table of entry points is not attached to: the suite slots tests those with one")
# A driver whose table is unknown: every attach of the test makes slots.
INLINE = ["--inline"] if SHAPE.endswith("-unknown") else []
if INLINE:
    REFUSED = subprocess.run([CUDATRACE, "attach", *INLINE, "1"], cwd="/", env=dict(os.environ, CUDATRACE_HOOK="/nowhere"), capture_output=True,
                             text=True, check=False).stderr
    if "has no decoder" in REFUSED:
        skip(REFUSED.strip())


class Program:
    """A program that runs untraced."""

    def __init__(self, s, mode, threads=1, within=(), program=PROGRAM, **options):
        self.mode = mode
        self.child = s.start(*within, program, "--do", mode, threads, preload=False, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                             stderr=subprocess.PIPE, text=True, **options)
        self.pid = self.child.pid
        equal(self.child.stdout.readline(), "ready\n", mode)

    def step(self, calls):
        self.child.stdin.write(f"{calls}\n")
        self.child.stdin.flush()
        equal(self.child.stdout.readline(), f"made {calls}\n", "a step")

    def end(self, number=None):
        """Returns its output. It must end well."""
        if number:
            self.child.send_signal(number)
        output, errors = self.child.communicate(timeout=DEADLINE_S)
        equal((self.child.returncode, errors), (0, ""), f"the end of {self.mode}")
        return output


class Attach:
    """`cudatrace attach` in the background. Its lines on standard error are events, which are read unbuffered: select() does not
    see what Python has read ahead."""

    def __init__(self, s, *arguments, within=(), **options):
        self.child = s.start(*within, CUDATRACE, "attach", "--session", s.name, "--db", s.db, *INLINE, *arguments, preload=False,
                             stderr=subprocess.PIPE, stdin=subprocess.DEVNULL, bufsize=0, **options)
        self.said = ""

    def await_line(self, part):
        """Reads until a line contains that."""
        while True:
            check(select.select([self.child.stderr], [], [], DEADLINE_S)[0], "no line contains", part, ":", self.said)
            line = self.child.stderr.readline().decode()
            self.said += line
            check(line, "attach ended before a line with", part, ":", self.said)
            if part in line:
                return line

    def end(self, status=0, number=signal.SIGINT):
        if number:
            self.child.send_signal(number)
        self.said += self.child.communicate(timeout=DEADLINE_S)[1].decode()
        if status is not None:
            equal(self.child.returncode, status, f"the status of attach, which printed {self.said}")
        return self.said


def attach(s, *arguments, status=0):
    """In the foreground; returns its lines."""
    return s.run(CUDATRACE, "attach", "--session", s.name, "--db", s.db, *INLINE, *arguments, preload=False, status=status).stderr


def detach(s, pid, status=0):
    return s.run(CUDATRACE, "detach", pid, preload=False, status=status).stderr


def recorded(s, pid):
    """Counts the calls of a process in the trace."""
    return s.value("SELECT ifnull(sum(calls), 0) FROM totals JOIN processes USING (process_id) WHERE pid = ?", pid)


def mapped(pid):
    """The mappings that attach made, and all open descriptors. Both stay as they are after the first visit."""
    maps = pathlib.Path(f"/proc/{pid}/maps").read_text().splitlines()
    return [line for line in maps if "memfd:" in line or re.search(r" r-xp .* 0 *$", line)], sorted(os.listdir(f"/proc/{pid}/fd"))


def state_of(pid):
    return pathlib.Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]


def tracer_of(pid):
    try:
        return int(re.search(r"TracerPid:\t(\d+)", pathlib.Path(f"/proc/{pid}/status").read_text())[1])
    except FileNotFoundError:
        return -1


def await_leave(s):
    """Waits until nothing of the session is left: after --stay a process in the background keeps the daemon for a moment."""
    wait_for("the daemon to leave", lambda: not glob.glob(f"/dev/shm/cudatrace.{os.geteuid()}.{s.name}*"))
