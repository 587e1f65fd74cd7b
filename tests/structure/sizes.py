#!/usr/bin/env python3
"""Measures the lengths of files, functions and headers. Prints the longest functions, and fails if a length exceeds its bound below."""
import pathlib
import statistics
import sys

SOURCE = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(SOURCE / "tools"))
from treefiles import tree_files  # noqa: E402

FILE, HEADER, FUNCTION, MEDIAN = 600, 250, 60, 200  # lines
LONG_FUNCTIONS = 10  # at most this many may be longer; each is the loop of a table, or one protocol from its first step to its last
PARTS = ("hook", "probe", "collector", "proto", "tools", "tests")


def is_header(name):
    """BPF programs share code in headers (.bpf.h). The bound for files also applies to these headers, because each BPF object is one
    unit."""
    return name.endswith(".h") and not name.endswith(".bpf.h")


def code():
    """Returns the C files, headers and scripts of the tree. Tables (.def) have no bound, because they have one row per item."""
    return [name for name in tree_files() if name.partition("/")[0] in PARTS and name.endswith((".c", ".h", ".py"))]


def functions(lines):
    """Yields (lines, first line) of each C function. Relies on clang-format, which puts a function's braces in the first column."""
    opened = None
    for number, line in enumerate(lines, 1):
        if line == "{":
            opened = number
        elif line.startswith("}") and opened:
            yield number - opened + 1, lines[opened - 2].strip()
            opened = None


def main():
    lengths, long_functions, wrong = {}, [], []
    for name in code():
        lines = (SOURCE / name).read_text().splitlines()
        lengths[name] = len(lines)
        if name.endswith((".c", ".h")):
            long_functions += [(length, name, what) for length, what in functions(lines) if length > FUNCTION]
    for name, length in lengths.items():
        bound = HEADER if is_header(name) else FILE
        if length > bound:
            wrong.append(f"{name} has {length} lines, and {bound} are enough")
    product = [length for name, length in lengths.items() if not name.startswith("tests/")]
    if statistics.median(product) > MEDIAN:
        wrong.append(f"half of the product's files have more than {MEDIAN} lines")
    ours = sorted((entry for entry in long_functions if not entry[1].startswith("tests/")), reverse=True)
    if len(ours) > LONG_FUNCTIONS:
        wrong.append(f"{len(ours)} functions have more than {FUNCTION} lines, and {LONG_FUNCTIONS} may")
    print(f"{len(lengths)} files, median of the product's {statistics.median(product):.0f} lines, longest header "
          f"{max(length for name, length in lengths.items() if is_header(name))}, functions of more than {FUNCTION} lines: "
          f"{len(ours)} in the product, {len(long_functions) - len(ours)} in tests")
    for length, name, what in sorted(long_functions, reverse=True):
        print(f"{length} {name}: {what}")
    for what in wrong:
        print(what, file=sys.stderr)
    return 1 if wrong else 0


sys.exit(main())
