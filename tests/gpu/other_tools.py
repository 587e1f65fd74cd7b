#!/usr/bin/env python3
"""Records GPU work (`cudatrace run --gpu`) of a program that runs under another tool of NVIDIA's, on a real GPU.

CUPTI serves one tool in a process. The other tool must have the same results as without cudatrace, and the program must end in the same
way. The trace contains the same launches as without the other tool, and no GPU work. Both `cudatrace run` and the column `gpu_recording`
must name the tool that uses CUPTI.

    other_tools.py --build build        exit status 0: success, 1: failure, 77: no GPU or no nvcc
"""
import argparse
import collections
import contextlib
import glob
import os
import re
import shutil
import sys
import tempfile

import compare
import run

LIMIT_S = 120

# title: the name in cudatrace's messages. command: returns the words before the program's path, given the tool's path and the path for its
# report. found: a pattern for lines that are the same in each run.
Tool = collections.namedtuple("Tool", "name title paths command found")
TOOLS = (
    Tool("compute-sanitizer", "compute-sanitizer", ("/usr/local/cuda*/bin/compute-sanitizer", "/usr/local/cuda*/compute-sanitizer/compute-sanitizer"),
         lambda path, _: [path], r"^vectors: .*|^=* ERROR SUMMARY: .*|^=* Program hit .*"),
    Tool("ncu", "Nsight Compute", ("/usr/local/cuda*/bin/ncu", "/opt/nvidia/nsight-compute/*/ncu"),
         lambda path, _: [path, "--launch-count", "5"], r"^vectors: .*|(?<=^==PROF== Profiling ).*|^ +\S+ .*Context \d+, Stream \d+.*"),
    Tool("nsys", "Nsight Systems", (), lambda _, report: run.nsys_command(report, []), r"^vectors: .*"),
)


def find(tool):
    if tool.name == "nsys":
        return run.find_nsys()
    return shutil.which(tool.name) or next((path for pattern in tool.paths for path in sorted(glob.glob(pattern))), None)


def found_by(tool, outcome):
    return re.findall(tool.found, (outcome.stdout + run.own_lines(outcome.stderr)).decode(errors="replace"), re.MULTILINE)


class Bench:
    def __init__(self, report, build, scratch, program):
        self.report, self.cudatrace, self.scratch, self.program = report, f"{build}/tools/cudatrace", scratch, program
        self.env = {**run.plain_environment(scratch), "TMPDIR": scratch}

    def trace(self, name, command):
        """Runs the command under `cudatrace run --gpu`. Returns (its outcome, the path of the database)."""
        path, session = f"{self.scratch}/{name}.db", f"tools{os.getpid()}{name.replace('-', '')}"
        outcome = run.run_process([self.cudatrace, "run", "--gpu", "--session", session, "--db", path, "--", *command], self.env, LIMIT_S)
        if outcome.status is None:
            run.run_process([self.cudatrace, "stop", "--session", session], self.env, LIMIT_S)
        return outcome, path

    def read(self, path):
        """Returns ({function: calls} of the launches, the number of recorded kernels, {process: its gpu_recording})."""
        with contextlib.closing(compare.open_database(path)) as database:
            compare.check_sums(self.report, database)
            launches = dict(database.execute("SELECT name, sum(calls) FROM totals WHERE layer = 'driver' AND name LIKE 'cu%Launch%' GROUP BY 1"))
            kernels, = database.execute("SELECT count(*) FROM gpu_work WHERE kind = 'kernel'").fetchone()
            return launches, kernels, dict(database.execute("SELECT pid, gpu_recording FROM processes WHERE gpu_recording IS NOT NULL"))

    def measure_without(self):
        self.report.begin("without another tool")
        outcome, path = self.trace("alone", [self.program])
        self.launches, kernels, recording = self.read(path)
        self.report.check(outcome.status == 0 and kernels == run.VECTORS_KERNELS and set(recording.values()) == {"recorded"},
                          f"{kernels} kernels of {run.VECTORS_KERNELS} are recorded", run.describe(outcome) + [str(recording)])

    def compare(self, tool, path):
        self.report.begin(tool.name)
        words = tool.command(path, f"{self.scratch}/{tool.name}")
        alone = run.run_process([*words, self.program], self.env, LIMIT_S)
        found = found_by(tool, alone)
        if alone.status != 0 or not found:
            self.report.warn("left out: does not work here", run.describe(alone))
            return
        traced, database = self.trace(tool.name, [*words, self.program])
        self.report.check((traced.status, found_by(tool, traced)) == (alone.status, found), f"status and {len(found)} lines as without cudatrace",
                          run.describe(traced) + ["without cudatrace:", *found])
        launches, kernels, recording = self.read(database)
        self.report.check(launches == self.launches, "the launches are the program's", [f"{launches}, without the tool {self.launches}"])
        reasons = {pid: why for pid, why in recording.items() if why != "recorded"}
        said = re.findall(r"GPU work was not recorded in process (\d+): (.*) \(gpu_recording in the view processes\)",
                          traced.stderr.decode(errors="replace"))
        self.report.check(kernels == 0 and list(reasons.values()) == [f"{tool.title} uses CUPTI"] and {int(pid): why for pid, why in said} == reasons,
                          f"no GPU work is recorded, and the reason is given: {dict(said)}",
                          [f"{kernels} kernels; gpu_recording: {recording}", *run.describe(traced)])


def main():
    parser = argparse.ArgumentParser(description="Record GPU work of a program that runs under another tool, on this machine's GPU.")
    parser.add_argument("--build", required=True, help="meson's build directory")
    build = os.path.abspath(parser.parse_args().build)
    sys.stdout.reconfigure(errors="replace")
    try:
        run.require_gpu()
        nvcc = run.find_nvcc()
        if not nvcc:
            raise run.Skip("no nvcc")
    except run.Skip as reason:
        print(f"skipped: {reason}")
        return run.SKIP
    report = compare.Report()
    with tempfile.TemporaryDirectory(prefix="cudatrace-tools-") as scratch:
        report.begin("build")
        program = f"{scratch}/vectors"
        failed = run.build_together({"vectors.cu": run.vectors_command(nvcc, "static", program)}, LIMIT_S)
        if report.check(not failed, "vectors.cu compiles", failed.get("vectors.cu", ())):
            bench = Bench(report, build, scratch, program)
            bench.measure_without()
            for tool in TOOLS:
                path = find(tool)
                if path:
                    bench.compare(tool, path)
                else:
                    report.warn(f"left out: no {tool.name}")
    return report.finish()


if __name__ == "__main__":
    sys.exit(main())
