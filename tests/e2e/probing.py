"""Runs `cudatrace probe` in the background, and reads the driver's own count of a probed process's calls."""
import collections
import contextlib
import json
import pathlib
import shutil

from cudatrace_test import BUILD, CUDATRACE, DEADLINE_S, DRIVER_PATH, SIMCUDA, Session, counts, equal, needs, refused, skip
from untraced import Background

PROBE = BUILD / "probe/cudatrace-probe"
if not PROBE.exists():
    skip("this build has no probe: libbpf-dev, clang, bpftool")
needs("eBPF")


class OwnDriver(Session):
    """A session with its own copy of the driver. A probe of all processes sets breakpoints only in this copy, so that several tests can run
    at the same time."""

    def __enter__(self):
        super().__enter__()
        self.dir.chmod(0o711)  # for programs of other users
        self.driver_file = self.dir / "driver/libcuda.so.1"
        self.driver_file.parent.mkdir()
        shutil.copy(SIMCUDA / self.driver_file.name, self.driver_file)
        self.every = "--all", "--library", self.driver_file, "--only", self.driver_file
        return self

    def env(self, preload=True, **more):
        return super().env(preload, **{"LD_LIBRARY_PATH": f"{self.driver_file.parent}:{DRIVER_PATH}", **more})


class Probe(Background):
    """A `cudatrace probe` in the background. Once the constructor returns, the functions are probed."""

    def __init__(self, s, *arguments, **options):
        super().__init__(s, CUDATRACE, "probe", "--session", s.name, *arguments, **options)
        if "probe: the kernel" in self.await_line("probe: "):
            refused(self.said.strip())
        if "are probed" not in self.said:
            self.await_line("are probed")


class Hooks:
    """A probe with a table of hooks."""

    def __init__(self, s, *lines, options=()):
        self.s, self.file = s, s.dir / "hooks"
        self.file.write_text("".join(line + "\n" for line in lines))
        self.probe = Probe(s, *s.every, "--hooks", self.file, *options)

    def run(self, *command):
        """Runs the program, and returns its pid once the trace contains all of its calls."""
        done = self.s.start(*command, preload=False)
        equal(done.wait(DEADLINE_S), 0, "the program's status")
        self.s.flush_until("its end", lambda: self.s.value("SELECT count(*) FROM processes WHERE pid = ? AND state = 'exited'", done.pid) == 1)
        return done.pid

    def fields(self, pid, name):
        return [json.loads(fields) for fields, in self.s.rows("SELECT fields FROM hooks WHERE pid = ? AND name = ? ORDER BY call_id", pid, name)]


def truth_of(s, pid):
    """Returns the driver's own count of the process's calls so far, as {function: calls}."""
    truth = collections.Counter()
    for counted, _, functions in counts.read_counts(s.counts):
        if counted == pid:
            truth.update({name: returned for name, (_, returned) in functions.items()})
    return +truth


def stored_of(s, pid):
    return {name: calls for (of, name), calls in s.totals().items() if of == pid}


def await_stored(s, pid, expected):
    s.flush_until(f"{expected} of {pid}", lambda: stored_of(s, pid) == expected)


def writer_of(probe, pid):
    """Returns the pid of the probe's writer for the process `pid`. Another session's probe may have a different writer for the same
    process."""
    for child in pathlib.Path(f"/proc/{probe.child.pid}/task/{probe.child.pid}/children").read_text().split():
        with contextlib.suppress(OSError):  # ended
            if pathlib.Path(f"/proc/{child}/comm").read_text() == f"probe-{pid}\n":
                return int(child)
    return None
