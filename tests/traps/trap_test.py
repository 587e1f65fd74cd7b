"""Code shared by the tests in this folder. This module extends tests/e2e/cudatrace_test.py with functions that compile programs and compare
traced programs with untraced ones. A test's C program is in the same folder."""
import os
import pathlib
import subprocess
import sys

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "e2e"))
from cudatrace_test import *  # noqa: E402, F403: the tests need only one import
from cudatrace_test import HOOK, SIMCUDA, SOURCE, by_tier, equal  # noqa: E402

LINKED = ["-L" + str(SIMCUDA), "-l:libcuda.so.1"]
TIMES = by_tier(15, 60)  # number of times that lifecycle.c cancels a thread, or forks, while others make calls
LIFECYCLE = [f"-DTIMES={TIMES}", HERE / "lifecycle_begins.c", HERE / "lifecycle_ends.c"]  # the other files of the program lifecycle


def compiled(s, source, *flags, output=None, compiler=None):
    """Compiles a program from a source file in this folder, or from a string, with optional flags. Returns its path."""
    if "\n" in source:
        path = s.dir / (output + ".c")
        path.write_text(source)
    else:
        path = HERE / source
    made = s.dir / (output or path.stem)
    subprocess.run([compiler or os.environ.get("CC", "cc"), "-O1", "-g", "-D_GNU_SOURCE", "-I", str(SOURCE / "tests/simcuda"),
                    "-I", str(SOURCE / "tests/workloads"), "-o", str(made), str(path), *map(str, flags)], check=True)
    return made


def library(s, source, name, *flags):
    return compiled(s, source, "-shared", "-fPIC", *flags, output=name)


def same(s, what, *command, status=0, **options):
    """Runs the program untraced, with a dormant hook, and while recording. The output must be the same in all three runs. Leaves the
    daemon running. Returns the untraced run."""
    said = s.run(*command, preload=False, status=status, **options)
    wanted = (said.returncode, said.stdout, said.stderr)
    for way in ("dormant", "recording"):
        if way == "recording" and not s.daemon:
            s.start_daemon()
        seen = s.run(*command, status=None, **options)
        equal((seen.returncode, seen.stdout, seen.stderr), wanted, f"{what}, {way}")
    s.flush()
    s.check_identity()
    return said


def recorded(s, like="%"):
    """Returns {function: calls} for all processes whose command lines match `like`."""
    return dict(s.rows("SELECT totals.name, sum(calls) FROM totals JOIN processes USING (process_id) WHERE cmdline LIKE ? "
                       "GROUP BY totals.name", like))


def counted(s):
    """Returns {function: calls} for all processes since the session began, as counted by the simulated driver."""
    sums = {}
    for (_, name), calls in s.truth().items():
        sums[name] = sums.get(name, 0) + calls
    return sums


def preloads(*libraries):
    """Returns an environment that sets LD_PRELOAD to these libraries, with "HOOK" replaced by the hook's path."""
    return {"LD_PRELOAD": ":".join(str(HOOK if one == "HOOK" else one) for one in libraries)}


__all__ = [name for name in dir() if not name.startswith("_")]
