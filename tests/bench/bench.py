#!/usr/bin/env python3
"""Runs benchmarks, which are modules in this folder, and prints their figures as JSON lines. table.py makes a table from the lines.
Benchmarks whose names begin with gpu_ need a machine with a GPU. The gpu_ benchmarks run only if they are named, and so does `soak`, which
takes an hour. The gpu_ benchmarks, `hook` and `hook_parts` can use a build folder from another machine, and build the missing programs on
this one."""
import argparse
import ast
import contextlib
import importlib
import os
import pathlib
import signal
import sys
import tempfile
import textwrap

HERE = pathlib.Path(__file__).resolve().parent
BENCHMARKS = (
    "hook",
    "cases",
    "tail",
    "ioctls",
    "kernel_events",
    "instructions",
    "hook_parts",
    "collector",
    "live",
    "processes",
    "starvation",
    "latency",
    "daemon",
    "queries",
    "answers",
    "reports",
)
GPU_BENCHMARKS = ("gpu_calls", "gpu_training", "gpu_at_once", "gpu_turns", "gpu_recording")
LONG_BENCHMARKS = ("soak",)
BUILT_HERE = ("hook", "hook_parts")  # benchmarks that also run if the build has no tests/bench
SKIP = 77


def first_sentence(name):
    text = " ".join(ast.get_docstring(ast.parse((HERE / f"{name}.py").read_text())).split())
    return text.partition(". ")[0].rstrip(".")


ENDS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


def interrupt(*_):
    """Ends the run. While the run exits, it undoes everything that was started, mounted or attached, and ignores further signals."""
    for number in ENDS:
        signal.signal(number, signal.SIG_IGN)
    raise KeyboardInterrupt


def parse_arguments():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--build", type=pathlib.Path, default=pathlib.Path("build"))
    parser.add_argument("--list", action="store_true", help="print the benchmarks' names, and what each measures")
    parser.add_argument("benchmark", nargs="*", help="all but those of a GPU where none is named")
    parser.add_argument("--programs", type=int, action="append", metavar="N", help="live, gpu_at_once, gpu_turns: so many at once (repeatable)")
    parser.add_argument("--hours", type=float, default=1, help="soak: how long (1)")
    gpu = parser.add_argument_group("for those of a GPU")
    gpu.add_argument("--without", action="append", default=[], metavar="NAME", help="leave a variant or a model out (repeatable)")
    gpu.add_argument("--rounds", type=int, default=7, help="of gpu_calls (7)")
    gpu.add_argument("--batches", type=int, default=400, help="batches of 200 short calls a process (400)")
    gpu.add_argument("--launch-batches", type=int, default=200, help="batches of 200 launches a process (200)")
    gpu.add_argument("--peers", action="store_true", help="run the training under bpftrace and strace, too")
    gpu.add_argument("--gpu-times", action="store_true", help="run the training under recorders of the GPU's times, too")
    gpu.add_argument("--pairs", type=int, default=10, help="of training processes, untraced and traced (10)")
    gpu.add_argument("--turns", type=int, default=60, help="gpu_recording: pairs of turns before and after the recordings (60)")
    gpu.add_argument("--python", default="python3", help="one that has PyTorch")
    gpu.add_argument("--seconds", type=float, default=285, help="begin no round of a benchmark that would not end by then (285)")
    gpu.add_argument("--driver", metavar="LIBCUDA", help="a simulated driver instead of a GPU: shows that they work")
    arguments = parser.parse_args()
    arguments.benchmark = arguments.benchmark or BENCHMARKS
    for name in arguments.benchmark:
        if name not in BENCHMARKS + LONG_BENCHMARKS + GPU_BENCHMARKS:
            parser.error(f"no benchmark '{name}' (the benchmarks are: {', '.join(BENCHMARKS + LONG_BENCHMARKS + GPU_BENCHMARKS)})")
    arguments.build = arguments.build.resolve()
    wants_build = [name for name in arguments.benchmark if name not in GPU_BENCHMARKS + BUILT_HERE]
    if not arguments.list and not (arguments.build / ("tests/bench" if wants_build else "tools/cudatrace")).exists():
        parser.error(f"no build in {arguments.build}")
    return arguments


def build_here(build, undo):
    """Creates a build folder that has the contents of the given one, plus the programs in BUILT_HERE."""
    folder = pathlib.Path(undo.enter_context(tempfile.TemporaryDirectory(prefix="cudatrace-bench-")))
    for part in ("hook", "collector", "tools"):
        (folder / part).symlink_to(build / part)
    (folder / "tests/bench").mkdir(parents=True)
    importlib.import_module("hook_parts").build_programs(folder / "tests/bench")
    return folder


def main():
    arguments = parse_arguments()
    if arguments.list:
        for name in BENCHMARKS:
            print(textwrap.fill(f"{name:<13} {first_sentence(name)}", 110, subsequent_indent=" " * 14))
        return
    with contextlib.ExitStack() as undo:
        run_all(arguments, undo)


def run_on_gpu(benchmark, build, arguments):
    import run  # noqa: PLC0415: is with the GPU tests

    try:
        benchmark.run(build, arguments)
    except run.Skip as reason:
        print(f"skipped: {reason}")
        sys.exit(SKIP)


def run_all(arguments, undo):
    build = arguments.build
    if not (build / "tests/bench").is_dir() and set(BUILT_HERE) & set(arguments.benchmark):
        build = build_here(build, undo)
    # The benchmarks import modules of the end-to-end tests, which take the build folder from this variable.
    os.environ["CUDATRACE_BUILD"] = str(build)
    sys.path += [str(HERE.parent / "gpu"), str(HERE.parent / "e2e")]
    for number in ENDS:
        signal.signal(number, interrupt)
    try:
        for name in arguments.benchmark:
            benchmark = importlib.import_module(name)
            if name in GPU_BENCHMARKS:
                run_on_gpu(benchmark, build, arguments)
            else:
                benchmark.run(build, arguments)
    except KeyboardInterrupt:
        sys.exit("bench.py: interrupted")


if __name__ == "__main__":
    main()
