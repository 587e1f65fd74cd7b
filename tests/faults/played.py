"""Plays a probe for tests, by running a program that writes another process's segment on command (played_probe.c)."""
import glob
import pathlib
import subprocess
import time

from fault_test import BUILD, equal, wait_for

PLAYER = BUILD / "tests/faults/played_probe"
EXITING, LEFT = 1, 4  # enum ct_segment_flags
COMPANION = 2  # enum ct_maker
HOOK = 5  # enum ct_layer
FOREVER = 2**62  # greater than any time


def now():
    return time.clock_gettime_ns(time.CLOCK_MONOTONIC)


class Probe:
    """A simulated probe (played_probe.c), which writes a segment for the given process."""

    def __init__(self, s, pid, exec_ns, *maker):
        start = pathlib.Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[19]
        self.player = s.start(PLAYER, "/dev/shm", s.name, pid, start, exec_ns, *maker, preload=False, stdin=subprocess.PIPE,
                              stdout=subprocess.PIPE, text=True)
        self.done()

    def done(self):
        equal(self.player.stdout.readline(), "done\n", "the player's answer")

    def do(self, *words):
        print(*words, file=self.player.stdin, flush=True)
        self.done()

    def kill(self):
        self.player.kill()
        self.player.wait()


class Watched:
    """A process that makes no calls and runs until its input ends, together with a played probe for it. When the constructor returns, the
    daemon knows the process and the probe's segment."""

    def __init__(self, s):
        self.s, self.exec_ns = s, now()
        self.process = s.start("cat", preload=False, stdin=subprocess.PIPE)
        self.pid = self.process.pid
        self.probe = Probe(s, self.pid, self.exec_ns)
        self.do = self.probe.do
        wait_for("the watched process's row", lambda: s.value("SELECT count(*) FROM processes WHERE pid = ?", self.pid))

    def exit(self):
        self.process.stdin.close()
        equal(self.process.wait(), 0, "its status")

    def kill(self):
        self.process.kill()
        self.process.wait()

    def times(self):
        """Returns [(end, duration)] of the process's stored calls."""
        return self.s.rows("SELECT end_ns, duration_ns FROM calls WHERE pid = ? ORDER BY call_id", self.pid)

    def state(self):
        return self.s.value("SELECT state FROM processes WHERE pid = ?", self.pid)

    def segments(self):
        return glob.glob(f"/dev/shm/cudatrace.*.{self.s.name}.{self.pid}.*")

    def await_state(self, state):
        self.s.flush_until(f"{state} to be its state", lambda: self.state() == state)
        equal(self.segments(), [], "its segments after its end")
