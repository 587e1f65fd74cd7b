#!/usr/bin/env python3
"""Compares the ioctl layer in a database with the kernel's counts (ioctl_truth.c) for each process.

run.py calls check_ioctls(). The script can also be run by hand on files that `run.py --out` kept:

    compare_ioctls.py DATABASE TRUTH
"""

import collections
import os
import re
import sys

import compare

NAMES = os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../collector/source/shm/ioctl_names.def")
CONTROL, ALLOC, TRANSFER = 0x2A, 0x2B, 0xD3


def read_names(path=NAMES):
    """Returns {name of a request in the trace: ("escape" or "uvm", the request's number)}."""
    with open(path, encoding="utf-8") as lines:
        rows = re.findall(r"^IOCTL\((ESCAPE|UVM), (0x[0-9a-f]+), \w+, (\w+)\)", lines.read(), re.M)
    return {name: (space.lower(), int(number, 16)) for space, number, name in rows}


def request_of(file, request):
    """Classifies a request in the same way as the hook. Returns ("escape", number), ("uvm", number), ("modeset", 0), or None for any other
    request."""
    is_escape = request >> 8 & 0xFF == ord("F")
    is_uvm = 0 < request <= 2047 or request in (0x30000001, 0x30000002)
    if is_escape and file in ("control", "?"):
        return "escape", request & 0xFF
    if is_uvm and file in ("uvm", "?"):
        return "uvm", request
    if request & 0xFFFF == ord("m") << 8 and file in ("modeset", "?"):
        return "modeset", 0
    return None


def function_of(name, names):
    """Returns the request (space, number) that a function's name in the trace refers to. The number is None if the name does not determine
    it."""
    if name in names:
        return names[name]
    if name.startswith("NVKMS"):  # one request for all
        return "modeset", 0
    space, _, number = name.partition(" ")
    if space in ("RM_CONTROL", "RM_ALLOC"):
        return "escape", CONTROL if space == "RM_CONTROL" else ALLOC
    if number == "other":
        return ("uvm" if space == "UVM" else "escape"), None
    return {"ESC": "escape", "UVM": "uvm"}[space], int(number, 0)


class Truth:
    def __init__(self, path):
        self.calls = collections.defaultdict(collections.Counter)  # pid -> {(space, number): calls}
        self.others = 0  # requests on files that are not the driver's
        self.method = "?"
        self.problems = []
        complete = False
        with open(path, encoding="utf-8") as lines:
            for line in lines:
                field = line.rstrip("\n").split("\t")
                complete = field[0] == "end"
                if field[0] == "method":
                    self.method = field[1]
                elif field[0] == "ioctl":
                    self._take(int(field[1]), field[2], int(field[3], 16), int(field[4]))
                elif field[0] == "lost" and int(field[1]):
                    self.problems.append(f"the kernel had no room for {field[1]} samples")
        if not complete:
            self.problems.append(f"{path}: has no last line")
        if not self.calls:
            self.problems.append("it saw no ioctl of the driver")

    def _take(self, pid, file, request, calls):
        key = request_of(file, request)
        if key:
            self.calls[pid][key] += calls
        else:
            self.others += calls


def describe(key):
    space, number = key
    return f"{space} {'other' if number is None else hex(number)}"


def check_ioctls(report, database, truth_path):
    truth = Truth(truth_path)
    report.check(not truth.problems, f"the kernel's count ({truth.method}) can be trusted", truth.problems)
    names = read_names()
    ours = collections.defaultdict(collections.Counter)
    shown = collections.Counter()
    for pid, name, calls in database.execute(
            """SELECT pid, name, sum(calls) FROM totals JOIN processes USING (process_id)
                WHERE layer = 'ioctl' GROUP BY pid, name"""):
        ours[pid][function_of(name, names)] += calls
        shown[name] += calls

    pids = sorted(ours.keys() | truth.calls.keys())
    unequal = [f"process {pid}: {sum(ours[pid].values())}; the kernel {sum(truth.calls[pid].values())}" for pid in pids
               if sum(ours[pid].values()) != sum(truth.calls[pid].values())]
    total, wanted = (sum(sum(calls.values()) for calls in side.values()) for side in (ours, truth.calls))
    report.check(not unequal, f"ioctls of {len(pids)} processes: {total}; the kernel counted {wanted} "
                 f"(and {truth.others} on other files)", unequal[:compare.ROWS_SHOWN])

    # Requests of two kinds are left out of the comparison. The trace names a transfer after the request that the transfer carries. It
    # records other requests under a common name, which has no number.
    wrong, hidden = [], 0
    for pid in pids:
        hidden += truth.calls[pid][("escape", TRANSFER)]
        for key in sorted(set(ours[pid]) | set(truth.calls[pid]), key=describe):
            mine, kernel = ours[pid][key], truth.calls[pid][key]
            hidden += mine if key[1] is None else 0
            if mine != kernel and key != ("escape", TRANSFER) and key[1] is not None:
                wrong.append(f"process {pid}: {describe(key)}: {mine}; the kernel {kernel}")
    what = f"ioctls by request: {len(wrong)} differ"
    if hidden:
        report.note(f"{hidden} requests carry others or have no row of their own: not compared by request")
    else:
        report.check(not wrong, what, wrong[:compare.ROWS_SHOWN])
    unnamed = [name for name in shown if re.search(r" (0x[0-9a-f]+|\d+|other)$", name)]
    report.note(f"{len(shown)} different requests, {len(unnamed)} of them without a name",
                [f"{shown[name]} {name}" for name in unnamed[:compare.ROWS_SHOWN]])


def main():
    if len(sys.argv) != 3:
        print(__doc__.strip().splitlines()[-1].strip(), file=sys.stderr)
        return 2
    report = compare.Report()
    report.begin(sys.argv[1])
    with compare.open_database(sys.argv[1]) as database:
        check_ioctls(report, database, sys.argv[2])
    return report.finish()


if __name__ == "__main__":
    sys.exit(main())
