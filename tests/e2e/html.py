"""Tests that the page made by `cudatrace html` contains the trace's calls, and that a headless Chromium displays the page. The page must be
able to zoom, pan, describe calls, highlight, sort and filter when it is opened from a file, without a network. CUDATRACE_PICTURES names a
folder for screenshots."""
import atexit
import base64
import contextlib
import json
import lzma
import os
import pathlib
import re
import shutil
import struct
import zlib

from browser import Browser
from cudatrace_test import CUDATRACE, Session, TIER, WORKLOADS, by_tier, can, check, equal, wait_for

FIXTURE = pathlib.Path(__file__).resolve().parents[1] / "fixtures" / "h200-training.db.xz"
LEVELS = 8
# One browser shows all pages.
browsers = contextlib.ExitStack()
atexit.register(browsers.close)
b = browsers.enter_context(Browser()) if can("chromedriver", "the page in a browser") else None


def page(s, *options, name="page.html"):
    path = s.dir / name
    s.run(CUDATRACE, "html", "--db", s.db, "--output", path, *options, preload=False)
    return path


def parts(path):
    """Returns (a page's JSON object, its records as [(start, duration, site, number of calls)], its whole text)."""
    text = path.read_text()
    trace = json.loads(re.search(r'<script id="trace" type="application/json">(.*?)</script>', text, re.S)[1])
    packed = re.search(r'<script id="calls" type="text/plain">(.*?)</script>', text, re.S)[1]
    data = zlib.decompress(base64.b64decode(packed)) if packed else b""
    n = trace["records"]
    equal(len(data), 24 * n, "bytes of calls")
    columns = [struct.unpack_from(f"<{n}{kind}", data, offset) for kind, offset in (("d", 0), ("d", 8 * n), ("I", 16 * n), ("I", 20 * n))]
    return trace, list(zip(*columns)), text


def check_calls(s, trace, records, condition="1"):
    """Checks that the page contains each call exactly once, with its thread, depth, name and label."""
    begin_ns = s.value("SELECT min(started_ns) FROM processes")
    seen = []
    for start, duration, site, calls in records:
        thread, depth, name, label, category, layer, status = trace["sites"][site]
        equal(calls, 1, "calls drawn as one")
        seen.append((int(start), int(duration), trace["threads"][thread]["tid"], depth, trace["names"][name], trace["names"][label],
                     category, layer, status))
    equal(seen, sorted(seen, key=lambda row: row[0]), "the order of calls")
    wanted = s.rows(
        f"SELECT start_ns - {begin_ns}, duration_ns, tid, min(depth, {LEVELS - 1}), name, ifnull((SELECT kernel FROM launches WHERE "
        f"launches.call_id = calls.call_id AND calls.layer = 'driver'), iif(layer = 'nvtx', ifnull(message, ''), '')), category, layer, "
        f"iif(status = 0, '', status_name) FROM calls WHERE {condition}")
    equal(sorted(seen), sorted(wanted), "calls of the page")


with Session() as s:
    s.db.write_bytes(lzma.decompress(FIXTURE.read_bytes()))
    path = page(s)
    trace, records, text = parts(path)
    check_calls(s, trace, records)
    whole_trace = trace
    check(not re.search(r"(src|href)\s*=\s*[\"']?(https?:)?//|@import|url\((?!data:)", text), "the page asks a network")
    equal((trace["calls"], trace["resolution_ns"], trace["lost"]), (len(records), 0, 0), "sums")
    equal([(p["pid"], p["name"]) for p in trace["processes"]],
          s.rows("SELECT pid, cmdline || ' (' || pid || ', ' || state || ')' FROM processes"), "processes")
    equal({name: sum(buckets.values()) for name, buckets in trace["durations"].items()},
          dict(s.rows("SELECT name, count(*) FROM calls WHERE layer <> 'nvtx' GROUP BY name")), "durations")
    report = s.report()
    for section in trace["sections"]:
        if section["name"] not in report:  # the fixture lacks its view
            check("left out: the trace was written by an older cudatrace" in section["problem"] and not section["rows"], section)
        else:
            equal((section["problem"], section["rows"]), ("", report[section["name"]]), section["name"])
    equal(max(held for m in trace["memory"] for _, held in m["points"]),
          s.value("SELECT max(bytes) FROM (SELECT sum(bytes) OVER (ORDER BY at) AS bytes FROM (SELECT allocated_ns AS at, bytes FROM "
                  "allocations WHERE kind = 'device' UNION ALL SELECT freed_ns, -bytes FROM allocations WHERE kind = 'device' AND "
                  "freed_ns IS NOT NULL))"), "the most memory")
    middle = s.rows("SELECT min(call_id), max(call_id) FROM (SELECT call_id FROM calls ORDER BY call_id LIMIT 1000 OFFSET 5000)")[0]
    trace, records, _ = parts(page(s, "--from", f"@{middle[0]}", "--to", f"@{middle[1]}", "--layers", "driver,runtime", name="part.html"))
    check_calls(s, trace, records, f"call_id BETWEEN {middle[0]} AND {middle[1]} AND layer IN ('driver', 'runtime')")

    if b:
        b.show(path)
        equal((b.run("return document.getElementById('problem').hidden"), b.errors()), (True, []), "problems")
        equal(b.run("return document.getElementById('bottleneck').textContent"), report["bottleneck"][0]["paragraph"], "the verdict")
        # The bar has a segment for each part of the run. The segment's width is proportional to the part's share of the time. The legend
        # shows the names of the parts in the same colours.
        bar, legend = b.run("const of = (selector) => [...document.querySelectorAll(selector)], colour = (e) => getComputedStyle(e).backgroundColor; return ["
                            "of('#parts i').map((e) => [e.title, e.getBoundingClientRect().width, colour(e)]), "
                            "of('#parts-legend li').map((e) => [e.textContent, colour(e.querySelector('i'))])]")
        values = [(row["part"], b.run("return time(arguments[0] * 1e9, 4)", row["seconds"]) + f", {row['%_of_run']:.1f} %")
                  for row in report["bottleneck"]]
        equal([title for title, _, _ in bar], [f"{part}: {value}" for part, value in values], "the bar")
        equal(legend, [[part + value, colour] for (part, value), (_, _, colour) in zip(values, bar)], "the legend")
        equal(len({colour for _, _, colour in bar}), len(bar), "colours")
        per_percent = sum(width for _, width, _ in bar) / 100
        for (part, _), (_, width, _), row in zip(values, bar, report["bottleneck"]):
            check(abs(width - per_percent * row["%_of_run"]) <= 10, part, "is", width, "wide, for", row["%_of_run"], "%")
        # Check that the timeline contains the colours of ranges, modules and launches.
        drawn = b.run("const c = document.getElementById('canvas'), d = c.getContext('2d').getImageData(0, 0, c.width, c.height).data, "
                      "seen = {}; for (let i = 0; i < d.length; i += 4) if (d[i + 3] === 255) { const k = d[i] + ',' + d[i+1] + ',' + d[i+2]; "
                      "seen[k] = (seen[k] || 0) + 1; } return seen")
        for colour in ("91,110,225", "194,87,127", "42,157,78"):  # range, module, launch
            check(drawn.get(colour, 0) > 50, "hardly drawn", colour, sorted(drawn.items(), key=lambda e: -e[1])[:20])
        b.run("document.getElementById('timeline').scrollIntoView()")

        def window():
            return b.run("return [window.cudatrace.timeline.from, window.cudatrace.timeline.to]")

        canvas = b.find("#canvas")
        origin = {"element-6066-11e4-a52e-4f735466cecf": canvas}
        whole = window()
        b.act({"type": "scroll", "x": 0, "y": -60, "deltaX": 0, "deltaY": -600, "origin": origin})
        zoomed = wait_for("a zoom", lambda: (w := window()) != whole and w)
        check(zoomed[1] - zoomed[0] < (whole[1] - whole[0]) * 0.8 and whole[0] <= zoomed[0] < zoomed[1] <= whole[1], "zoomed", whole, zoomed)
        b.act({"type": "pointerMove", "x": 0, "y": -60, "origin": origin}, {"type": "pointerDown", "button": 0},
              {"type": "pointerMove", "x": 200, "y": -60, "origin": origin}, {"type": "pointerUp", "button": 0})
        moved = wait_for("a move", lambda: (w := window()) != zoomed and w)
        check(moved[0] < zoomed[0] and abs((moved[1] - moved[0]) - (zoomed[1] - zoomed[0])) < 1, "moved", zoomed, moved)
        b.run("window.cudatrace.timeline.setWindow(arguments[0], arguments[1])", *whole)
        equal(window(), whole, "all of it again")
        # Click on the middle of the longest range, whose position on the screen is computed with the page's own functions.
        start_ns, end_ns, message, tid = s.rows("SELECT start_ns, end_ns, message, tid FROM ranges ORDER BY duration_ns DESC LIMIT 1")[0]
        at = (start_ns + end_ns) / 2 - s.value("SELECT min(started_ns) FROM processes")
        x, y = b.run("const t = window.cudatrace.timeline, l = t.lanes.find((l) => l.thread && l.thread.tid === arguments[1]); "
                     "return [190 + (arguments[0] - t.from) / (t.to - t.from) * (t.width - 190) - t.width / 2, l.y + 8 - t.tracks.scrollTop - t.view / 2]", at, tid)
        b.act({"type": "pointerMove", "x": round(x), "y": round(y), "origin": origin}, {"type": "pointerDown", "button": 0},
              {"type": "pointerUp", "button": 0})
        said = wait_for("what a call says", lambda: b.run("const d = document.getElementById('details'); return d.hidden ? '' : d.textContent"))
        check(message in said and "nvtx, range" in said and f"thread {tid}" in said, "a click on", message, "says", said)
        b.type("#find", "forward")
        lit = b.run("const t = window.cudatrace.timeline; return t.trace.sites.filter((s, i) => t.wanted[i]).map((s) => t.trace.names[s[3]])")
        equal(sorted(set(lit)), sorted(name for name in whole_trace["names"] if "forward" in name), "what is highlighted")

        # Check the rows of a table: at first in the report's order, then sorted by calls in both directions, and then filtered.
        cells = ("return [...document.querySelectorAll('#section-functions tbody tr:not([hidden])')].map((row) => "
                 "[row.cells[0].textContent, Number(row.cells[2].textContent.replaceAll(',', ''))])")
        equal([row[0] for row in b.run(cells)], [row["function"] for row in report["functions"]], "functions as the report has them")
        head = "#section-functions th:nth-child(3)"
        equal(b.run(f"return document.querySelector('{head}').textContent"), "calls", "the third column")
        for wanted in (sorted((row["calls"] for row in report["functions"]), reverse=True), sorted(row["calls"] for row in report["functions"])):
            b.run(f"document.querySelector('{head}').scrollIntoView({{ block: 'center' }})")
            b.click(head)
            equal([row[1] for row in b.run(cells)], wanted, "sorted by calls")
        b.type("#filter", "cuLaunch")
        equal(sorted(row[0] for row in b.run(cells)), sorted(row["function"] for row in report["functions"] if "culaunch" in
                                                             "\n".join(map(str, row.values())).lower()), "filtered")
        equal(b.errors(), [], "what the console says")
        if "CUDATRACE_PICTURES" in os.environ:
            b.type("#filter", "\ue003" * 8)
            for section in "summary", "timeline", "memory", "tables":
                b.run("document.getElementById(arguments[0]).scrollIntoView()", section)
                b.screenshot(pathlib.Path(os.environ["CUDATRACE_PICTURES"]) / f"page-{section}.png")
            # docs/pictures/timeline.png shows two steps of the training run.
            b.resize(1000, 1500, scale=2)
            b.show(page(s, "--from", "0.7226", "--to", "0.7296", name="steps.html"))
            b.screenshot(pathlib.Path(os.environ["CUDATRACE_PICTURES"]) / "timeline.png", "#legend", "#tracks")
        for width in by_tier((380,), (380, 2400)):
            b.resize(width, 340)
            b.show(path)
            equal(b.errors(), [], f"what the console says at {width}")
            check(b.run("return [...document.querySelectorAll('#parts i')].every((e) => e.getBoundingClientRect().width >= 2)"), "a part is not seen", width)
            check(b.run("return document.documentElement.scrollWidth <= document.documentElement.clientWidth"), "wider than the window", width)
            # The last thread is initially out of view, but can be scrolled into view.
            last = ("const t = window.cudatrace.timeline, l = t.lanes[t.lanes.length - 1], c = l.index[0], y = l.y + 8 - t.tracks.scrollTop; "
                    "return [y < t.view, t.callAt(190 + t.calls.start[c] / t.length * (t.width - 190), y)?.lane === l]")
            check(not b.run(last)[0], "all threads are seen at once")
            b.run("window.cudatrace.timeline.tracks.scrollTop = 1e6")
            equal(b.run(last), [True, True], "the last thread")

    done = s.run(CUDATRACE, "html", "--db", s.db, "--output", s.dir / "none.html", "--from", "1h", preload=False)
    check("html: no calls in this window: the trace lasts 1.496 seconds" in done.stderr, done.stderr)
    check(parts(s.dir / "none.html")[0]["calls"] == 0, "a page of no call")
    done = s.run(CUDATRACE, "html", "--db", s.db, "--pid", 1, preload=False, status=1)
    check("html: the trace has no process 1" in done.stderr, done.stderr)

# Test a process name that could inject markup, and more calls than the page can draw individually.
with Session() as s:
    s.start_daemon()
    evil = s.dir / "<script>alert(1)<script>&\"'\u202e"
    shutil.copy(WORKLOADS / "calls", evil)
    s.run(evil, "--calls", 10)

    def are_many():
        s.run(WORKLOADS / "calls", "--calls", 350000, "--mix", "getctx")
        s.flush()
        return s.value("SELECT count(*) FROM calls") > 1 << 20

    if TIER == "short":
        s.flush()
    else:
        wait_for("more than a million calls", are_many)
    path = page(s)
    trace, records, text = parts(path)
    check(any(evil.name in p["name"] for p in trace["processes"]) and evil.name not in text, "the name, and how it is written")
    check((trace["resolution_ns"] > 0 or TIER == "short") and len(records) <= 1 << 20, "records", len(records), trace["resolution_ns"])
    equal(sum(row[3] for row in records), s.value("SELECT count(*) FROM calls"), "calls of all records")
    equal(sum(sum(buckets.values()) for buckets in trace["durations"].values()), s.value("SELECT count(*) FROM calls"), "durations")
    if b:
        b.resize(1400, 1000)
        b.show(path)
        equal((b.errors(), b.run("return document.querySelectorAll('script').length")), ([], 7), "problems, and scripts")

# Test a trace that has no calls. Also test invalid options.
with Session() as s:
    s.start_daemon()
    done = s.cudatrace("html", "--output", s.dir / "empty.html")
    check("the trace has no calls yet" in done.stderr, done.stderr)
    if b:
        b.show(s.dir / "empty.html")
        equal((b.errors(), b.run("return document.getElementById('problem').hidden")), ([], True), "an empty page")
    for options, status, says in ((("--output", s.dir / "none" / "x.html"), 1, "html: cannot write"), (("--format", "csv"), 2, "--format"),
                                  (("--pid", "x"), 2, "html: invalid value 'x' for --pid"), (("more",), 2, "see cudatrace html --help")):
        check(says in (done := s.cudatrace("html", *options, status=status)).stderr, options, done.stderr)
