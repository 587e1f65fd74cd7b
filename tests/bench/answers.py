"""Measures the usual questions about a large trace after a run: report, timeline, top, exports and the page, in time and memory.
It also measures how long a browser takes to show the page. CUDATRACE_BENCH_CALLS sets the trace's number of calls (default: five
million). CUDATRACE_BENCH_DATABASE names a trace that make_database has already made."""
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

# Sections that read only sums, so the number of calls does not matter.
OF_SUMS = ("processes", "threads", "categories", "functions", "errors", "losses")
ASKED = {
    "report": ("report",),
    "report_of_sums": ("report", *OF_SUMS),
    "timeline": ("timeline",),
    "top": ("top", "--once"),
    **{f"export_{form}": ("export", "--format", form, "--output", "out") for form in ("chrome", "perfetto", "csv", "jsonl", "nsys")},
    "html": ("html", "--output", "out"),
}
# For a trace of ten million calls.
TARGETS = {"report": ("<=", 5), "export_chrome": ("<=", 60)}


def ask(build, database, folder, arguments):
    """Returns the elapsed seconds, the seconds of processor time, and the peak memory in MiB."""
    command, *rest = arguments
    start = time.perf_counter()
    child = subprocess.Popen([build / "tools/cudatrace", command, "--db", database, *rest], cwd=folder, stdout=subprocess.DEVNULL)
    _, status, used = os.wait4(child.pid, 0)
    child.returncode = status
    if status:
        raise SystemExit(f"answers: cudatrace {command} ended with {status}")
    return time.perf_counter() - start, used.ru_utime + used.ru_stime, used.ru_maxrss / 1024


def show(page):
    """Returns the milliseconds from the start of opening the page until the browser has drawn it."""
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
