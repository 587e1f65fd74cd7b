"""Tests the charts of `cudatrace html`, drawn by dygraphs. The memory chart is a step chart. Each step keeps its last, highest and lowest
values. Zooming the memory chart also zooms the timeline, and vice versa. The durations of calls are shown as a histogram. If a page is made
for a window, it contains only that window's data. A page made without dygraphs reports that the library is missing, but contains everything
else."""
import contextlib
import json
import lzma
import random
import re
import sqlite3
import subprocess
import sys

from browser import Browser
from cudatrace_test import CUDATRACE, SOURCE, Session, can, check, equal, wait_for

FIXTURE = SOURCE / "tests/fixtures/h200-training.db.xz"
PARTS = SOURCE / "tools/cli/html"
STEPS, MIB = 2000, 1 << 20
AT_TRACK = "return document.getElementById('memory-chart').querySelector('.chart').getBoundingClientRect().toJSON()"


def page(s, *options, name="page.html"):
    path = s.dir / name
    s.run(CUDATRACE, "html", "--db", s.db, "--output", path, *options, preload=False)
    text = path.read_text()
    return path, text, json.loads(re.search(r'<script id="trace" type="application/json">(.*?)</script>', text, re.S)[1])


def add_rows(s):
    """Adds far more changes of allocated memory than the chart has steps. Also adds losses before the window, across the window's border,
    and inside the window."""
    random.seed(13)
    process_id, begin_ns, end_ns = s.rows("SELECT process_id, started_ns, (SELECT max(call_id) FROM calls) FROM processes")[0]
    with contextlib.closing(sqlite3.connect(s.db)) as db, db:
        moments = sorted(random.sample(range(begin_ns + 1, end_ns), 20000))
        for i in range(0, len(moments), 2):
            db.execute("INSERT OR IGNORE INTO allocation VALUES (?, ?, 'device', ?, ?, ?, NULL, 1)",
                       (moments[i], process_id, i, random.randrange(1, 64) * MIB, moments[min(i + random.randrange(1, 9), len(moments) - 1)]))
        segment_id = db.execute("SELECT min(segment_id) FROM segment").fetchone()[0]
        for lane, (calls, from_s, to_s) in enumerate(((1, 0.1, 0.2), (20, 0.4, 0.6), (300, 0.5, 0.6))):
            db.execute("INSERT INTO loss VALUES (?1, ?2, 1, ?2, 'full', ?3, ?4, ?5)",
                       (segment_id, 1000 + lane, calls, begin_ns + int(from_s * 1e9), begin_ns + int(to_s * 1e9)))
    return begin_ns, end_ns


def held_over_time(s):
    """Returns the amount of device memory that the process held over time, as [(time, bytes)]."""
    return s.rows("SELECT at, sum(bytes) OVER (ORDER BY at) FROM (SELECT at, sum(bytes) AS bytes FROM (SELECT allocated_ns AS at, bytes "
                  "FROM allocations WHERE kind = 'device' UNION ALL SELECT ifnull(freed_ns, (SELECT ended_ns FROM processes)), -bytes "
                  "FROM allocations WHERE kind = 'device') GROUP BY at)")


def check_memory(points, held, begin_ns, end_ns):
    step_ns = (end_ns - begin_ns) // STEPS + 1
    steps, seen = {}, {}
    for at, value in held:
        steps.setdefault((at - begin_ns) // step_ns, []).append(value)
    for at, value in points:
        seen.setdefault(at // step_ns, []).append(value)
    equal([(step, max(v), min(v), v[-1]) for step, v in sorted(seen.items())],
          [(step, max(v), min(v), v[-1]) for step, v in sorted(steps.items())], "most, least and last of each step")
    check(max(map(len, seen.values())) <= 3, "a step has more points")
    check(set(map(tuple, points)) <= {(at - begin_ns, value) for at, value in held}, "points that never were")
    equal(points, sorted(points), "the order of the points")


def page_without_charts(page_with, path):
    """Makes the page that a build without the charting library would make: uses the same build step, and the data of an existing page."""
    header = path.with_suffix(".h")
    subprocess.run([sys.executable, PARTS / "make_page.py", header, *(PARTS / part for part in ("page.html", "page.css", "charts.js", "gpus.js", "page.js"))],
                   check=True)
    head, tail = (bytes(map(int, re.findall(r"\d+", body))) for body in re.findall(r"\{\n(.*?)\n\};", header.read_text(), re.S))
    data = re.search(rb'<script id="trace".*?</script>\n<script id="calls".*?</script>\n', page_with.read_bytes(), re.S)[0]
    path.write_bytes(head + data + tail)


def open_page(b, path):
    b.show(path)
    equal((b.run("return document.getElementById('problem').hidden"), b.errors()), (True, []), "problems")


def windows(b):
    return b.run("const c = window.cudatrace; return [[c.timeline.from, c.timeline.to], c.memory.xAxisRange()]")


def equal_windows(b, differs_from):
    """Waits until the timeline and the chart have both changed to the same new window. Returns that window."""
    found = wait_for("both to follow", lambda: (w := windows(b)) and w[0] == w[1] and w[0] != differs_from and w)
    return found[0]


def check_zoom(b, trace):
    length = trace["end_ns"] - trace["begin_ns"]
    whole = windows(b)
    equal(whole, [[0, length]] * 2, "windows at first")
    b.run("document.getElementById('memory-chart').scrollIntoView({ block: 'center' })")
    box = b.run(AT_TRACK)
    left, right = b.run("const m = window.cudatrace.memory; return [m.toDomXCoord(arguments[0]), m.toDomXCoord(arguments[1])]",
                        length / 4, length / 2)
    y = round(box["y"] + box["height"] / 2)
    b.act({"type": "pointerMove", "x": round(box["x"] + left), "y": y}, {"type": "pointerDown", "button": 0},
          {"type": "pointerMove", "x": round(box["x"] + right), "y": y}, {"type": "pointerUp", "button": 0})
    zoomed = equal_windows(b, whole[0])
    check(abs(zoomed[0] - length / 4) < length / 200 and abs(zoomed[1] - length / 2) < length / 200, "zoomed to", zoomed, "of", length)
    b.run("window.cudatrace.timeline.setWindow(arguments[0], arguments[1])", length * 0.3, length * 0.31)
    moved = equal_windows(b, zoomed)
    equal(moved, [length * 0.3, length * 0.31], "the timeline's window")
    # At this zoom level, the chart has a point for every change of the memory. When the whole run is shown, the chart has only as many
    # points as it can show.
    rows = "const m = window.cudatrace.memory; return Array.from({ length: m.numRows() }, (_, i) => [m.getValue(i, 0), m.getValue(i, 1)])"
    near = b.run(rows)
    points = trace["memory"][0]["points"]
    equal(near[1:-1], [point for point in points if moved[0] < point[0] <= moved[1]], "points of a part")
    equal(near[0], [moved[0], [held for at, held in points if at <= moved[0]][-1]], "what was held before it")
    b.run("document.querySelector('#memory-chart canvas:last-of-type').dispatchEvent(new MouseEvent('dblclick', { bubbles: true }))")
    equal(equal_windows(b, moved), whole[0], "all of it again")
    far = b.run(rows)
    check(len(far) < len(points) and len(far) <= 3 * box["width"] + 4, "rows from afar", len(far))
    equal((max(held for _, held in far), min(held for _, held in far[10:-10])),
          (max(held for _, held in points), min(held for at, held in points if far[10][0] <= at <= far[-10][0])), "most and least from afar")
    # Zoom in on a part of the vertical axis, and zoom out again.
    high = b.run("return window.cudatrace.memory.yAxisRange()")
    x = round(box["x"] + box["width"] / 2)
    b.act({"type": "pointerMove", "x": x, "y": y - 40}, {"type": "pointerDown", "button": 0}, {"type": "pointerMove", "x": x, "y": y + 40},
          {"type": "pointerUp", "button": 0})
    part = wait_for("a part of the height", lambda: (r := b.run("return window.cudatrace.memory.yAxisRange()")) != high and r)
    check(high[0] < part[0] < part[1] < high[1], "a part of the height", part, high)
    b.run("document.querySelector('#memory-chart canvas:last-of-type').dispatchEvent(new MouseEvent('dblclick', { bubbles: true }))")
    wait_for("all of the height", lambda: b.run("return window.cudatrace.memory.yAxisRange()") == high)
    # Pointing at the chart shows the memory that each process held at that time. Clicking on a process removes its line from the chart.
    at = length * 0.7
    x = b.run("return window.cudatrace.memory.toDomXCoord(arguments[0])", at)
    b.act({"type": "pointerMove", "x": round(box["x"] + x), "y": y + 9})
    said = wait_for("the values", lambda: b.run("return document.querySelector('#memory-chart .series').innerText.trim().split(/\\s*\\n\\s*/)[0]"))
    check(re.match(r"[\d.]+ (ms|s)", said), "what is said of a moment", said)
    check(f"process {trace['processes'][0]['pid']}" in b.run("return document.querySelector('#memory-chart .series').innerText"), "a name")
    b.click("#memory-chart .series button")
    equal(b.run("return window.cudatrace.memory.visibility()"), [False], "hidden")


def check_histogram(b, s, trace):
    for name in "cuLaunchKernel", "cuCtxGetDevice_v2":
        b.run("const f = document.getElementById('function'); f.value = arguments[0]; f.dispatchEvent(new Event('change'))", name)
        equal(b.run("return document.getElementById('function-facts').textContent"),
              f"{s.value('SELECT count(*) FROM calls WHERE name = ?', name):,} calls", "how many")
        rows = b.run("const d = window.cudatrace.durations; return Array.from({ length: d.numRows() }, (_, i) => [d.getValue(i, 0), d.getValue(i, 1)])")
        equal({str(bucket): calls for bucket, calls in rows if calls}, trace["durations"][name], f"bars of {name}")
    # Check that the highest bar of the histogram reaches from the axis to its bucket's number of calls.
    bucket, most = max(rows, key=lambda row: row[1])
    colours = b.run("const d = window.cudatrace.durations, c = document.querySelector('#durations-chart canvas'), x = d.toDomXCoord(arguments[0] + 0.5), "
                    "column = c.getContext('2d').getImageData(x, 0, 1, c.height).data; "
                    "return [0.02, 0.98, 1.02].map((part) => column[4 * Math.round(d.toDomYCoord(arguments[1] * part)) + 3])", bucket, most)
    check(colours[0] > 100 and colours[1] > 100 and colours[2] < 100, "the highest bar", colours)


def check_looks(b, width, colours):
    check(b.run("return document.documentElement.scrollWidth <= document.documentElement.clientWidth"), "wider than the window", width)
    fore, back = b.run("const sum = (e, p) => getComputedStyle(e)[p].match(/\\d+/g).slice(0, 3).reduce((a, n) => a + Number(n), 0); "
                       "return [sum(document.querySelector('.dygraph-axis-label'), 'color'), sum(document.body, 'backgroundColor')]")
    check(abs(fore - back) > 200 and (back < 200) == (colours == "dark"), "the axis on its background", colours, fore, back)
    if width > 1000:
        chart, timeline = b.run("const c = window.cudatrace, a = c.memory.getArea(), left = (e) => e.getBoundingClientRect().left; "
                                "return [[left(document.querySelector('#memory-chart .chart')) + a.x, a.w], "
                                "[left(c.timeline.canvas) + 190, c.timeline.width - 190]]")
        check(abs(chart[0] - timeline[0]) < 3 and abs(chart[1] - timeline[1]) < 4, "the chart, below the timeline", chart, timeline)


with Session() as s:
    s.db.write_bytes(lzma.decompress(FIXTURE.read_bytes()))
    begin_ns, end_ns = add_rows(s)
    path, text, trace = page(s)
    check_memory(trace["memory"][0]["points"], held_over_time(s), trace["begin_ns"], trace["end_ns"])

    # A page made for a window shows the sums for that window. If a period of losses extends across the window's border, it is unknown how
    # many of the calls were lost inside the window.
    from_ns, to_ns = begin_ns + 450000000, begin_ns + 700000000
    windowed, _, part = page(s, "--from", f"@{from_ns}", "--to", f"@{to_ns}", name="part.html")
    equal(part["window"], [from_ns - trace["begin_ns"], to_ns - trace["begin_ns"]], "the window")
    equal(part["failed"], s.value("SELECT count(*) FROM calls WHERE call_id BETWEEN ? AND ? AND status NOT IN (0, 600) AND layer IN "
                                  "('driver', 'runtime')", from_ns, to_ns), "failed in the window")
    check(0 < part["failed"] < trace["failed"], "failed", part["failed"], trace["failed"])
    equal((part["lost"], part["lost_at_most"]), (300, 320), "lost in the window")
    equal((trace["lost"], trace["lost_at_most"], trace["window"]), (0, 0, None), "lost by the sums, in which none was added")
    held = held_over_time(s)
    equal(part["memory"][0]["points"][0], [from_ns - trace["begin_ns"], [value for at, value in held if at < from_ns][-1]], "held at its beginning")

    has_charts = 'VERSION="2.' in text
    plain = s.dir / "plain.html"
    page_without_charts(path, plain)
    equal(has_charts, "Permission is hereby granted" in text, "the library, and its licence")
    check("Permission is hereby granted" not in plain.read_text(), "a licence of what is not there")
    if can("chromedriver", "a page without charts in a browser"):
        with Browser() as b:
            open_page(b, plain)
            for chart in "memory-chart", "durations-chart":
                said = b.run("return document.getElementById(arguments[0]).innerText", chart)
                check(said.startswith("No chart: this cudatrace was built without dygraphs") and "\n" not in said, chart, "says", said)
            check(b.run("return document.querySelectorAll('#sections table').length") > 10, "tables")
            check(b.run("return document.getElementById('canvas').height") > 100, "the timeline")
            check("dygraphs" not in b.run("return document.getElementById('made').textContent"), "what made the charts")
            if has_charts:
                open_page(b, path)
                check("Charts by dygraphs 2." in b.run("return document.getElementById('made').textContent"), "what made the charts")
                check_zoom(b, trace)
                check_histogram(b, s, trace)
                equal(b.errors(), [], "what the console says")
                open_page(b, windowed)
                equal(windows(b), [part["window"]] * 2, "a page of a window begins with it")
                tiles = b.run("return Object.fromEntries([...document.querySelectorAll('.tile')].map((t) => [t.children[1].textContent, t.children[0].textContent]))")
                equal((tiles["failed calls"], tiles["lost calls"], tiles["time"]), (str(part["failed"]), "300 to 320", "250 ms"), "tiles")
                b.run("window.cudatrace.timeline.setWindow(0, arguments[0])", from_ns - trace["begin_ns"] - 1)
                equal_windows(b, part["window"])
                equal(b.run("const m = window.cudatrace.memory; return m.getValue(0, 1)"), None, "before the window nothing is known")
                for width, colours in (380, "light"), (1400, "dark"), (2400, "light"):
                    b.resize(width, 900, colours)
                    open_page(b, path)
                    check_looks(b, width, colours)

# Test which files the build accepts as the charting library.
with Session() as s:
    for name, content, says in (("none.js", None, "cannot be read"), ("other.js", "var x = 1;", "is no dygraphs"),
                                ("old.js", 'Dygraph.VERSION="1.1.1"; stepPlot', "is dygraphs 1.1.1, and neither"),
                                ("new.js", 'Dygraph.VERSION="3.0.0"; stepPlot', "is dygraphs 3.0.0, and neither"),
                                ("bare.js", 'Dygraph.VERSION="2.2.1"; stepPlot', "no licence beside it")):
        if content:
            (s.dir / name).write_text(content)
        done = s.run(sys.executable, PARTS / "charts.py", s.dir / name, preload=False, status=1)
        check(says in done.stderr and done.stdout == "", name, done.stderr)
    (s.dir / "LICENSE.txt").write_text("Permission is hereby granted, …")
    equal(s.run(sys.executable, PARTS / "charts.py", s.dir / "bare.js", preload=False).stdout, f"2.2.1\n{s.dir}/LICENSE.txt\n", "its version and licence")
