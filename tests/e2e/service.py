"""Tests the daemon's messages to a service manager (READY once the session is served, a status line, STOPPING) and its log. The log has
one line per event. Programs cannot forge lines, or cause too many of them."""
import fcntl
import os
import pathlib
import pty
import re
import select
import shutil
import signal
import socket
import subprocess
import sys
import termios
import time

from cudatrace_test import CUDATRACE, DAEMON, DEADLINE_S, Session, WORKLOADS, can, check, equal, fifo, wait_for

sys.path.append(str(pathlib.Path(__file__).resolve().parents[1] / "faults"))
from fault_test import promise  # noqa: E402: next to the table of promises

LINE = re.compile(r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d cudatraced\[\d+\]: (error|warning|notice|info|debug): (.*)")


class Manager:
    """Plays the service manager: receives the daemon's messages on NOTIFY_SOCKET."""

    def __init__(self, path):
        self.socket = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self.socket.bind(path)
        self.told = []

    def wait_for(self, beginning):
        """Receives messages until a line begins with the given text, and returns that line."""
        deadline = time.monotonic() + DEADLINE_S
        while True:
            ready, _, _ = select.select([self.socket], [], [], max(0, deadline - time.monotonic()))
            check(ready, "not told", beginning, "but", self.told)
            lines = self.socket.recv(4096).decode().split("\n")
            self.told += lines
            for line in lines:
                if line.startswith(beginning):
                    return line

    def rest(self):
        self.socket.setblocking(False)
        try:
            while True:
                self.told += self.socket.recv(4096).decode().split("\n")
        except BlockingIOError:
            return self.told


def log_of(s):
    """Returns [(level, text)] of the lines in the log. Fails if a line has a different form."""
    text = (s.dir / "daemon.log").read_text()
    lines = [LINE.fullmatch(line) for line in text.splitlines()]
    check(all(lines), "a line of", repr(text), "is no event")
    return [line.groups() for line in lines]


def start(s, *options, env=None):
    """Starts a daemon without waiting until it serves the session."""
    with open(s.dir / "daemon.log", "ab") as log:
        s.daemon = subprocess.Popen([DAEMON, "--foreground", "--db", s.db, "--session", s.name, *options], stdout=log, stderr=log,
                                    env=dict(os.environ, **{key: str(value) for key, value in (env or {}).items()}))



# Test a service manager whose socket has a path, and a service manager whose socket has an abstract name.
for address in ("path", "abstract"):
    with promise("service-ready"), Session() as s, fifo(s.dir, "hold") as hold:
        path = str(s.dir / "notify") if address == "path" else f"\0{s.name}-notify"
        manager = Manager(path)
        start(s, env={"NOTIFY_SOCKET": path.replace("\0", "@"), "WATCHDOG_USEC": 20000})
        manager.wait_for("READY=1")
        check(any(line.startswith("STATUS=0 processes, 0 threads, 0 calls stored; ok") for line in manager.told), manager.told)
        s.cudatrace("status")  # READY means that the session is served: the first request gets an answer
        manager.wait_for("WATCHDOG=1")
        held = s.start(WORKLOADS / "calls", "--calls", 100, "--hold", hold, stdout=subprocess.DEVNULL)
        while not re.match(r"STATUS=1 processes, 2 threads, [1-9]\d* calls stored; ok", manager.wait_for("STATUS=")):
            pass
        s.daemon.send_signal(signal.SIGHUP)
        manager.wait_for("RELOADING=1")
        check(re.search(r"RELOADING=1 MONOTONIC_USEC=\d+$", " ".join(manager.told)), manager.told)
        manager.wait_for("READY=1")
        check("STOPPING=1" not in manager.told, manager.told)
        hold.write_bytes(b"\n")
        equal(held.wait(DEADLINE_S), 0, "the program's status")
        s.daemon.send_signal(signal.SIGTERM)
        manager.wait_for("STOPPING=1")  # read now, because the queue is short and full of the watchdog's messages
        equal(s.daemon.wait(DEADLINE_S), 0, "the daemon's exit status")
        s.daemon = None
        manager.rest()
        equal(manager.told.count("STOPPING=1"), 1, "STOPPING in " + repr(manager.told))
        s.check_identity()

# If the daemon cannot serve the session, it must not send READY. If the watchdog is set for another process, the daemon must not send
# watchdog messages. If the socket does not exist, this is not an error.
with Session() as s:
    manager = Manager(str(s.dir / "notify"))
    start(s, "--db", "/nowhere/trace.db", env={"NOTIFY_SOCKET": s.dir / "notify", "WATCHDOG_USEC": 1000})
    equal(s.daemon.wait(DEADLINE_S), 1, "the status without a database")
    equal(manager.rest(), [], "what was told of it")
    start(s, env={"NOTIFY_SOCKET": s.dir / "notify", "WATCHDOG_USEC": 1000, "WATCHDOG_PID": 1})
    manager.wait_for("READY=1")
    s.flush()
    s.stop_daemon()
    check("WATCHDOG=1" not in manager.rest(), "fed another process's watchdog")
    manager.told.clear()
    for nowhere in (s.dir / "nothing", "unix", "@" + "x" * 200):
        start(s, env={"NOTIFY_SOCKET": nowhere})
        s.wait_until_served()
        s.stop_daemon()
    # If a service runs `cudatrace run`, the daemon that `run` starts must not report the service as ready.
    s.run(CUDATRACE, "run", "--session", s.name, "--db", s.db, "--", WORKLOADS / "calls", "--calls", 10, preload=False,
          env={"NOTIFY_SOCKET": s.dir / "notify"})
    equal(manager.rest(), [], "what the daemon of a run has told")

# Test the levels of the log. Each traced program must cause only one line in the log, no matter what its name contains. After logrotate has
# moved a log file, the daemon must write nothing more to that file.
with promise("log-forged"), Session() as s:
    evil = s.dir / "a\n2026-01-01 00:00:00 cudatraced[1]: error: forged\x1b[2J\"\\é\u202e\udcff"
    shutil.copy(WORKLOADS / "calls", evil)
    start(s, "--log-level", "info", "--gpu-samples", "off")
    s.wait_until_served()
    s.run(evil, "--calls", 10)
    s.flush()
    s.stop_daemon()
    lines = log_of(s)
    name = "\"" + str(s.dir) + r"/a\x0a2026-01-01 00:00:00 cudatraced[1]: error: forged\x1b[2J\"\\é\xe2\x80\xae?" + "\""
    equal([text for _, text in lines if "forged" in text and "is traced" in text][0].split(": ", 1)[1], name, "its name")
    equal([level for level, _ in lines], ["info"] * 4, lines)
    check(lines[0][1].startswith(f"serving session {s.name}, database \""), lines[0])
    (s.dir / "daemon.log").unlink()
    start(s)
    s.wait_until_served()
    s.run(WORKLOADS / "calls", "--calls", 10)
    s.stop_daemon()
    equal(log_of(s), [], "what a daemon says when all is well")

with Session() as s:
    s.run(DAEMON, "--db", s.db, "--session", s.name, preload=False)
    log = pathlib.Path(f"{s.db}.log")
    check(not log.exists(), "a log of nothing")
    pid = int(re.search(r"^daemon (\d+)$", s.cudatrace("status").stdout, re.M)[1])
    for moved in ("log.1", "log.2"):
        os.kill(pid, signal.SIGHUP)
        # Do not wait for the message about the trace's next file, because the daemon may write it after the log has been moved.
        wait_for("a log", lambda: (log.exists() and "received SIGHUP" in log.read_text()) or not s.is_served())
        log.rename(s.dir / moved)
    for moved in ("log.1", "log.2"):
        equal((s.dir / moved).read_text().count("received SIGHUP"), 1, moved)
    s.cudatrace("stop")

# If the log is the systemd journal, lines begin with the number of the level instead of the time and the level's name. The daemon limits
# the rate of each kind of line.
with promise("log-flood"), Session() as s:
    log = open(s.dir / "daemon.log", "ab")
    status = os.fstat(log.fileno())
    start(s, "--log-level", "info", "--gpu-samples", "off", env={"JOURNAL_STREAM": f"{status.st_dev}:{status.st_ino}"})
    s.wait_until_served()
    refused = [pathlib.Path(f"/dev/shm/cudatrace.{os.geteuid()}.{s.name}.{i + 1}.{i:x}") for i in range(70)]
    for path in refused:
        path.symlink_to("/dev/null")
    s.flush()
    s.stop_daemon()
    for path in refused:
        path.unlink()
    lines = (s.dir / "daemon.log").read_text().splitlines()
    check(all(re.match(r"<[3-7]>\S", line) for line in lines), lines)
    equal(sum(line.startswith("<4>segment /dev/shm/") for line in lines), 50, lines)
    equal([line for line in lines if "suppressed" in line], ["<4>20 similar messages suppressed (segment_refused)"], "at the end")
    start(s, env={"JOURNAL_STREAM": "1:2"})
    s.wait_until_served()
    s.daemon.send_signal(signal.SIGHUP)
    wait_for("the log's word of new files", lambda: "received SIGHUP" in s.log())
    s.stop_daemon()
    check(LINE.fullmatch((s.dir / "daemon.log").read_text().splitlines()[-1]), "not the journal, and written for it")
    log.close()

# If the daemon's terminal is closed, the daemon stores all recorded calls and exits.
if can("terminals", "a daemon whose terminal goes"):
    with Session() as s, fifo(s.dir, "hold") as hold:
        ours, its = pty.openpty()
        s.daemon = subprocess.Popen([DAEMON, "--foreground", "--db", s.db, "--session", s.name], stdin=its, stdout=its, stderr=its,
                                    start_new_session=True, preexec_fn=lambda: fcntl.ioctl(0, termios.TIOCSCTTY, 0))
        os.close(its)
        s.wait_until_served()
        held = s.start(WORKLOADS / "calls", "--calls", 100, "--hold", hold, stdout=subprocess.PIPE)
        check(b" ok\n" in held.stdout.readline(), "the program's calls")
        os.close(ours)
        equal(s.daemon.wait(DEADLINE_S), 0, "the daemon's status")
        s.daemon = None
        check(s.value("SELECT count(*) FROM calls") > 100, "what was recorded is stored")
        hold.write_bytes(b"\n")
        held.stdout.close()
        equal(held.wait(DEADLINE_S), 0, "the program's status")

# `cudatrace stop` must return only after the daemon has exited, no matter how long this takes. Here, the test itself plays a daemon that
# responds but does not exit.
with Session() as s, socket.socket(socket.AF_UNIX) as daemon:
    path = f"{s.dir}/cudatrace.{os.geteuid()}.{s.name}.sock"
    daemon.bind(path)
    daemon.listen()
    stop = s.start(CUDATRACE, "stop", "--session", s.name, "--shm-dir", s.dir, preload=False)
    client = daemon.accept()[0]
    with client, client.makefile() as lines:
        equal([lines.readline(), lines.readline()], ["database\n", "stop\n"], "what is asked")
        client.sendall(b"trace.db\nok\n")
        equal(client.recv(1), b"", "what it says besides")
        try:
            raise AssertionError(f"stop returned {stop.wait(1.5)} before the daemon was gone")
        except subprocess.TimeoutExpired:
            pass
    equal(stop.wait(DEADLINE_S), 0, "the status of stop")
    os.unlink(path)

# If another user owns a socket with the session's name, the commands must not mistake it for a daemon's socket.
if can("several users", "a socket at which another user listens"):
    with Session() as s:
        path = f"{s.dir}/cudatrace.{os.geteuid()}.{s.name}.sock"
        s.dir.chmod(0o777)
        listen = ("import os, socket, sys; os.setuid(65534); s = socket.socket(socket.AF_UNIX); s.bind(sys.argv[1]); s.listen(); "
                  "print('listens', flush=True); [s.accept()[0].sendall(b'session \\x1b[2J\\n\\n') for _ in range(9)]")
        other = s.start("/usr/bin/env", "python3", "-c", listen, path, preload=False, stdout=subprocess.PIPE)
        equal(other.stdout.readline(), b"listens\n", "the other user's program")
        said = s.cudatrace("status", "--shm-dir", s.dir, status=1)
        equal(said.stdout, "", "what status prints")
        check(f"no cudatraced serves session '{s.name}'" in said.stderr, said.stderr)
        other.kill()
        other.wait()
        other.stdout.close()
        os.unlink(path)
