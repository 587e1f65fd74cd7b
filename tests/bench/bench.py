#!/usr/bin/env python3
"""Runs a benchmark and prints its figures as JSON lines: medians over interleaved rounds, with the spread."""
import argparse
import collections
import json
import os
import pathlib
import sqlite3
import statistics
import subprocess
import sys
import tempfile


def spread(values):
    values = sorted(values)
    return {"median": round(statistics.median(values), 3), "min": round(values[0], 3), "max": round(values[-1], 3),
            "rounds": len(values)}


def emit(benchmark, figure, values, unit):
    print(json.dumps({"benchmark": benchmark, "figure": figure, "unit": unit, **spread(values)}), flush=True)


def rounds_of(text):
    """{variant: [value of each round]} from lines `variant round value`."""
    rounds = collections.defaultdict(list)
    for line in text.splitlines():
        variant, _, value = line.split()
        rounds[variant].append(float(value))
    return rounds


def hook(build):
    """What a traced call adds, against two counter reads and a clock_gettime ring of the same round."""
    session = f"bench{os.getpid()}"
    with tempfile.TemporaryDirectory() as folder:
        database = os.path.join(folder, "trace.db")
        cudatrace = build / "tools/cudatrace"
        env = dict(os.environ, LD_LIBRARY_PATH=str(build / "tests/bench"))
        program = subprocess.Popen([cudatrace, "run", "--session", session, "--db", database, "--",
                                    "taskset", "-c", str(max(os.sched_getaffinity(0))), build / "tests/bench/hook_cost"],
                                   env=env, stdin=subprocess.PIPE,
                                   stdout=subprocess.PIPE, text=True)
        # On one processor: a program that the scheduler moves finds its ring in the other's caches, and what it pays for
        # that is not the tracer's doing.
        lines = []
        for line in program.stdout:
            if line == "flush\n":
                subprocess.run([cudatrace, "flush", "--session", session], check=True)
                program.stdin.write("\n")
                program.stdin.flush()
            else:
                lines.append(line)
        if program.wait() != 0:
            sys.exit("hook_cost failed")
        connection = sqlite3.connect(database)
        calls, lost = connection.execute("SELECT sum(calls), sum(lost) FROM totals").fetchone()
        connection.close()
    if lost:
        sys.exit(f"{lost} of {calls} calls were lost: the figures would be those of a full ring")
    rounds = rounds_of("".join(lines))
    bare = rounds["bare"]
    for variant, values in rounds.items():
        emit("hook", f"{variant}_call_ns", values, "ns")
    added = {v: [value - b for value, b in zip(values, bare)] for v, values in rounds.items() if v != "bare"}
    for variant, values in added.items():
        emit("hook", f"{variant}_added_ns", values, "ns")
    for peer in ("two_counter_reads", "clock_ring"):
        emit("hook", f"added_over_{peer}", [a / b for a, b in zip(added["cudatrace"], added[peer])], "ratio")


def collector(build):
    """From full rings to committed rows, against the bare INSERT … SELECT of the same rows."""
    with tempfile.TemporaryDirectory() as folder:
        done = subprocess.run([build / "tests/bench/collector_rate", folder], capture_output=True, text=True, check=True)
    rounds = rounds_of(done.stdout)
    emit("collector", "rows_per_s", rounds["collector"], "rows/s")
    emit("collector", "bare_insert_select_rows_per_s", rounds["bare"], "rows/s")
    emit("collector", "collector_over_bare", [c / b for c, b in zip(rounds["collector"], rounds["bare"])], "ratio")
    emit("collector", "bytes_per_call", rounds["bytes_per_call"], "bytes")


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--build", type=pathlib.Path, default=pathlib.Path("build"))
    parser.add_argument("benchmark", choices=["hook", "collector"])
    arguments = parser.parse_args()
    globals()[arguments.benchmark](arguments.build.resolve())


if __name__ == "__main__":
    main()
