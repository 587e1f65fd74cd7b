"""Runs an untraced program (attached.c), locks it, and runs commands in the background whose lines on standard error a test can wait for."""
import fcntl
import os
import select
import signal
import subprocess
import sys

from cudatrace_test import DEADLINE_S, WORKLOADS, check, equal

PROGRAM = WORKLOADS / "attached"
VERSION = "cuDriverGetVersion"


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
        """Waits until the program exits, and checks that it has succeeded without printing errors. Returns its output."""
        if number:
            self.child.send_signal(number)
        output, errors = self.child.communicate(timeout=DEADLINE_S)
        equal((self.child.returncode, errors), (0, ""), f"the end of {self.mode}")
        return output


class Background:
    """A command in the background whose lines on standard error a test can wait for. The lines are read unbuffered, because select() does
    not see data in Python's buffer."""

    def __init__(self, s, *command, within=(), **options):
        self.name = command[1]
        self.child = s.start(*within, *command, preload=False, stderr=subprocess.PIPE, stdin=subprocess.DEVNULL, bufsize=0, **options)
        self.said = ""

    def await_line(self, part):
        """Reads the command's lines until a line contains the text, and returns that line."""
        while True:
            check(select.select([self.child.stderr], [], [], DEADLINE_S)[0], "no line contains", part, ":", self.said)
            line = self.child.stderr.readline().decode()
            self.said += line
            check(line, self.name, "ended before a line with", part, ":", self.said)
            if part in line:
                return line

    def end(self, status=0, number=signal.SIGINT):
        if number:
            self.child.send_signal(number)
        self.said += self.child.communicate(timeout=DEADLINE_S)[1].decode()
        if status is not None:
            equal(self.child.returncode, status, f"the status of {self.name}, which printed {self.said}")
        return self.said


def lock(pid):
    """Takes the lock that attach, detach and probe hold while they change or examine the process's code. Returns a descriptor."""
    folder = os.open(f"/proc/{pid}/fd", os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    fcntl.flock(folder, fcntl.LOCK_EX)
    return folder


LOCKER = """
import fcntl, os, sys
folder, held = sys.argv[1], 0
for name in ["", *os.listdir(folder)]:
    try:
        fcntl.flock(os.open(os.path.join(folder, name), os.O_RDONLY | os.O_NONBLOCK), fcntl.LOCK_EX | fcntl.LOCK_NB)
        held += 1
    except OSError:
        pass
print(held, flush=True)
sys.stdin.read()
"""


def lock_as_stranger(s, pid):
    """Starts a program of another user that locks everything in /proc/PID that this user can open, and keeps it locked."""
    stranger = s.start("setpriv", "--reuid", "65534", "--regid", "65534", "--clear-groups", sys.executable, "-c", LOCKER, f"/proc/{pid}",
                       preload=False, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    check(int(stranger.stdout.readline()) > 0, "the other user could lock nothing")
    return stranger
