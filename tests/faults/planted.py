"""Lets another user take the names of the system session's files, and create files that are named like segments. Root's daemon must start
all the same, must also recover the names while it runs, and must ignore the files."""
import glob
import os
import pathlib
import signal
import socket
import subprocess

from fault_test import SANITIZED, WORKLOADS, Session, check, equal, promise, wait_for
from users import ALICE, BOB, Users, attempt

NAMES = ("", ".sock", ".bell")
ASIDE = "/dev/shm/cudatrace.aside.*"
NO_PID = 4000000  # greater than any pid of the kernel
CROWD = 20000


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


def memory_kib(pid):
    """Returns the resident memory of a process."""
    status = pathlib.Path(f"/proc/{pid}/status").read_text()
    return next(int(line.split()[1]) for line in status.splitlines() if line.startswith("VmRSS:"))


def check_ignored(s, count):
    """Checks that the daemon ignores the given number of files, and reports this, and that there is no row for any of them."""
    s.flush()
    status = s.status()
    equal((status["ignored"], status["refused"], status["unrecorded"]), (str(count), "0", "0"), "ignored, refused and unrecorded")
    equal(s.rows("SELECT * FROM unrecorded"), [], "unrecorded processes")


def plant(prefix, count):
    """Creates empty files that are named like segments of processes that do not exist."""
    for i in range(count):
        open(f"{prefix}.{NO_PID + i}.1", "x").close()


def planted_segments(named, *options, infix=""):
    """Checks files that are named like segments of user `named`, but belong to Bob."""
    with Session() as s:
        victim, mark = s.dir / "victim", f"mark-{s.name}"
        victim.write_text("precious")
        prefix = f"/dev/shm/cudatrace.{named}.{s.name}{infix}"
        s.start_daemon(*options)
        s.run(WORKLOADS / "calls", "--calls", 100)
        check_ignored(s, 0)
        check("ignored" not in s.log(), s.log())
        for i, make in enumerate(makers(victim, mark).values()):
            with promise("planted-segments"):
                path = f"{prefix}.{os.getpid()}.{i + 1:x}"
                check(attempt(BOB, lambda: make(path)) == "None" or os.path.lexists(path), f"making {path}")
                check_ignored(s, i + 1)
                check(os.path.lexists(path), path, "is gone")
        equal(victim.read_text(), "precious", "the victim")
        with promise("planted-segments"):
            doctor = s.cudatrace("doctor", status=None).stdout
            check(f"{i + 1} files in /dev/shm are named like segments of this session" in " ".join(doctor.split()), doctor)
            check("unrecorded" not in doctor, doctor)
            done = s.cudatrace("run", "--", "true")
            check("recorded" not in done.stderr.replace("no calls were recorded", ""), done.stderr)
        for path in glob.glob(f"{glob.escape(prefix)}.{os.getpid()}.*"):
            subprocess.run(["rm", "-rf", path], check=True)
        check_ignored(s, 0)

        # The daemon must remember nothing about a file, so its memory does not grow, and a new owner of a file is noticed.
        with promise("planted-segments", 2):
            before = memory_kib(s.daemon.pid)
            equal(attempt(BOB, lambda: plant(prefix, CROWD)), "None", "the crowd")
            check_ignored(s, CROWD)
            grown = memory_kib(s.daemon.pid) - before
            check(grown < CROWD // 10 or SANITIZED, "the daemon's memory has grown by", grown, "KiB")
            os.utime(f"{prefix}.{NO_PID}.1", (1, 1))
            os.chown(f"{prefix}.{NO_PID}.1", named, named)  # what is left of a process that was killed, which the daemon removes
            check_ignored(s, CROWD - 1)
            check(not os.path.lexists(f"{prefix}.{NO_PID}.1"), "a file that now belongs to the user in its name is ignored")
            s.run(WORKLOADS / "calls", "--calls", 100)
            s.flush()
            s.check_identity(lost=0)
            equal(s.value("SELECT count(*) FROM processes"), 2, "recorded processes")
        log = [line for line in s.log().splitlines() if f"user {BOB}" in line]
        if options:  # at most one line in ten seconds
            check(log, s.log())
        else:
            equal(len(log), 2, f"lines about the first file of two groups: {log}")
        for path in glob.glob(f"{glob.escape(prefix)}.*"):
            os.unlink(path)


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
def taken_socket():
    """Checks that commands do not connect to another user's socket, which might never accept a connection."""
    with Session() as s, socket.socket(socket.AF_UNIX) as taken, promise("planted"):
        path = f"/dev/shm/cudatrace.0.{s.name}.sock"
        os.seteuid(BOB)
        taken.bind(path)
        os.seteuid(0)
        os.chmod(path, 0o777)
        taken.listen(10)
        taken.setblocking(False)
        for command in "status", "flush", "stop":
            check("no cudatraced serves" in s.cudatrace(command, status=1).stderr, command)
        try:
            taken.accept()
            check(False, "a command has connected")
        except BlockingIOError:
            pass
        os.unlink(path)


taken_socket()
planted_segments(os.geteuid())
planted_segments(ALICE, "--system", infix=".system")
