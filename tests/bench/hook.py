"""What a traced call adds, against two counter reads and a clock_gettime ring of the same round."""
import os
import sqlite3
import subprocess
import sys
import tempfile

from figures import emit, rounds_of


def run(build, programs=None):
    """programs: where hook_cost and its driver lie, if not in the build."""
    programs = programs or build / "tests/bench"
    session = f"bench{os.getpid()}"
    with tempfile.TemporaryDirectory() as folder:
        database = os.path.join(folder, "trace.db")
        cudatrace = build / "tools/cudatrace"
        env = dict(os.environ, LD_LIBRARY_PATH=str(programs))
        program = subprocess.Popen([cudatrace, "run", "--session", session, "--db", database, "--",
                                    "taskset", "-c", str(max(os.sched_getaffinity(0))), programs / "hook_cost"],
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
