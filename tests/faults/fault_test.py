"""Holds what the tests of this folder share: tests/e2e/cudatrace_test.py, the hook and the daemon with test points, and the
promises that the tests keep an account of.

A promise is a row of promises.tsv: its name, the fault, what is promised, the test. A test says `with promise("name"):` around
each time that it puts the promise to the test; the account (times, failures) is printed at the end, and appended to the
file $CUDATRACE_PROMISES names, of which tools/promises makes the table.
"""
import atexit
import collections
import contextlib
import csv
import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "e2e"))
import cudatrace_test  # noqa: E402
from cudatrace_test import *  # noqa: E402, F403: that the tests need one import alone
from cudatrace_test import BUILD, check  # noqa: E402

FAULT_HOOK = BUILD / "tests/faults/libcudatrace.so"
FAULT_DAEMON = BUILD / "tests/faults/cudatraced"


def Session():
    """A session of the hook and the daemon that have test points."""
    return cudatrace_test.Session(hook=FAULT_HOOK, daemon_program=FAULT_DAEMON)


SLOT = 16  # bytes; proto/record.h has this and what follows


def head(function, kind, slots):
    """The first word of a record."""
    return function | kind << 16 | slots << 22


def kind_and_slots(word):
    """What that word says of the record besides its function."""
    return word >> 16 & 63, word >> 22


def points(binary):
    """The names of all test points of a hook or daemon."""
    # Not to /dev/stdout: where it fails, objcopy removes what it writes to, and root has that right.
    with tempfile.TemporaryDirectory() as folder:
        section = pathlib.Path(folder) / "section"
        subprocess.run(["objcopy", "-O", "binary", "--only-section=ct_test_points", str(binary), str(section)], check=True,
                       capture_output=True)
        names = sorted(set(section.read_text().split("\0")) - {""})
    check(names and all(re.fullmatch(r"[a-z_]+\.[a-z_]+", name) for name in names), "test points:", names)
    return names


def at_point(name, nth=1, action="kill"):
    """The environment that has a process killed or stopped there."""
    return {"CUDATRACE_TEST_POINT": f"{name}:{nth}:{action}"}


# ---- the account ----

with open(HERE / "promises.tsv", newline="") as table:
    PROMISES = {row["name"]: row for row in csv.DictReader(table, delimiter="\t")}
account = collections.defaultdict(lambda: [0, 0])


@contextlib.contextmanager
def promise(name, times=1):
    """One time, or several at once, that the promise is put to the test; a failure goes on to fail the test."""
    check(PROMISES[name]["test"] == pathlib.Path(sys.argv[0]).stem, name, "is not promised by this test")
    account[name][0] += times
    try:
        yield
    except BaseException:
        account[name][1] += 1
        raise


@atexit.register
def print_account():
    for name, (times, failures) in account.items():
        print(f"promise {name}: {times} times, {failures} failures")
    path = os.environ.get("CUDATRACE_PROMISES")
    if path and account:
        with open(path, "a") as file:
            for name, (times, failures) in account.items():
                file.write(json.dumps({"name": name, "times": times, "failures": failures}) + "\n")
