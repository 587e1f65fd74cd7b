"""Measures the time and memory of the usual commands on a large finished trace: report, timeline, top, exports and the HTML page. It also
measures how long a browser takes to display the page. CUDATRACE_BENCH_CALLS sets the number of calls in the trace (default: five
million). CUDATRACE_BENCH_DATABASE names an existing trace, made by make_database, to use instead."""
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import time

from figures import emit, emit_missing
from queries import make

ROUNDS = 3
MIB = 1 << 20

# Report sections that read only precomputed sums, so that their cost does not depend on the number of calls.
OF_SUMS = ("processes", "threads", "categories", "functions", "errors", "losses")
ASKED = {
    "report": ("report",),
    "report_of_sums": ("report", *OF_SUMS),
    "timeline": ("timeline",),
    "top": ("top", "--once"),
    **{f"export_{form}": ("export", "--format", form, "--output", "out") for form in ("chrome", "perfetto", "csv", "jsonl", "nsys")},
    "html": ("html", "--output", "out"),
}
# The targets are for a trace of ten million calls.
TARGETS = {"report": ("<=", 5), "export_chrome": ("<=", 60)}


def ask(build, database, folder, arguments):
    """Runs a command on the trace. Returns the elapsed seconds, the CPU seconds, and the peak memory in MiB."""
    command, *rest = arguments
    start = time.perf_counter()
    child = subprocess.Popen([build / "tools/cudatrace", command, "--db", database, *rest], cwd=folder, stdout=subprocess.DEVNULL)
    _, status, used = os.wait4(child.pid, 0)
    child.returncode = status
    if status:
        raise SystemExit(f"answers: cudatrace {command} ended with {status}")
    return time.perf_counter() - start, used.ru_utime + used.ru_stime, used.ru_maxrss / 1024


def show(page):
    """Returns how many milliseconds the browser takes to open and draw the page."""
    sys.path.append(str(pathlib.Path(__file__).resolve().parents[1] / "e2e"))
    from browser import Browser
    with Browser() as browser:
        return browser.show(page)


def measure(build, database):
    large = os.environ.get("CUDATRACE_BENCH_CALLS") == "10000000"
    with tempfile.TemporaryDirectory() as folder:
        out = pathlib.Path(folder) / "out"
        for name, arguments in ASKED.items():
            seconds, processor, memory = zip(*(ask(build, database, folder, arguments) for _ in range(ROUNDS)))
            emit("answers", name, seconds, "s", target=TARGETS.get(name) if large else None)
            emit("answers", f"{name}_processor", processor, "s")
            emit("answers", f"{name}_memory", memory, "MiB", target=("<=", 200))
            if out.exists():
                emit("answers", f"{name}_size", [out.stat().st_size / MIB], "MiB")
        if shutil.which("chromedriver"):
            page = out.rename(out.with_suffix(".html"))
            emit("answers", "page_shown", [show(page) for _ in range(ROUNDS)], "ms", target=("<=", 3000))
        else:
            emit_missing("answers", "page_shown", "no chromedriver")


def run(build, _options):
    given = os.environ.get("CUDATRACE_BENCH_DATABASE")
    if given:
        measure(build, pathlib.Path(given).resolve())
        return
    with tempfile.TemporaryDirectory() as folder:
        path = pathlib.Path(folder) / "trace.db"
        make(build, path, "answers")
        measure(build, path)
