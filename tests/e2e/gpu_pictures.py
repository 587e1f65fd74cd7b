"""Tests that `cudatrace timeline` draws the work of GPUs, one line for each stream, in the columns that match the times of the work."""
import re
import sqlite3

from cudatrace_test import CUDATRACE, Session, WORKLOADS, check, equal

COLUMNS = 100 - 26
TASK = "INSERT INTO gpu_task (gpu_task_id, process_id, kind, kernel, device, context, stream, graph, node) VALUES (?, ?, ?, 0, ?, 1, ?, 0, 0)"
RUN = "INSERT INTO gpu_run (gpu_task_id, start_ns, duration_ns, bytes) VALUES (?, ?, ?, 4096)"
# (device, stream, kind, first column, columns), with each column's time as a unit
WORK = [(0, 7, "kernel", 4, 10), (0, 7, "DtoH", 14, 6), (0, 7, "set", 30, 1), (0, 8, "kernel", 10, 0.25), (2, 7, "graph", 40, 20),
        (2, 7, "kernel", 50, 4)]
LINES = {"GPU 0, stream 7": {"N": range(4, 14), "C": range(14, 20), "Z": range(30, 31)}, "GPU 0, stream 8": {"n": range(10, 11)},
         "GPU 2, stream 7": {"G": range(40, 60)}}


def add_work(s):
    """Adds work at exact times to the trace's only process. Returns the length of a column."""
    with sqlite3.connect(s.db) as trace:
        process, begin_ns = trace.execute("SELECT process_id, started_ns FROM process").fetchone()
        unit_ns = 1000000
        # The process lives exactly as long as the line is.
        trace.execute("UPDATE process SET ended_ns = started_ns + ?", (COLUMNS * unit_ns,))
        for number, (device, stream, kind, first, length) in enumerate(WORK, 1):
            trace.execute(TASK, (number, process, kind, device, stream))
            trace.execute(RUN, (number, begin_ns + first * unit_ns, round(length * unit_ns)))
    trace.close()
    return begin_ns, unit_ns


def lines_of(s, *options):
    text = s.run(CUDATRACE, "timeline", "--db", s.db, "--width", 100, *options, preload=False).stdout
    return dict(re.findall(r"^  (GPU \d, stream \d) +(\S+)$", text, re.M)), text


with Session() as s:
    s.start_daemon()
    s.run(WORKLOADS / "calls", "--calls", 10)
    s.stop_daemon()
    equal(lines_of(s)[0], {}, "streams without work")
    begin_ns, unit_ns = add_work(s)
    window = ("--from", f"@{begin_ns}", "--to", f"@{begin_ns + COLUMNS * unit_ns}")
    lines, text = lines_of(s, *window)
    wanted = {name: "".join(next((letter for letter, columns in parts.items() if column in columns), ".") for column in range(COLUMNS))
              for name, parts in LINES.items()}
    equal(lines, wanted, "lines of streams")
    order = re.findall(r"^  (\d+|GPU \d, stream \d)", text, re.M)
    equal([line for line in order if line in LINES], order[-len(LINES):], "streams below the threads")
    equal(order[-len(LINES):], list(LINES), "the order of streams")
    check(re.search(r"^.*N kernel", text, re.M), "the legend of", text)
    half = ("--from", f"@{begin_ns + 37 * unit_ns}", "--to", f"@{begin_ns + COLUMNS * unit_ns}")
    equal(lines_of(s, *half)[0], {"GPU 2, stream 7": "." * 6 + "G" * 40 + "." * 28}, "lines of half of the time")
    equal(lines_of(s, *window, "--pid", s.value("SELECT pid FROM processes"))[0], wanted, "lines of the process")
