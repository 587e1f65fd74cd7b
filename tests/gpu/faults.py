#!/usr/bin/env python3
"""Causes faults during a real training run on the real driver. The daemon is killed repeatedly, or stopped until the training ends. In
another case, the training is killed. A traced training run must do the same work as an untraced one, and each of its calls must be in the
trace exactly once or be counted as lost.

    faults.py --build build        exit status 0: success, 1: failure, 77: no GPU or no PyTorch
"""
import argparse
import contextlib
import glob
import os
import pathlib
import signal
import sqlite3
import subprocess
import sys
import tempfile
import time

HERE = pathlib.Path(__file__).resolve().parent
STEPS, KILLS = 3000, 20
DEADLINE_S = 1200

parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
parser.add_argument("--build", type=pathlib.Path, default=pathlib.Path("build"))
build = parser.parse_args().build.resolve()
if not os.path.exists("/dev/nvidiactl"):
    print("skipped: no NVIDIA GPU: /dev/nvidiactl does not exist")
    sys.exit(77)
if subprocess.run([sys.executable, "-c", "import torch"], capture_output=True).returncode:
    print("skipped: no PyTorch")
    sys.exit(77)
failures = 0


def check(what, good, *more):
    global failures
    failures += not good
    print("  ok   " if good else "  FAIL ", what, *more, flush=True)


def wait_for(what, condition):
    deadline = time.monotonic() + DEADLINE_S
    while not condition():
        if time.monotonic() > deadline:
            sys.exit(f"waited in vain for {what}")


class Session:
    """A daemon, and the training runs that it records. When the `with` block ends, all of these processes are killed."""

    def __init__(self, folder):
        self.processes = []
        self.name = f"gpu-faults-{os.getpid()}"
        self.db = pathlib.Path(folder) / "trace.db"
        self.env = dict(os.environ, CUDATRACE_SESSION=self.name, LD_PRELOAD=str(build / "hook/libcudatrace.so"))

    def __enter__(self):
        return self

    def __exit__(self, *error):
        for process in self.processes:
            if process.poll() is None:
                process.kill()
                process.wait()
        for path in glob.glob(f"/dev/shm/cudatrace.{os.geteuid()}.{self.name}*"):
            os.unlink(path)

    def start(self, *command, **options):
        process = subprocess.Popen([str(word) for word in command], **options)
        self.processes.append(process)
        return process

    def tool(self, *arguments):
        return subprocess.run([build / "tools/cudatrace", *arguments, "--session", self.name], capture_output=True, text=True,
                              timeout=300)

    def start_daemon(self):
        self.daemon = self.start(build / "collector/cudatraced", "--foreground", "--db", self.db, "--session", self.name)
        wait_for("a daemon that serves", lambda: self.tool("status").returncode == 0 or self.daemon.poll() is not None)
        if self.daemon.poll() is not None:
            sys.exit("the daemon did not start")

    def train(self):
        return self.start(sys.executable, HERE / "training.py", "--steps", STEPS, env=self.env, stdout=subprocess.PIPE, text=True)

    def rows(self, sql):
        with contextlib.closing(sqlite3.connect(f"file:{self.db}?mode=ro", uri=True, timeout=60)) as connection:
            return connection.execute(sql).fetchall()

    def check_trace(self, killed=0):
        """Checks the sums in the trace. `killed` is the number of threads in a killed process: each of them may have counted its last lost
        call by function, but not yet by cause."""
        check("calls = stored + lost + skipped", not self.rows("SELECT * FROM totals WHERE calls <> stored + lost + skipped"))
        check("stored is what is there", self.rows("SELECT sum(stored) FROM totals")[0] == self.rows("SELECT count(*) FROM calls")[0],
              *self.rows("SELECT count(*) FROM calls")[0])
        by_function, by_cause = self.rows("SELECT (SELECT ifnull(sum(lost), 0) FROM totals), (SELECT ifnull(sum(calls), 0) "
                                          "FROM losses WHERE cause NOT IN ('absent', 'pressure', 'cupti'))")[0]
        check("losses by function and by thread agree", 0 <= by_function - by_cause <= killed, by_function, by_cause)
        check("the file is whole", self.rows("PRAGMA quick_check") == [("ok",)])


plain = subprocess.run([sys.executable, HERE / "training.py", "--steps", str(STEPS)], capture_output=True, text=True)
check("the training runs untraced", plain.returncode == 0, plain.stderr[-500:])

with tempfile.TemporaryDirectory() as folder, Session(folder) as s:
    print(f"== the daemon is killed {KILLS} times, and stopped until the training ends")
    s.start_daemon()
    training = s.train()
    stored = 0
    for _ in range(KILLS):
        wait_for("something new in the trace", lambda: training.poll() is not None or (
            s.tool("flush").returncode == 0 and s.rows("SELECT count(*) FROM call")[0][0] > stored))
        stored = s.rows("SELECT count(*) FROM call")[0][0]
        s.daemon.kill()
        s.daemon.wait()
        s.start_daemon()
    check("it was killed while the training ran", training.poll() is None)
    s.daemon.send_signal(signal.SIGSTOP)
    said = training.communicate(timeout=DEADLINE_S)[0]
    s.daemon.send_signal(signal.SIGCONT)
    check("same output and exit status as untraced", (training.returncode, said) == (plain.returncode, plain.stdout), said)
    check("flush", s.tool("flush").returncode == 0)
    s.check_trace()
    check("its end is known", s.rows(f"SELECT state FROM processes WHERE pid = {training.pid}") == [("exited",)])
    print("        lost:", *s.rows("SELECT cause, sum(calls) FROM losses GROUP BY cause"))

    print("== the training is killed")
    training = s.train()
    wait_for("its launches", lambda: training.poll() is not None or (s.tool("flush").returncode == 0 and s.rows(
        f"SELECT count(*) FROM launches JOIN processes USING (process_id) WHERE pid = {training.pid}")[0][0] >= 1000))
    check("it ran until it was killed", training.poll() is None, training.returncode)
    training.kill()
    training.wait()
    check("flush", s.tool("flush").returncode == 0)
    threads = s.rows(f"SELECT count(*) FROM threads JOIN processes USING (process_id) WHERE pid = {training.pid}")[0][0]
    s.check_trace(killed=threads)
    check("its end is known", s.rows(f"SELECT state FROM processes WHERE pid = {training.pid}") == [("killed",)])
    check("nothing is left in shared memory", not [n for n in os.listdir("/dev/shm") if f".{s.name}.{training.pid}." in n])
    s.daemon.send_signal(signal.SIGTERM)
    check("the daemon ends well", s.daemon.wait(DEADLINE_S) == 0)
print("faults:", "failed" if failures else "passed")
sys.exit(1 if failures else 0)
