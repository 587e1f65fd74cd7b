"""`cudatrace probe` in the background, and the calls of a probed process by the driver's own count."""
import collections

from cudatrace_test import BUILD, CUDATRACE, SIMCUDA, counts, needs, refused, skip
from untraced import Background

PROBE = BUILD / "probe/cudatrace-probe"
if not PROBE.exists():
    skip("this build has no probe: libbpf-dev, clang, bpftool")
needs("eBPF")
LIBRARY = SIMCUDA / "libcuda.so.1"
# Every process with a library of this build. Breakpoints in another build's libraries would disturb the tests there.
EVERY = "--all", "--library", LIBRARY, "--only", f"{BUILD}/*"


class Probe(Background):
    """A running `cudatrace probe`, after it has attached its probes."""

    def __init__(self, s, *arguments, **options):
        super().__init__(s, CUDATRACE, "probe", "--session", s.name, *arguments, **options)
        if "probe: the kernel" in self.await_line("probe: "):
            refused(self.said.strip())
        if "are probed" not in self.said:
            self.await_line("are probed")


def truth_of(s, pid):
    """Returns {function: calls}, the driver's own count up to now."""
    truth = collections.Counter()
    for counted, _, functions in counts.read_counts(s.counts):
        if counted == pid:
            truth.update({name: returned for name, (_, returned) in functions.items()})
    return +truth


def stored_of(s, pid):
    return {name: calls for (of, name), calls in s.totals().items() if of == pid}


def await_stored(s, pid, expected):
    s.flush_until(f"{expected} of {pid}", lambda: stored_of(s, pid) == expected)
