"""Checks a model: all its states with spin, then each of its broken twins, which must be found broken.

A twin is the model with one of the names TWIN_… defined that its first comment lists. A model is smaller with SMALL defined. The
short tier searches the small model alone, the others search the whole one. A twin that the small model does not find broken
is searched for in the whole one.
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
    """The number of states, and of errors, of a model; a search that was cut short is a failure of the test."""
    # Steps and states that there is room for. What exceeds the first is reported; the second is a hash table's size.
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
        # A model that has not changed is not compiled again.
        run(*CACHE, "gcc", effort, "-w", "-DSAFETY", "-DCOLLAPSE", "-DMEMLIM=2048", "-c", "pan.c")
        run("gcc", "-o", "pan", "pan.o")
        said = run("./pan", *bounds)
    # It ends at the first error, and says so; a search of all that found none says nothing.
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
