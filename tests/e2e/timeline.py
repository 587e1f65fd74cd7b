"""Tests that `cudatrace timeline` draws phases, an idle gap and a call that never returned in the columns that match their times. Tests
coloured output on terminals of various widths, and output without colours on pipes."""
import json
import lzma
import pathlib
import re
import time

from cudatrace_test import CUDATRACE, HungCall, Session, WORKLOADS, can, check, equal, on_terminal, wait_for

FIXTURE = pathlib.Path(__file__).resolve().parents[1] / "fixtures" / "h200-training.db.xz"
LABEL = 26


def timeline(s, *options, status=0):
    return s.run(CUDATRACE, "timeline", "--db", s.db, *options, preload=False, status=status)


def rows_of(text):
    """Returns {tid: letters}."""
    return {int(tid): letters for tid, letters in re.findall(r"^  (\d+) \S*…? +(\S+)$", text, re.M)}


# Draw a job with known phases. All columns within a phase must show the phase's letter.
with Session() as s:
    s.start_daemon()
    child = s.start(WORKLOADS / "scripted", "--launches", 2000, "--idle-ms", 300, stdout=-1, text=True, env={
        "SIMCUDA_LATENCY": "cuModuleLoadData=60000000,cuMemcpyHtoD_v2=20000000,cuStreamSynchronize=10000000,cuMemcpyDtoH_v2=20000000"})
    begun, idle = {}, None
    for kind, *rest in map(str.split, child.communicate()[0].splitlines()):
        if kind == "phase":
            begun[rest[0]] = int(rest[1])
        else:
            idle = tuple(map(int, rest))
    with HungCall(s, "--calls", 10, stdout=-3) as hung:
        s.flush()
        start_ns = s.value("SELECT min(start_ns) FROM open_calls WHERE name = 'cuCtxSynchronize'")
        begun_ns = s.value("SELECT min(started_ns) FROM processes")
        wait_for("an open call of some columns", lambda: time.monotonic_ns() - start_ns > (start_ns - begun_ns) / 10)
    s.flush()
    from_ns, to_ns = s.value("SELECT min(started_ns) FROM processes"), max(
        s.value("SELECT max(call_id) FROM calls"), s.value("SELECT max(ended_ns) FROM processes"))

    times = s.rows("SELECT start_ns, call_id, category FROM calls WHERE layer = 'driver' AND tid = ?", child.pid)

    def is_mostly(category, begin_ns, end_ns):
        """Returns whether the calls of the given category took more time in the period than all other calls."""
        spent = [(min(done, end_ns) - max(start, begin_ns), of) for start, done, of in times if start < end_ns and done > begin_ns]
        inside = sum(ns for ns, of in spent if of == category)
        return inside > 1000 and inside > sum(ns for ns, of in spent if of != category)

    def columns(letters, begin_ns, end_ns, window=(from_ns, to_ns), category=None):
        """Returns the letters of the columns within a period. If a category is given, returns only the columns that are mostly covered by
        calls of this category, because the program may have waited for a processor between calls."""
        width = (window[1] - window[0]) / len(letters)
        within = [(letter, window[0] + i * width, window[0] + (i + 1) * width) for i, letter in enumerate(letters)]
        return [letter for letter, begin, end in within if begin >= begin_ns and end <= end_ns and
                (category is None or is_mostly(category, begin, end))]

    for width in (80, 200):
        rows = rows_of(timeline(s, "--width", width).stdout)
        letters = rows[child.pid]
        equal(len(letters), width - LABEL, "columns")
        for what, category, begin_ns, end_ns in (
                ("O", "module", begun["load"], begun["preparation"]), (".", None, *idle),
                ("C", "copy", begun["preparation"], begun["execution"]), ("C", "copy", begun["retrieval"], begun["end"])):
            found = columns(letters, begin_ns, end_ns, category=category)
            check(len(found) > 1 and {letter.upper() for letter in found} == {what}, what, "is drawn as", found, letters)
        check("W" in columns(letters, begun["execution"], idle[0]), "waits", letters)
        # The row of the hung process must be empty before the process has started. From then on, it must have the letter of the call that
        # never returned.
        start_ns = s.value("SELECT start_ns FROM open_calls")
        check(set(columns(rows[hung.pid], from_ns, start_ns - 50000000)) <= {"."}, "before the hung process", rows[hung.pid])
        equal(set(columns(rows[hung.pid], start_ns, to_ns)), {"W"} if columns(rows[hung.pid], start_ns, to_ns) else set(), rows[hung.pid])
        equal(rows[hung.pid][-1].upper(), "W", "the end of the hung process")

    # Draw a window of the trace, and then the time around a given call.
    window = begun["retrieval"], begun["end"]
    letters = rows_of(timeline(s, "--from", f"@{window[0]}", "--to", f"@{window[1]}", "--pid", child.pid).stdout)
    equal(set(letters), {child.pid}, "--pid")
    check(set(letters[child.pid]) <= set("Cc.Mm") and letters[child.pid].count("C") > 60, letters)
    longest, took = s.rows("SELECT call_id, duration_ns FROM calls WHERE name = 'cuModuleLoadData' ORDER BY 2 DESC LIMIT 1")[0]
    letters = rows_of(timeline(s, "--around", longest).stdout)[child.pid]
    equal(set(letters[len(letters) // 3 + 1:2 * len(letters) // 3 - 1]), {"O"}, "a call and what is around it")
    for options, status, says in ((("--around", "1"), 1, "expected the call_id"), (("--around", "x"), 2, "expected the call_id"),
                                  (("--around", longest, "--from", "1"), 2, "--around cannot be combined"), (("--from", "1h"), 1, "no calls in this window: the trace lasts"),
                                  (("--from", "1h", "--to", "2h"), 1, "no calls in this window"), (("--width", "10"), 2, "expected 40 to"),
                                  (("--color", "red"), 2, "invalid value 'red' for --color"), (("--pid", "1"), 1, "the trace has no process 1"), (("x",), 2, "unknown argument")):
        done = timeline(s, *options, status=status)
        check(says in done.stderr, options, done.stderr)
        equal(done.stdout, "", options)

# On terminals.
with Session() as s:
    s.db.write_bytes(lzma.decompress(FIXTURE.read_bytes()))
    command = CUDATRACE, "timeline", "--db", s.db
    if can("terminals", "the picture on a terminal"):
        for width in (80, 200):
            text, errors = on_terminal(width, *command)
            check("\033[" in text and errors == "", "no colours, or something else was said", errors)
            plain = re.sub(r"\033\[[0-9;]*m", "", text)
            equal([line for line in plain.splitlines() if len(line) > width], [], "lines that are too long")
            equal(plain, timeline(s, "--width", width).stdout, "what a pipe gets")
            for env in ({"NO_COLOR": "1"}, {"TERM": "dumb"}):
                equal(on_terminal(width, "env", *(f"{name}={value}" for name, value in env.items()), *command)[0], plain, env)
        text, errors = on_terminal(20, *command)
        check("the terminal has 20 columns" in errors, errors)
        equal(max(len(line) for line in re.sub(r"\033\[[0-9;]*m", "", text).splitlines() if re.match(r"  \d", line)), 40, "lines")
    check("\033[" in timeline(s, "--color", "always").stdout and "\033[" not in timeline(s).stdout, "colours")
    equal(set(rows_of(timeline(s).stdout)), {tid for tid, in s.rows("SELECT DISTINCT tid FROM calls WHERE layer = 'driver'")}, "threads")
    only = rows_of(timeline(s, "--layers", "nvtx").stdout)
    check(all(set(letters.upper()) <= set("R.") for letters in only.values()), only)

# Scheduler events have their own letter.
with Session() as s:
    lines = s.dir / "lines.jsonl"
    with open(lines, "w") as file:
        for number, (name, layer, category, end_s) in enumerate((("cuCtxSynchronize", "driver", "sync", 1), ("blocked", "kernel", "scheduling", 0.5))):
            for phase, at_s in ("B", 0), ("E", end_s):
                print(json.dumps({"ts": at_s, "op_id": number, "phase": phase, "name": name, "layer": layer,
                                  "details": {"category": category, "depth": number}}), file=file)
    s.run(CUDATRACE, "import", "--db", s.db, lines, preload=False)
    for layers, letters in ("driver", 74 * "W"), ("kernel", 37 * "B" + 37 * "."):
        text = timeline(s, "--layers", layers).stdout
        equal(rows_of(text), {1: letters}, f"the layer {layers}")
    check("B scheduling\n" in text, "the legend", text)
    for layers in "all", "driver,kernel":
        letters = [line.split()[-1] for line in timeline(s, "--layers", layers).stdout.splitlines() if line.startswith("  ") and "|" not in line]
        equal(letters, [74 * "W", 37 * "B" + 37 * "."], f"the thread's line, and that of the kernel, with {layers}")

with Session() as s:
    s.start_daemon()
    check("has no calls yet" in timeline(s).stderr, "nothing was said of an empty trace")
