"""Counts the machine instructions of a plain call, a launch and a copy, each made bare and through the hook. For a launch, also counts the
instructions in the decoder and in the look-up of the kernel's name. The counts come from valgrind's callgrind, which simulates a processor.
The counts do not measure time, but they are the same on every machine and in every run, so any change is visible.

A run with few calls is subtracted from a run with more calls. The difference consists only of the additional calls: the loop around them,
the driver's function, and the hook. The first calls serve as a warm-up, after which the program has a lane, the first piece of a ring, and
the names that it needs."""
import re
import shutil

from cudatrace_test import equal
from figures import Missing, emit, emit_missing, less, over
from program import PROGRAMS, Measured

# Both runs launch every kernel, and even the longer run's launches fit into the first piece of a ring. Therefore, none of the additional
# calls has to look up a kernel's name for the first time, or to allocate another piece.
KERNELS, FEW, MANY = 64, 128, 512
ROUNDS = 3
LOOP = "make_calls"  # a function of hook_cost; the code before this loop differs between runs
SUBJECTS = {"plain": "instant", "launch_of_one_kernel": "launch", f"launch_of_{KERNELS}_kernels": f"launch:{KERNELS}",
            "copy": "copy"}
# Functions of the hook that every launch calls. Their callees are counted, too.
PARTS = {"decoder": "ct_decode_launch", "kernel_name": "ct_names_kernel"}


def executed(session, function, subject, way, calls):
    """Returns the number of instructions executed in a function and its callees."""
    done = session.run("valgrind", "--tool=callgrind", "--callgrind-out-file=/dev/null", f"--toggle-collect={function}",
                       PROGRAMS / "hook_cost", "-m", "count", "-s", subject, "-c", calls, way, status=None)
    found = re.search(r"Collected : (\d+)", done.stderr)
    if done.returncode != 0 or not found:
        raise Missing(f"valgrind ended with {done.returncode}: {' '.join(done.stderr.split())[-200:]}")
    return int(found.group(1))


def a_call(session, *counted):
    return [(executed(session, *counted, MANY) - executed(session, *counted, FEW)) / (MANY - FEW) for _ in range(ROUNDS)]


def measure(session):
    added = {}
    for name, subject in SUBJECTS.items():
        bare, traced = (a_call(session, LOOP, subject, way) for way in ("bare", "cudatrace"))
        added[name] = less(traced, bare)
        emit("instructions", f"{name}_bare_call", bare, "instructions")
        emit("instructions", f"{name}_cudatrace_call", traced, "instructions")
        emit("instructions", f"{name}_added", added[name], "instructions")
        if name.startswith("launch"):
            for part, function in PARTS.items():
                emit("instructions", f"{name}_{part}", a_call(session, function, subject, "cudatrace"), "instructions")
    for name in added:
        if name != "plain":
            emit("instructions", f"{name}_added_over_plain", over(added[name], added["plain"]), "ratio")


def run(build, _options):
    if not shutil.which("valgrind"):
        emit_missing("instructions", "valgrind", "no valgrind command (Debian: valgrind)")
        return
    try:
        with Measured() as session:
            session.start_daemon()
            measure(session)
            session.flush()
            made = ROUNDS * (FEW + MANY)
            stored = session.rows("""
                SELECT name, sum(stored) FROM totals WHERE name NOT IN ('cuInit', 'cuModuleGetFunction') GROUP BY name""")
            equal(dict(stored),
                  {"cuCtxGetCurrent": made, "cuLaunchKernel": made * 2 * (1 + len(PARTS)), "cuMemcpyHtoD_v2": made},
                  "what the hook recorded under valgrind")
    except Missing as why:
        emit_missing("instructions", "valgrind", why)
