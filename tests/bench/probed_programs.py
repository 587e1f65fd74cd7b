"""Programs that measure one round of work at a time, and probes that are started and stopped between their rounds."""
import collections
import subprocess

from cudatrace_test import CUDATRACE


class Program:
    """A process that reads the name of some work from each line, runs a round of that work, and prints the nanoseconds per operation."""

    def __init__(self, session, *command, **options):
        self.process = session.start(*command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, **options)
        self.line()

    def line(self):
        line = self.process.stdout.readline()
        if not line:
            said = self.process.communicate()[1]
            raise RuntimeError(f"it ended with {self.process.returncode}: {' '.join(said.split())}")
        return line

    def round(self, work=""):
        self.process.stdin.write(f"{work}\n")
        self.process.stdin.flush()
        return float(self.line())


class Probe:
    """A probe of one process. Once the constructor returns, the process is probed."""

    def __init__(self, session, pid, *options, env=None, cudatrace=CUDATRACE):
        self.process = session.start(cudatrace, "probe", "--session", session.name, "--pid", pid, *options, preload=False, env=env,
                                     stderr=subprocess.PIPE, text=True)
        said = ""
        while "are probed" not in said:
            line = self.process.stderr.readline()
            if not line:
                raise RuntimeError(" ".join(said.split()))
            said += line

    def end(self):
        self.process.terminate()
        return self.process.communicate()[1]


def rounds_of(programs, works):
    return {(name, work): program.round(line) for name, program in programs.items() for work, line in works.items()}


def added_by(programs, works, probes, times):
    """Starts and ends each probe `times` times. Returns {(probe, program, work): [the time that the probe added]}, comparing a round during
    each probe with a round just before it. `probes` contains, for each probe, a function that starts the probe."""
    added = collections.defaultdict(list)
    for _ in range(times):
        for name, start in probes.items():
            without = rounds_of(programs, works)
            probe = start()
            for figure, value in rounds_of(programs, works).items():
                added[name, *figure].append(value - without[figure])
            probe.end()
    return added
