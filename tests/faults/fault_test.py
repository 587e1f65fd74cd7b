"""Code shared by the tests in this folder. This module extends tests/e2e/cudatrace_test.py with a hook and a daemon that have test points,
and counts how often promises were tested and kept.

A promise is a row of promises.tsv, which contains the promise's name, its test, the fault and the guarantee. A test wraps each trial of a
promise in `with promise("name"):`. When the test exits, it prints the numbers of trials and failures, and appends them to the file named by
$CUDATRACE_PROMISES. tools/promises makes a table from this file.
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
from cudatrace_test import *  # noqa: E402, F403: the tests need only one import
from cudatrace_test import BUILD, CUDATRACE, DEADLINE_S, check, equal  # noqa: E402

FAULT_HOOK = BUILD / "tests/faults/libcudatrace.so"
FAULT_DAEMON = BUILD / "tests/faults/cudatraced"


def Session():
    """Returns a session that uses the hook and the daemon with test points."""
    return cudatrace_test.Session(hook=FAULT_HOOK, daemon_program=FAULT_DAEMON)


def of_command(path):
    """Returns a function that runs queries with `cudatrace sql`, which reads a trace of several files as one."""
    def rows(sql):
        done = subprocess.run([CUDATRACE, "sql", "--db", path, "--format", "json", sql], capture_output=True, text=True, timeout=DEADLINE_S)
        equal(done.returncode, 0, f"status of sql: {done.stderr}")
        return [tuple(row.values()) for row in json.loads(done.stdout)]

    return rows


SLOT = 16  # bytes; proto/record.h defines this and the following


def head(function, kind, slots):
    """Returns the first word of a record, which contains the function, the kind and the number of slots."""
    return function | kind << 16 | slots << 22


def kind_and_slots(word):
    """Returns the kind and the number of slots in a record's first word."""
    return word >> 16 & 63, word >> 22


def points(binary):
    """Returns the names of all test points in a hook or daemon binary."""
    # Do not make objcopy write to /dev/stdout, because it removes its output file when it fails, and root is allowed to remove /dev/stdout.
    with tempfile.TemporaryDirectory() as folder:
        section = pathlib.Path(folder) / "section"
        subprocess.run(["objcopy", "-O", "binary", "--only-section=ct_test_points", str(binary), str(section)], check=True,
                       capture_output=True)
        names = sorted(set(section.read_text().split("\0")) - {""})
    check(names and all(re.fullmatch(r"[a-z_]+\.[a-z_]+", name) for name in names), "test points:", names)
    return names


def at_point(name, nth=1, action="kill"):
    """Returns an environment that makes a process kill, stop or delay itself the nth time it reaches the test point."""
    return {"CUDATRACE_TEST_POINT": f"{name}:{nth}:{action}"}


# ---- the account ----

with open(HERE / "promises.tsv", newline="") as table:
    PROMISES = {row["name"]: row for row in csv.DictReader(table, delimiter="\t")}
account = collections.defaultdict(lambda: [0, 0])


@contextlib.contextmanager
def promise(name, times=1):
    """Counts one or more trials of a promise. If a trial fails, counts the failure, and the test fails, too."""
    check(PROMISES[name]["test"] == pathlib.Path(sys.argv[0]).stem, name, "is not promised by this test")
    account[name][0] += times
    try:
        yield
    except GeneratorExit:  # another case has failed (in_turns())
        account[name][0] -= times
        raise
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
