#!/usr/bin/env python3
"""Runs a benchmark, one of the modules beside this file, and prints its figures as JSON lines."""
import argparse
import importlib
import pathlib

BENCHMARKS = (
    "hook",
    "collector",
    "processes",
    "starvation",
    "latency",
    "daemon",
    "queries",
)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--build", type=pathlib.Path, default=pathlib.Path("build"))
    parser.add_argument("benchmark", choices=BENCHMARKS)
    arguments = parser.parse_args()
    importlib.import_module(arguments.benchmark).run(arguments.build.resolve())


if __name__ == "__main__":
    main()
