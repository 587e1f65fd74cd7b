"""Tests that `cudatrace timeline` and `html` draw GPU work at the right times, with a row for each stream. In a browser, the page must
describe the piece of work at a given position. If CUDATRACE_PICTURES names a folder, saves a screenshot there."""
import base64
import json
import os
import pathlib
import re
import sqlite3
import struct
import zlib

from browser import Browser
from cudatrace_test import CUDATRACE, Session, WORKLOADS, can, check, equal
from exact_trace import name_device

COLUMNS = 100 - 26
TASK = "INSERT INTO gpu_task (gpu_task_id, process_id, kind, kernel, device, context, stream, graph, node) VALUES (?, ?, ?, 0, ?, 1, ?, 0, 0)"
RUN = "INSERT INTO gpu_run (gpu_task_id, start_ns, duration_ns, bytes) VALUES (?, ?, ?, 4096)"
# (device, stream, kind, first column, columns), with each column's time as a unit
WORK = [(0, 7, "kernel", 4, 10), (0, 7, "DtoH", 14, 6), (0, 7, "set", 30, 1), (0, 8, "kernel", 10, 0.25), (2, 7, "graph", 40, 20),
        (2, 7, "kernel", 50, 4)]
LINES = {"GPU 0, stream 7": {"N": range(4, 14), "C": range(14, 20), "Z": range(30, 31)}, "GPU 0, stream 8": {"n": range(10, 11)},
         "GPU 2, stream 7": {"G": range(40, 60)}}


def add_work(s):
    """Adds work at exact times to the trace's only process. Returns the process's start and the length of a column, in nanoseconds."""
    with sqlite3.connect(s.db) as trace:
        process, begin_ns = trace.execute("SELECT process_id, started_ns FROM process").fetchone()
        unit_ns = 1000000
        # Set the end of the process so that each column covers exactly one millisecond.
        trace.execute("UPDATE process SET ended_ns = started_ns + ?", (COLUMNS * unit_ns,))
        for number, (device, stream, kind, first, length) in enumerate(WORK, 1):
            name_device(trace, process, device)
            trace.execute(TASK, (number, process, kind, device, stream))
            trace.execute(RUN, (number, begin_ns + first * unit_ns, round(length * unit_ns)))
    trace.close()
    return begin_ns, unit_ns


def lines_of(s, *options):
    text = s.run(CUDATRACE, "timeline", "--db", s.db, "--width", 100, *options, preload=False).stdout
    return dict(re.findall(r"^  (GPU \d, stream \d) +(\S+)$", text, re.M)), text


def page_of(s, *options):
    """Returns a page's path, its JSON object, and its records as [(start, duration, site, calls)]."""
    path = s.dir / "page.html"
    s.run(CUDATRACE, "html", "--db", s.db, "--output", path, *options, preload=False)
    text = path.read_text()
    trace = json.loads(re.search(r'<script id="trace" type="application/json">(.*?)</script>', text, re.S)[1])
    data = zlib.decompress(base64.b64decode(re.search(r'<script id="calls" type="text/plain">(.*?)</script>', text, re.S)[1]))
    n = trace["records"]
    return path, trace, list(zip(*(struct.unpack_from(f"<{n}{kind}", data, offset) for kind, offset in
                                   (("d", 0), ("d", 8 * n), ("I", 16 * n), ("I", 20 * n)))))


def check_page(s, unit_ns):
    path, trace, records = page_of(s)
    seen = []
    for start, duration, site, calls in records:
        thread, lane, name, label, category, layer, _ = trace["sites"][site]
        if trace["threads"][thread]["is_stream"]:
            equal((layer, category, calls), ("gpu", trace["names"][name], 1), "the site of work")
            seen.append((trace["threads"][thread]["name"], lane, category, trace["names"][label], start, duration))
    # The kernel on GPU 2 overlaps the graph, so it is drawn in the second lane.
    labels = {"kernel": "(unknown)", "DtoH": "DtoH"}
    equal(sorted(seen), sorted((f"GPU {device}, stream {stream}", int((device, kind) == (2, "kernel")), kind.replace("DtoH", "copy"),
                                labels.get(kind, ""), first * unit_ns, length * unit_ns) for device, stream, kind, first, length in WORK),
          "work of the page")
    equal(trace["calls"], s.value("SELECT count(*) FROM calls"), "calls of the page")
    return path


def add_samples(s, begin_ns, unit_ns):
    """For each column, adds three samples at almost the same time for each of the two GPUs that did work. The first GPU has no metrics of
    its SMs, and the second GPU does not report its power."""
    with sqlite3.connect(s.db) as trace:
        for gpu_id in (1, 2):
            trace.execute("UPDATE gpu SET name = 'Simulated GPU', place = ? WHERE gpu_id = ?", (gpu_id - 1, gpu_id))
            for column in range(COLUMNS):
                for more in range(3):
                    trace.execute("INSERT INTO gpu_sample (time_ns, gpu_id, busy_percent, memory_used_bytes, power_mw, sm_busy_ppm, dram_ppm, tensor_ppm) "
                                  "VALUES (?, ?, ?, ?, ?, ?, ?, 1)",
                                  (begin_ns + column * unit_ns + more, gpu_id, column + more, gpu_id * 10**9, 250000 if gpu_id == 1 else None,
                                   10000 * (column + more) if gpu_id == 2 else None, 205000 if gpu_id == 2 else None))
    trace.close()


def check_gpus(s, begin_ns, unit_ns):
    """Checks that samples whose times are indistinguishable on the page are combined into one point, which has the mean of their values."""
    counters = ["busy (%)", "memory used (bytes)", "power (W)", "SMs busy (%)", "memory traffic (%)"]
    equal(page_of(s)[1]["gpus"],
          [{"name": f"GPU {gpu}: Simulated GPU", "counters": counters,
            "points": [[column * unit_ns + 2, column + 1, (gpu + 1) * 10**9] + ([250, None, None] if gpu == 0 else [None, column + 1, 21]) for column in range(COLUMNS)]}
           for gpu in range(2)], "samples of GPUs")
    part = page_of(s, "--from", f"@{begin_ns + 10 * unit_ns}", "--to", f"@{begin_ns + 20 * unit_ns - 1}")[1]["gpus"]
    equal([len(gpu["points"]) for gpu in part], [10, 10], "samples in a window")


def check_browser(s, path, unit_ns):
    with Browser() as b:
        b.show(path)
        equal(b.errors(), [], "what the console says")
        equal(b.run("return window.cudatrace.timeline.lanes.filter((l) => l.thread?.is_stream).map((l) => l.title)"),
              ["GPU 0, stream 7", "GPU 0, stream 8", "GPU 2, stream 7", ""], "rows of streams")
        at = ("const t = window.cudatrace.timeline, l = t.lanes.find((l) => l.title === arguments[0]); const found = t.callAt(190 + arguments[1] / "
              "t.length * (t.width - 190), l.y + 8 - t.tracks.scrollTop); return found && t.describe(found)")
        pid = s.value("SELECT pid FROM processes")
        equal(b.run(at, "GPU 0, stream 7", 17 * unit_ns), f"copy\nDtoH\nfrom 14 ms, 6 ms\nprocess {pid}, GPU 0, stream 7", "a copy")
        equal(b.run(at, "GPU 0, stream 8", 20 * unit_ns), None, "an idle stream")
        describe = "const g = window.cudatrace.gpus; return g.describeAt(190 + arguments[1] / g.timeline.length * (g.timeline.width - 190), " \
            "g.rows.filter((r) => r.values)[arguments[0]].y + 5)"
        equal([b.run(describe, row, 30 * unit_ns) for row in range(7)],
              ["busy: 31 %\nat 30 ms", "memory used: 1 GB\nat 30 ms", "power: 250 W\nat 30 ms", "busy: 31 %\nat 30 ms", "memory used: 2 GB\nat 30 ms",
               "SMs busy: 31 %\nat 30 ms", "memory traffic: 21 %\nat 30 ms"],
              "samples at a time")
        check("kernel" in b.run("return document.getElementById('legend').textContent"), "the legend")
        if "CUDATRACE_PICTURES" in os.environ:
            b.screenshot(pathlib.Path(os.environ["CUDATRACE_PICTURES"]) / "gpu-work.png", "#legend", "#tracks")


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
    equal(page_of(s)[1]["gpus"], [], "GPUs without samples")
    add_samples(s, begin_ns, unit_ns)
    check_gpus(s, begin_ns, unit_ns)
    path = check_page(s, unit_ns)
    if can("chromedriver", "the page in a browser"):
        check_browser(s, path, unit_ns)
