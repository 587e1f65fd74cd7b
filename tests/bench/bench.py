#!/usr/bin/env python3
"""Runs benchmarks, modules beside this file, and prints their figures as JSON lines."""
import argparse
import ast
import importlib
import os
import pathlib
import signal
import sys
import textwrap

HERE = pathlib.Path(__file__).resolve().parent
BENCHMARKS = (
    "hook",
    "cases",
    "tail",
    "ioctls",
    "instructions",
    "hook_parts",
    "collector",
    "processes",
    "starvation",
    "latency",
    "daemon",
    "queries",
    "answers",
)


def first_sentence(name):
    text = " ".join(ast.get_docstring(ast.parse((HERE / f"{name}.py").read_text())).split())
    return text.partition(". ")[0].rstrip(".")


ENDS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


def interrupt(*_):
    """What was started, mounted or attached is undone on the way out, and that is not interrupted again."""
    for number in ENDS:
        signal.signal(number, signal.SIG_IGN)
    raise KeyboardInterrupt


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--build", type=pathlib.Path, default=pathlib.Path("build"))
    parser.add_argument("--list", action="store_true", help="print the benchmarks' names, and what each measures")
    parser.add_argument("benchmark", nargs="*", help="all of them where none is named")
    arguments = parser.parse_args()
    for name in arguments.benchmark:
        if name not in BENCHMARKS:
            parser.error(f"no benchmark '{name}' (there are: {', '.join(BENCHMARKS)})")
    if arguments.list:
        for name in BENCHMARKS:
            print(textwrap.fill(f"{name:<13} {first_sentence(name)}", 110, subsequent_indent=" " * 14))
        return
    build = arguments.build.resolve()
    if not (build / "tests/bench").is_dir():
        parser.error(f"no build in {arguments.build}")
    # Sessions are those of the end-to-end tests, which want to know the build when they are imported.
    os.environ["CUDATRACE_BUILD"] = str(build)
    sys.path.append(str(HERE.parent / "e2e"))
    for number in ENDS:
        signal.signal(number, interrupt)
    try:
        for name in arguments.benchmark or BENCHMARKS:
            importlib.import_module(name).run(build)
    except KeyboardInterrupt:
        sys.exit("bench.py: interrupted")


if __name__ == "__main__":
    main()
