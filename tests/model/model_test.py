"""Checks a model. Explores all states of the model with spin, and then all states of each twin, which is a deliberately broken variant of
the model. Spin must find an error in every twin.

Each twin is the model compiled with one of the macros TWIN_…, which the model's first comment lists. The macro SMALL makes a model smaller.
The short tier explores only the small model; other tiers explore the whole one. If no error is found in a small twin, the test explores the
whole twin.
"""
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "e2e"))
from needs import needs  # noqa: E402

CACHE = ["ccache"] if shutil.which("ccache") else []
WHOLE = os.environ.get("CUDATRACE_TIER", "short") != "short"


def explore(model, *defines):
    """Explores the model, and returns the number of states, the number of errors and spin's output. The test fails if the search is
    incomplete."""
    # The bounds are the search depth in steps, and log2 of the hash table's size. spin prints a warning if a model exceeds the search
    # depth.
    effort, bounds = ("-O0", ("-m50000", "-w20")) if "SMALL" in defines else ("-O2", ("-m2000000", "-w24"))
    with tempfile.TemporaryDirectory() as folder:
        for file in model.parent.glob("*.pml"):
            shutil.copy(file, folder)

        def run(*command):
            done = subprocess.run(command, cwd=folder, capture_output=True, text=True)
            if done.returncode != 0:
                sys.exit(f"{' '.join(command)}: {done.stdout}{done.stderr}")
            return done.stdout

        run("spin", "-a", *(f"-D{name}" for name in defines), model.name)
        # Compile with ccache, which reuses the result for an unchanged model.
        run(*CACHE, "gcc", effort, "-w", "-DSAFETY", "-DCOLLAPSE", "-DMEMLIM=2048", "-c", "pan.c")
        run("gcc", "-o", "pan", "pan.o")
        said = run("./pan", *bounds)
    # If pan stops at an error, it also prints a warning that the search is incomplete. If pan found no error, such a warning means that
    # some states were not explored.
    errors = int(re.search(r"errors: (\d+)", said)[1])
    if errors == 0 and re.search(r"not completed|depth too small|out of memory|MEMLIM", said):
        sys.exit(f"{model.name}: not all states were seen\n{said}")
    return int(float(re.search(r"([\d.e+]+) states, stored", said)[1])), errors, said


needs("spin")
model = pathlib.Path(sys.argv[1])
states, errors, said = explore(model, *(() if WHOLE else ("SMALL",)))
print(f"{model.name}: {states} states, {errors} errors")
if errors:
    sys.exit(said)
twins = re.findall(r"\bTWIN_[A-Z_]*[A-Z]\b", model.read_text().split("*/")[0])
survivors = []
for twin in twins:
    states, errors, said = explore(model, "SMALL", twin)
    if not errors:
        states, errors, said = explore(model, twin)
    print(f"{twin}: {states} states,", next(line for line in said.splitlines() if line.startswith("pan:")) if errors else "NOT FOUND BROKEN")
    if not errors:
        survivors.append(twin)
if not twins or survivors:
    sys.exit(f"broken and not found: {survivors or 'it has no twin'}")
