"""Removes the session's files while the daemon and a program are running, as systemd-logind does when the last login session of a user
ends. All calls must be stored, commands must find the daemon again, and new programs must be traced. The log, `status` and `doctor` must
report that files were removed."""
import fcntl
import glob
import os
import signal
import subprocess
import sys

from fault_test import Session, WORKLOADS, check, equal, promise, wait_for

PROGRAM = """
import ctypes, sys
cuda, version = ctypes.CDLL("libcuda.so.1"), ctypes.c_int()
for line in sys.stdin:
    for _ in range(int(line)):
        assert cuda.cuDriverGetVersion(ctypes.byref(version)) == 0
    print("made", flush=True)
"""
CALLS = 200


class Program:
    def __init__(self, s):
        self.child = s.start(sys.executable, "-c", PROGRAM, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)

    def call(self):
        self.child.stdin.write(f"{CALLS}\n")
        self.child.stdin.flush()
        equal(self.child.stdout.readline(), "made\n", "the program's answer")

    def end(self):
        self.child.stdin.close()
        equal(self.child.wait(), 0, "the program's status")


def of(s, what):
    control = f"/dev/shm/cudatrace.{os.geteuid()}.{s.name}"
    return {"control": [control], "socket": [control + ".sock"], "segments": glob.glob(control + ".[0-9]*"),
            "all": glob.glob(control + "*")}[what]


def removed(what, says):
    with Session() as s, promise("files_removed"):
        s.start_daemon()
        program = Program(s)
        program.call()
        s.flush()
        before = of(s, "segments")
        for path in of(s, what):
            os.unlink(path)
        program.call()  # the call is recorded through the files that the program has mapped
        wait_for("the log to say so", lambda: os.path.exists(s.dir / "daemon.log") and says in s.log())
        wait_for("tools to find the daemon", s.is_served)
        s.flush()
        for turn in range(3):
            program.call()
            s.flush()
        calls = "SELECT sum(calls), sum(stored) FROM totals WHERE name = 'cuDriverGetVersion'"
        equal(s.rows(calls), [(5 * CALLS, 5 * CALLS)], f"its calls, without: {what}")
        if what != "socket":
            check(set(of(s, "segments")) - set(before), "it has no new segment, without:", what)
        s.run(WORKLOADS / "calls", "--calls", 100)
        program.end()
        s.flush()
        equal(s.value("SELECT count(*) FROM processes"), 2, "processes")
        s.check_identity()
        s.check_truth()
        if what != "segments":
            check(int(s.status()["made_anew"]) >= 1, "what status says:", s.status())
            doctor = " ".join(s.cudatrace("doctor", status=None).stdout.split())
            check("the session's files" in doctor, doctor)
        equal(s.daemon.poll(), None, "the daemon")


def taken():
    """Start another daemon before the first one has noticed that its files were removed. The first daemon must store its calls and exit."""
    with Session() as s, promise("files_removed"):
        s.start_daemon()
        first, log = s.daemon, s.dir / "daemon.log"
        s.run(WORKLOADS / "calls", "--calls", 100)
        wait_for("the first to know the process", lambda: s.value("SELECT count(*) FROM processes") == 1)
        first.send_signal(19)
        for path in of(s, "all"):
            os.unlink(path)
        second = subprocess.Popen([s.daemon_program, "--foreground", "--db", s.dir / "second.db", "--session", s.name],
                                  env=s.env(preload=False), stderr=subprocess.PIPE)
        wait_for("the second to serve", s.is_served)
        first.send_signal(18)
        equal(first.wait(), 1, "the first one's status")
        s.daemon = None
        check(f"another cudatraced now serves session '{s.name}'" in log.read_text(), log.read_text())
        check(s.is_served(), "the second serves still")
        equal(s.value("SELECT sum(calls) > 100 FROM totals"), 1, "calls of the first")
        s.run(WORKLOADS / "calls", "--calls", 100)
        s.cudatrace("flush")
        equal(s.value("SELECT count(*) FROM processes", db=s.dir / "second.db"), 1, "processes of the second")
        s.cudatrace("stop")
        equal(second.wait(), 0, "the second one's status")


def read_locked():
    """Replace the removed control segment with a file that is locked by a process that can only read it. The daemon must still serve the
    session again."""
    with Session() as s, promise("files_removed"):
        daemon = s.start_daemon()
        [control] = of(s, "control")
        daemon.send_signal(signal.SIGSTOP)
        os.unlink(control)
        with open(control, "x") as made, open(control) as reader:
            fcntl.lockf(reader, fcntl.LOCK_SH)
            daemon.send_signal(signal.SIGCONT)
            wait_for("the log to say so", lambda: "control segment was removed by another program, and recreated" in s.log())
            wait_for("tools to find the daemon", s.is_served)
            check(os.stat(control).st_ino != os.fstat(made.fileno()).st_ino, "the control segment is the other process's file")
        s.run(WORKLOADS / "calls", "--calls", 100)
        s.flush()
        equal(s.value("SELECT count(*) FROM processes"), 1, "processes")


removed("all", "files were removed by another program, and recreated")
removed("control", "control segment was removed by another program, and recreated")
removed("socket", "socket was removed by another program, and recreated")
removed("segments", "was removed: calls already in it are stored, and process")
taken()
read_locked()
