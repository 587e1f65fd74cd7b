"""Code shared by the benchmarks of a running daemon. It starts the program that makes calls, and reads the daemon's files in /proc."""
import os
import pathlib
import resource
import time

from cudatrace_test import WORKLOADS, wait_for

TICKS_PER_S = os.sysconf("SC_CLK_TCK")


def calls(*options):
    return [str(word) for word in (WORKLOADS / "calls", *options)]


def cpu_of_ended_s():
    """Returns the CPU time of all child processes that have exited and been reaped."""
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    return usage.ru_utime + usage.ru_stime


def shared_memory(s):
    """Returns the number of files in shared memory that belong to the session and its processes."""
    return len([name for name in os.listdir("/dev/shm") if name.startswith(f"cudatrace.{os.geteuid()}.{s.name}")])


class Daemon:
    """Reads a process's resource usage from /proc."""

    def __init__(self, pid):
        self.folder = pathlib.Path(f"/proc/{pid}")

    def _status(self, path="status"):
        return dict(line.split(":", 1) for line in (self.folder / path).read_text().splitlines() if ":" in line)

    def memory(self):
        """Returns (KiB of private memory, KiB of shared memory). The shared memory consists of the rings that the daemon has mapped."""
        status = self._status()
        own = int(status["RssAnon"].split()[0]) + int(status["RssFile"].split()[0])
        return own, int(status["RssShmem"].split()[0])

    def files(self):
        return len(os.listdir(self.folder / "fd"))

    def maps(self):
        return len((self.folder / "maps").read_text().splitlines())

    def cpu_s(self):
        """Returns the CPU time of all threads. Reads it from the scheduler's statistics in nanoseconds, or in clock ticks if these
        statistics are unavailable."""
        try:
            return sum(int((self.folder / f"task/{thread}/schedstat").read_text().split()[0])
                       for thread in os.listdir(self.folder / "task")) / 1e9
        except FileNotFoundError:
            fields = (self.folder / "stat").read_text().rsplit(")", 1)[1].split()
            return (int(fields[11]) + int(fields[12])) / TICKS_PER_S

    def written_bytes(self):
        """Returns how many bytes the daemon has written to files so far, including dirty pages."""
        lines = (self.folder / "io").read_text().splitlines()
        return int(next(line.split()[1] for line in lines if line.startswith("write_bytes:")))

    def switches(self):
        """Returns how often the daemon's threads have left a processor, as (voluntarily, by preemption)."""
        threads = [self._status(f"task/{thread}/status") for thread in os.listdir(self.folder / "task")]
        return tuple(sum(int(thread[which + "_ctxt_switches"]) for thread in threads)
                     for which in ("voluntary", "nonvoluntary"))

    def settle(self):
        """Waits until the daemon has finished its earlier work, so that the figures show whether the daemon is idle when it has nothing to
        do."""
        wait_for("the daemon to have next to nothing to do", lambda: self.over(0.5)[0] < 0.05)

    def over(self, seconds):
        """Observes the daemon for `seconds`. Returns (its share of one processor, wake-ups per second, preemptions per second)."""
        cpu, switches, start = self.cpu_s(), self.switches(), time.monotonic()
        time.sleep(seconds)
        passed = time.monotonic() - start
        return ((self.cpu_s() - cpu) / passed, *((now - before) / passed for before, now in zip(switches, self.switches())))
