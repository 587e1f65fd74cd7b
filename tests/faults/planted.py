"""Lets another user take the names of the system session's files. Root's daemon must start all the same, and must also recover the names
while it runs."""
import glob
import os
import pathlib
import signal
import socket

from fault_test import Session, check, equal, promise, wait_for
from users import BOB, Users, attempt

NAMES = ("", ".sock", ".bell")
ASIDE = "/dev/shm/cudatrace.aside.*"


def makers(victim, mark):
    """Returns the ways to take a name, as {name: function}. `mark` is the name of the file in a folder."""
    def full(path):
        os.mkdir(path)
        pathlib.Path(path, mark).write_text("kept")

    def bound(path):
        with socket.socket(socket.AF_UNIX) as taken:
            taken.bind(path)

    return {
        "file": lambda path: pathlib.Path(path).write_text("x"),
        "open file": lambda path: os.close(os.open(path, os.O_CREAT | os.O_EXCL, 0o666)) or os.chmod(path, 0o666),
        "link": lambda path: os.symlink(victim, path),
        "dangling": lambda path: os.symlink(f"{victim}.new", path),
        "fifo": lambda path: os.mkfifo(path),
        "socket": bound,
        "folder": os.mkdir,
        "full folder": full,
    }


def take_back(mark, wanted):
    """Checks that the full folders still exist under other names, and removes them."""
    with promise("planted"):
        folders = [path for path in map(pathlib.Path, glob.glob(ASIDE)) if (path / mark).exists()]
        equal(len(folders), wanted, "folders that have been renamed")
    for path in folders:
        equal(((path / mark).read_text(), path.stat().st_uid), ("kept", BOB), path)
        (path / mark).unlink()
        path.rmdir()


def check_serves(s, names):
    for name in names:
        status = os.lstat(name)
        equal(status.st_uid, 0, name)
    equal(s.status()["state"], "ok", "the state")


with Session() as s:
    u = Users(s)
    victim, mark = s.dir / "victim", f"mark-{s.name}"
    victim.write_text("precious")
    names = [f"/dev/shm/cudatrace.0.{s.name}{end}" for end in NAMES]
    for path in names:
        for kind, make in makers(victim, mark).items():
            with promise("planted"):
                check(attempt(BOB, lambda: make(path)) == "None" or os.path.lexists(path), f"making {kind} {path}")
                s.start_daemon("--system")
                check_serves(s, names)
                s.stop_daemon()
                equal(victim.read_text(), "precious", "the victim")
                check(not os.path.exists(f"{victim}.new"), "the link was followed")
            take_back(mark, kind == "full folder")

    # Remove the names of a daemon that runs, and take them.
    s.start_daemon("--system")
    for path in names:
        for kind in ("file", "link", "full folder"):
            make = makers(victim, mark)[kind]
            with promise("planted"):
                s.daemon.send_signal(signal.SIGSTOP)
                inode = os.lstat(path).st_ino
                os.unlink(path)
                attempt(BOB, lambda: make(path))
                check(os.path.lexists(path), f"making {kind} {path}")
                s.daemon.send_signal(signal.SIGCONT)
                wait_for("the daemon to take the name back", lambda: os.path.lexists(path) and os.lstat(path).st_uid == 0)
                check(os.lstat(path).st_ino != inode, "the file's inode")
                wait_for("an answer", s.is_served)
                check_serves(s, names)
                equal(victim.read_text(), "precious", "the victim")
            take_back(mark, kind == "full folder")
    s.stop_daemon()
