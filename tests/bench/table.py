#!/usr/bin/env python3
"""Reads the output of bench.py from standard input, and prints it as a table: ratios, counted instructions, figures with a target, and
benchmarks that could not be measured. With --all, the table has every figure."""
import argparse
import json
import sys

HEAD = ("benchmark", "figure", "median", "minimum", "maximum", "target", "reached")
RIGHT = {"median", "minimum", "maximum"}
SHOWN = {"ratio", "instructions"}


def cells(line):
    unit = {"ratio": " ×"}.get(line["unit"], f" {line['unit']}")
    reached = {True: "yes", False: "no"}.get(line.get("reached"), "")
    return (line["benchmark"], line["figure"], f"{line['median']:,}{unit}", f"{line['min']:,}", f"{line['max']:,}",
            line.get("target", ""), reached)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--all", action="store_true")
    every = parser.parse_args().all
    # Skip the line if it is not JSON, because benchmarks may also print other lines.
    lines = [json.loads(line) for line in sys.stdin if line.startswith("{")]
    rows = [cells(line) for line in lines
            if "missing" not in line and (every or line["unit"] in SHOWN or "target" in line)]
    if rows:
        widths = [max(map(len, column)) for column in zip(HEAD, *rows)]
        for row in (HEAD, ["-" * width for width in widths], *rows):
            print("  ".join(cell.rjust(width) if name in RIGHT else cell.ljust(width)
                            for name, cell, width in zip(HEAD, row, widths)).rstrip())
    elif lines:
        print("No ratios and no targets here: --all shows every figure.")
    missing = [line for line in lines if "missing" in line]
    for what in dict.fromkeys(f"{line['benchmark']}, {line['figure']}: {line['missing']}" for line in missing):
        print(f"not measured: {what}")


if __name__ == "__main__":
    main()
