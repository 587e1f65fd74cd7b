#!/usr/bin/env python3
"""Print the call counters that processes kept under SIMCUDA_COUNTS=FOLDER, as tab-separated values.

    counts.py FOLDER                name  entered  returned, summed over all processes
    counts.py --by-process FOLDER   pid  start  name  entered  returned
    counts.py --total FOLDER        one line: entered  returned

Functions that were never entered are left out.
"""

import argparse
import collections
import pathlib
import signal
import struct
import sys

HEADER = struct.Struct("=8sII")
PAIR = struct.Struct("=QQ")


def read_counts(folder):
    """Yield (pid, start, {name: (entered, returned)}) for each process that has a counter file."""
    folder = pathlib.Path(folder)
    paths = sorted(folder.glob("*.counts"))
    names = (folder / "names").read_text().split() if paths else []
    for path in paths:
        data = path.read_bytes()
        magic, version, rows = HEADER.unpack_from(data)
        if (magic, version, rows) != (b"SIMCOUNT", 1, len(names)):
            raise ValueError(f"{path}: not a counter file of this version")
        pid, start = (int(part) for part in path.name.split(".")[:2])
        pairs = (PAIR.unpack_from(data, HEADER.size + PAIR.size * row) for row in range(rows))
        yield pid, start, {name: pair for name, pair in zip(names, pairs) if any(pair)}


def summed(folder):
    """Return {name: (entered, returned)}, summed over all processes."""
    entered, returned = collections.Counter(), collections.Counter()
    for _, _, counts in read_counts(folder):
        for name, (enter, leave) in counts.items():
            entered[name] += enter
            returned[name] += leave
    return {name: (entered[name], returned[name]) for name in sorted(entered)}


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("folder")
    parser.add_argument("--by-process", action="store_true", help="a line for each process and function")
    parser.add_argument("--total", action="store_true", help="one line for all calls")
    options = parser.parse_args()
    signal.signal(signal.SIGPIPE, signal.SIG_DFL)
    if not pathlib.Path(options.folder).is_dir():
        sys.exit(f"{options.folder}: no such folder")
    if options.by_process:
        for pid, start, counts in read_counts(options.folder):
            for name, pair in sorted(counts.items()):
                print(pid, start, name, *pair, sep="\t")
        return
    totals = summed(options.folder)
    if options.total:
        print(sum(pair[0] for pair in totals.values()), sum(pair[1] for pair in totals.values()), sep="\t")
        return
    for name, pair in totals.items():
        print(name, *pair, sep="\t")


if __name__ == "__main__":
    main()
