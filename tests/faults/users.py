"""Runs sessions whose programs belong to users other than root, and lets one user try to access another user's files.

The build's files are copied to a place where every user can read them, because a checkout is often in a home directory."""
import atexit
import contextlib
import errno
import functools
import glob
import os
import pathlib
import shutil
import socket
import subprocess

import fault_test
from fault_test import CUDATRACE, SIMCUDA, WORKLOADS, HungCall, check, needs

ALICE, BOB = 12001, 12002  # only numbers: neither needs an account

needs("several users", "everyone's /dev/shm")


def become(uid):
    os.setgroups([])
    os.setgid(uid)
    os.setuid(uid)


def attempt(uid, act):
    """Runs `act()` in a process that belongs to user `uid`. Returns its result, or the name of the error if it fails."""
    ends = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            become(uid)
            os.write(ends[1], str(act()).encode()[:4000])
        except OSError as error:
            os.write(ends[1], errno.errorcode[error.errno].encode())
        except BaseException as error:
            os.write(ends[1], repr(error).encode()[:4000])
        finally:
            os._exit(0)
    os.close(ends[1])
    with open(ends[0], "rb") as said:
        result = said.read().decode()
    os.waitpid(child, 0)
    return result


DENIED = {"EACCES", "EPERM"}


def intrusions(path):
    """Returns the ways of trying to access or change a file, as {name: function}."""
    def write_open():
        with open(path, "r+b") as file:
            file.write(b"x")

    def replace():
        new = f"{path}.new"
        with open(new, "xb"):
            pass
        try:
            os.replace(new, path)
        finally:
            os.unlink(new)

    return {
        "read": lambda: open(path, "rb").read(1),
        "write": write_open,
        "truncate": lambda: os.truncate(path, 0),
        "unlink": lambda: os.unlink(path),
        "rename": lambda: os.rename(path, f"{path}.taken"),
        "replace": replace,
        "chmod": lambda: os.chmod(path, 0o666),
        "chown": lambda: os.chown(path, os.getuid(), -1),
        "link": lambda: os.link(path, f"{path}.second"),
    }


def stop_daemons(name):
    """Stops daemons that a failed test has left running in the background."""
    for path in glob.glob(f"/dev/shm/cudatrace.*.{name}*.sock"):
        with contextlib.suppress(OSError), socket.socket(socket.AF_UNIX) as client:
            client.connect(path)
            client.sendall(b"stop\n")
            client.recv(100)


class Users:
    """Wraps a Session, and runs the session's programs as a given user. Copies the build to the session's directory."""

    def __init__(self, session):
        self.s = session
        atexit.register(stop_daemons, session.name)
        os.chmod(session.dir, 0o711)
        os.chmod(session.counts, 0o1777)
        self.bin = session.dir / "bin"
        self.bin.mkdir(0o755)
        self.bin.chmod(0o755)
        self.hook = self.copy(session.hook)
        self.daemon = self.copy(session.daemon_program)
        self.cudatrace = self.copy(CUDATRACE)
        self.calls = self.copy(WORKLOADS / "calls")
        self.hang = self.copy(WORKLOADS / "hang")
        for name in ("libcuda.so.1",):
            self.copy(SIMCUDA / name)

    def status(self, uid):
        """Like Session.status(), for the daemon of user `uid`."""
        lines = self.run(uid, self.cudatrace, "status", "--session", self.s.name).stdout.splitlines()
        return dict(line.split(" ", 1) for line in lines if " " in line)

    def copy(self, path):
        shutil.copy(path, self.bin / pathlib.Path(path).name)
        (self.bin / pathlib.Path(path).name).chmod(0o755)
        return self.bin / pathlib.Path(path).name

    def folder(self, name, uid=0, mode=0o755):
        path = self.s.dir / name
        path.mkdir()
        os.chown(path, uid, uid)
        path.chmod(mode)
        return path

    def env(self, preload=True, **more):
        env = self.s.env(preload=False, **more)
        env["LD_LIBRARY_PATH"] = str(self.bin)
        env["CUDATRACE_DAEMON"], env["CUDATRACE_HOOK"] = str(self.daemon), str(self.hook)
        if preload:
            env["LD_PRELOAD"] = str(self.hook)
        return env

    @staticmethod
    def options(uid, umask):
        return {"user": uid, "group": uid, "extra_groups": [], "umask": umask, "cwd": "/"}

    def run(self, uid, *command, status=0, umask=0o022, preload=False, env=None, **options):
        done = subprocess.run([str(c) for c in command], env=self.env(preload, **(env or {})), capture_output=True, text=True,
                              timeout=fault_test.DEADLINE_S, **self.options(uid, umask), **options)
        if status is not None:
            check(done.returncode == status, f"user {uid}", command, "ended with", done.returncode, "and not", status,
                  done.stdout, done.stderr)
        return done

    def start(self, uid, *command, umask=0o022, preload=True, env=None, **options):
        child = subprocess.Popen([str(c) for c in command], env=self.env(preload, **(env or {})), **self.options(uid, umask),
                                 **options)
        self.s.children.append(child)
        return child

    def held(self, uid, *options, umask=0o022):
        """Runs a traced process of user `uid`, which makes its calls and then keeps running until the end of the `with` block."""
        return HungCall(self.s, *options, program=self.hang, start=functools.partial(self.start, uid, umask=umask))
