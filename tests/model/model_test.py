"""Checks a model: all its states with spin, then each of its broken twins, which must be found broken.

A twin is the model with one of the names TWIN_… defined that its first comment lists.
"""
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "e2e"))
from needs import needs  # noqa: E402

DEADLINE_S = 300


def explore(model, *defines):
    """The number of states, and of errors, of a model; a search that was cut short is a failure of the test."""
    with tempfile.TemporaryDirectory() as folder:
        for file in model.parent.glob("*.pml"):
            shutil.copy(file, folder)

        def run(*command):
            done = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=DEADLINE_S)
            if done.returncode != 0:
                sys.exit(f"{' '.join(command)}: {done.stdout}{done.stderr}")
            return done.stdout

        run("spin", "-a", *(f"-D{name}" for name in defines), model.name)
        run("gcc", "-O1", "-w", "-DSAFETY", "-DCOLLAPSE", "-DMEMLIM=2048", "-o", "pan", "pan.c")
        said = run("./pan", "-m2000000")
    # It ends at the first error, and says so; a search of all that found none says nothing.
    errors = int(re.search(r"errors: (\d+)", said)[1])
    if errors == 0 and re.search(r"not completed|depth too small|out of memory|MEMLIM", said):
        sys.exit(f"{model.name}: not all states were seen\n{said}")
    return int(float(re.search(r"([\d.e+]+) states, stored", said)[1])), errors, said


needs("spin")
model = pathlib.Path(sys.argv[1])
states, errors, said = explore(model)
print(f"{model.name}: {states} states, {errors} errors")
if errors:
    sys.exit(said)
twins = re.findall(r"\bTWIN_[A-Z_]*[A-Z]\b", model.read_text().split("*/")[0])
survivors = []
for twin in twins:
    states, errors, said = explore(model, twin)
    print(f"{twin}: {states} states,", next(line for line in said.splitlines() if line.startswith("pan:")) if errors else "NOT FOUND BROKEN")
    if not errors:
        survivors.append(twin)
if not twins or survivors:
    sys.exit(f"broken and not found: {survivors or 'it has no twin'}")
