"""Measures reports, pages and exports of two finished traces: one with 2.1 million calls and as many pieces of GPU work, and one with 30
million calls of 64 processes. The GPU work is that of two processes on the simulated CUPTI. For the GPU work, it also measures `nsys stats`
on our export, and Perfetto's trace processor, if they are installed. CUDATRACE_BENCH_TIMES makes the traces that many times as large
(default: 1)."""
import os
import pathlib
import shutil
import subprocess
import tempfile
import time

from answers import MIB, ROUNDS, ask
from figures import emit, emit_missing, over
from queries import MIX

ROUNDS_OF_WORK = 150000  # by each of two processes; a round launches seven pieces of work
CALLS = 30000000
SECTIONS = ("bottleneck", "idle", "queue", "phases", "launches", "gaps", "kernels", "layers", "copies", "waits")
TARGETS = {"report": ("<=", 5), "html": ("<=", 10)}


def make_work(build, path, times):
    tests = build / "tests"
    work = f"{tests}/workloads/gpu_work --rounds {times * ROUNDS_OF_WORK}"
    subprocess.run([build / "tools/cudatrace", "run", "--gpu", "--db", path, "--", "sh", "-c", f"{work} & {work}; wait"], check=True,
                   stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
                   env=os.environ | {"LD_LIBRARY_PATH": f"{tests}/simcuda:{tests}/simcupti/13", "CUDATRACE_DAEMON": f"{build}/collector/cudatraced",
                                     "CUDATRACE_HOOK": f"{build}/hook/libcudatrace.so"})


def make_calls(build, path, times):
    subprocess.run([build / "tests/bench/make_database", MIX, path, str(times * CALLS)], check=True, stdout=subprocess.DEVNULL)


def measure(build, database, trace, times, asked):
    """Measures the commands, given by name, on a trace."""
    events = {"gpu": 2 * 14 * ROUNDS_OF_WORK, "calls": CALLS}[trace] * times
    with tempfile.TemporaryDirectory() as folder:
        out = pathlib.Path(folder) / "out"
        for name, arguments in asked.items():
            seconds, processor, memory = zip(*(ask(build, database, folder, arguments) for _ in range(ROUNDS)))
            emit("reports", f"{trace}_{name}", seconds, "s", target=TARGETS.get(name) if times == 1 else None)
            emit("reports", f"{trace}_{name}_processor", processor, "s")
            emit("reports", f"{trace}_{name}_memory", memory, "MiB", target=("<=", 256))
            if name.startswith("export"):
                emit("reports", f"{trace}_{name}_rate", [events / each for each in seconds], "events/s", target=(">=", 300000))
            if out.exists():
                size = [out.stat().st_size / MIB]
                emit("reports", f"{trace}_{name}_size", size, "MiB", target=("<=", 15) if name == "html" else None)
                out.unlink()


def timed(command, folder):
    start = time.perf_counter()
    subprocess.run(command, cwd=folder, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    return time.perf_counter() - start


def beside(build, database):
    """Compares with the tools that people know, on exports of the same work. The rounds alternate."""
    peers = {"nsys": ("nsys", "nsys", ["stats", "out.sqlite"], "out.sqlite"),
             "perfetto": ("trace_processor_shell", "perfetto", ["-q", "slices.sql", "out.pftrace"], "out.pftrace")}
    for peer, (program, form, arguments, name) in peers.items():
        if not shutil.which(program):
            emit_missing("reports", f"gpu_report_over_{peer}", f"no {program}")
            continue
        with tempfile.TemporaryDirectory() as folder:
            (pathlib.Path(folder) / "slices.sql").write_text("SELECT name, count(*), sum(dur) FROM slice GROUP BY name ORDER BY 3 DESC LIMIT 30;\n")
            ask(build, database, folder, ("export", "--format", form, "--output", name))
            ours, theirs = zip(*((ask(build, database, folder, ("report",))[0], timed([program, *arguments], folder)) for _ in range(ROUNDS)))
            emit("reports", f"gpu_{peer}", theirs, "s")
            emit("reports", f"gpu_report_over_{peer}", over(ours, theirs), "", target=("<=", 0.5) if peer == "nsys" else None)


def run(build, _options):
    times = int(os.environ.get("CUDATRACE_BENCH_TIMES", "1"))
    commands = {"report": ("report",), **{section: ("report", section) for section in SECTIONS}, "html": ("html", "--output", "out"),
                "window": ("report", "--from", "1", "--to", "2")}
    exports = {f"export_{form}": ("export", "--format", form, "--output", "out") for form in ("perfetto", "nsys")}
    with tempfile.TemporaryDirectory() as folder:
        database = pathlib.Path(folder) / "trace.db"
        make_work(build, database, times)
        measure(build, database, "gpu", times, commands | exports)
        beside(build, database)
    with tempfile.TemporaryDirectory() as folder:
        database = pathlib.Path(folder) / "trace.db"
        make_calls(build, database, times)
        measure(build, database, "calls", times, commands)
