"""Tests that `cudatrace tail` prints each call of the trace once, while the program runs. Also tests filters, further files of the trace,
skipped calls and colours. In some tests, `tail` ends because of a signal, a closed pipe, a full disk, or the daemon's exit. The script also
tests `cudatrace run --print`, which prints the calls of the command that it runs."""
import calendar
import collections
import fcntl
import functools
import json
import os
import pty
import re
import select
import signal
import subprocess
import time

from cudatrace_test import CUDATRACE, HungCall, Session, WORKLOADS, by_tier, can, check, equal, fifo, has_closed, on_terminal, wait_for

LINE = re.compile(r"(\d\d:\d\d:\d\d\.\d{6}) (\d+)(?:/(\d+))? ( *)(\w[\w ]*)\((.*?)\)(?: = (-?\w+))?(?: <([\d.]+)(ns|us|ms|s)>)?(?: ([\d.e+-]+)GB/s)?")


class Lines:
    """Reads lines from a pipe."""

    def __init__(self, file):
        self.file, self.rest = file, b""

    def line(self):
        """Returns the next line, or None at end of file."""
        while b"\n" not in self.rest:
            piece = os.read(self.file, 65536)
            if not piece:
                equal(self.rest, b"", "a line without an end")
                return None
            self.rest += piece
        line, _, self.rest = self.rest.partition(b"\n")
        return line.decode()

    def left(self):
        """Returns the remaining lines."""
        lines = []
        while (line := self.line()) is not None:
            lines.append(line)
        os.close(self.file)
        return lines


class Tail(Lines):
    """A `cudatrace tail` of the session, whose output is a pipe."""

    def __init__(self, s, *options, where=None, pipe_bytes=None, **popen):
        here, there = os.pipe()
        if pipe_bytes:
            fcntl.fcntl(there, fcntl.F_SETPIPE_SZ, pipe_bytes)
        self.child = subprocess.Popen([str(x) for x in (CUDATRACE, "tail", *(where or ("--session", s.name)), *options)], stdout=there,
                                      stderr=subprocess.PIPE, env=s.env(preload=False), **popen)
        s.children.append(self.child)
        os.close(there)
        super().__init__(here)

    def until(self, wanted):
        """Returns the lines up to and including the first line that satisfies `wanted`, parsed as JSON."""
        lines = []
        while not lines or not wanted(lines[-1]):
            line = self.line()
            check(line is not None, "it ended before", lines[-3:])
            lines.append(json.loads(line))
        return lines

    def end(self, status=0):
        """Waits until the command exits. Returns (the remaining lines, standard error)."""
        lines = self.left()
        said = self.child.stderr.read().decode()
        equal(self.child.wait(), status, f"its status, with the message {said}")
        return lines, said


def ids(s, where="1", db=None):
    return [row[0] for row in s.rows(f"SELECT call_id FROM calls WHERE {where} ORDER BY call_id", db=db)]


def check_objects(s, lines):
    """Compares lines of JSON with the rows of the views."""
    columns = ("call_id", "process_id", "pid", "tid", "layer", "name", "category", "depth", "start_ns", "duration_ns", "status",
               "status_name", "bytes")
    rows = {row[0]: dict(zip(columns, row)) for row in s.rows(f"SELECT {', '.join(columns)} FROM calls")}
    offset = int(s.value("SELECT value FROM meta WHERE key = 'realtime_offset_ns'"))
    for line in lines:
        row = rows[line["call_id"]]
        equal({key: line[key] for key in columns if key in line}, {key: value for key, value in row.items() if value is not None}, "a line")
        second, fraction = re.fullmatch(r"(.*)\.(\d{9})Z", line["time"]).groups()
        at_ns = calendar.timegm(time.strptime(second, "%Y-%m-%dT%H:%M:%S")) * 10**9 + int(fraction)
        check(abs(at_ns - line["call_id"] - offset) < 10**9, "its time", line, offset)  # the daemon adjusts the offset as clocks drift
    by_id = {line["call_id"]: line for line in lines}
    for view, columns in (("launches", "kernel grid_x grid_y grid_z block_x block_y block_z shared_bytes stream captured"),
                          ("copies", "kind async stream source destination captured"), ("memsets", "address async stream captured"),
                          ("allocations", "kind address pool"), ("graph_launches", "graph_exec kernel_nodes stream captured"),
                          ("ranges", "message domain kind")):
        for call_id, *values in s.rows(f"SELECT call_id, {columns.replace(' ', ', ')} FROM {view}"):
            if call_id in by_id:
                equal([by_id[call_id].get(column) for column in columns.split()], values, f"what {view} says")
    objects = collections.defaultdict(list)
    for call_id, role, handle in s.rows("SELECT call_id, role, handle FROM objects ORDER BY call_id, place"):
        objects[call_id].append({"role": role, "handle": handle})
    for line in lines:
        equal(line.get("objects", []), objects.get(line["call_id"], []), f"objects of {line}")


def check_text(s, lines):
    """Compares lines of text with the rows of the view `calls`."""
    rows = s.rows("SELECT pid, tid, depth, name, layer, status, status_name, duration_ns, bytes, call_id FROM calls ORDER BY call_id")
    rates = dict(s.rows("SELECT call_id, 1.0 * copies.bytes / copies.duration_ns FROM copies JOIN calls USING (call_id) WHERE async = 0 AND captured = 0 AND "
                        "status = 0 AND copies.bytes > 0"))
    threads = dict(s.rows("SELECT call_id, grid_x * grid_y * grid_z * block_x * block_y * block_z FROM launches"))
    check(rates and threads, "copies and launches")
    equal(len(lines), len(rows), "lines")
    widths = set()
    for line, (pid, tid, depth, name, layer, status, status_name, duration_ns, size, call_id) in zip(lines, rows):
        found = LINE.fullmatch(line)
        check(found, "a line of another form:", line)
        _, said_pid, said_tid, indent, said_name, arguments, said_status, took, unit, rate = found.groups()
        equal((int(said_pid), int(said_tid or said_pid), said_name), (pid, tid, name), line)
        equal(said_status, None if layer == "nvtx" else status_name or str(status), line)
        unit_ns, error = {"ns": (1, 0), "us": (1e3, 0.051), "ms": (1e6, 0.051), "s": (1e9, 0.00051)}.get(unit, (0, 0))
        check(name == "nvtxMark" or abs(float(took) * unit_ns - duration_ns) <= error * unit_ns and (duration_ns >= 1000) == (unit != "ns"), "how long",
              line, duration_ns)
        check(size is None or f"bytes={size}" in arguments, "bytes of", line, size)
        check(call_id in rates and abs(float(rate) / rates[call_id] - 1) < 0.006 if rate else call_id not in rates, "the rate of", line)
        equal(re.findall(r"threads=(\d+)", arguments), [str(threads[call_id])] if call_id in threads else [], line)
        check(len(indent) >= 2 * depth, "indentation", line, depth)
        widths.add(line.index(name) - 2 * depth)  # the column depends on the widest process so far
    check(len(widths) <= 4, "columns in which calls begin", widths)


# Print the calls of programs while they run. Each call must be printed exactly once.
with Session() as s:
    s.start_daemon()
    with HungCall(s, "--calls", 10) as before:
        s.flush()
        tail = Tail(s, "-f", "json")
        # Make calls until the first line shows that `tail` has begun to read the trace.
        first = None
        while not first:
            s.run(WORKLOADS / "calls", "--calls", 5)
            s.flush()
            first = tail.line() if select.select([tail.file], [], [], 0)[0] else None
        with HungCall(s, "--calls", 100) as hung:
            s.flush()
            last = s.value("SELECT max(call_id) FROM calls WHERE pid = ?", hung.pid)
            lines = [json.loads(first), *tail.until(lambda line: line.get("call_id") == last)]
            hung.release()
        before.release()
        s.flush()
        end = s.value("SELECT max(call_id) FROM calls")
        lines += tail.until(lambda line: line.get("call_id") == end)
        equal([line["call_id"] for line in lines], [i for i in ids(s) if i >= lines[0]["call_id"]], "calls since it began")
        check(not [line for line in lines if line["pid"] == before.pid and line["name"] != "cuCtxSynchronize" and
                   line["call_id"] < lines[0]["call_id"]], "calls from before")
        check_objects(s, lines)
        tail.child.send_signal(signal.SIGINT)
        equal(tail.end(), ([], ""), "the end after an interrupt")

    # Select a process that has not made a call yet.
    idle = s.start("sh", "-c", 'read line; exec "$0" --calls 5', WORKLOADS / "calls", stdin=subprocess.PIPE, stdout=subprocess.DEVNULL)
    tail = Tail(s, "-f", "json", "--from", "@0", "--pid", idle.pid)
    equal(tail.child.stderr.readline().decode(), f"cudatrace: tail: the trace has no process {idle.pid} yet: waiting for its first call\n",
          "the message about a process without calls")
    idle.communicate(b"\n")
    s.flush()
    wanted = ids(s, f"pid = {idle.pid}")
    equal([line["call_id"] for line in tail.until(lambda line: line["call_id"] == wanted[-1])], wanted, "calls of this process")
    tail.child.send_signal(signal.SIGINT)
    equal(tail.end(), ([], ""), "the end after an interrupt")

    # Print all kinds of calls from several programs, as text and as JSON, from the beginning of the trace.
    tails = [Tail(s, "--from", "@0", "--all"), Tail(s, "--from", "@0", "--format", "json", "--all")]
    for program, *arguments in (["demo"], ["scripted", "--launches", 20], ["objects", "memory"], ["objects", "streams"], ["graph"], ["nodes"],
                                ["runtime_calls"], ["ranges", "--do", "nest"], ["threads"]):
        s.run(WORKLOADS / program, *arguments, env={"NVTX_INJECTION64_PATH": s.hook, **({"SIMCUDA_VERIFY": 0} if "memory" in arguments else {})})
    s.stop_daemon()
    (text, said), (objects, said_too) = [tail.end() for tail in tails]
    for what in said, said_too:
        equal(what, "cudatrace: tail: the daemon has stopped; all stored calls were printed\n", "the message when the daemon stops")
    equal(sorted(json.loads(line)["call_id"] for line in objects), ids(s), "all calls")
    if s.value("SELECT count(*) FROM late_call") == 0:
        check_text(s, text)
    check_objects(s, [json.loads(line) for line in objects])
    check(any(re.search(r" cuLaunchKernel\w*\(\w+.*, grid=\d+x1x1, block=\d+x1x1", line) for line in text), "launches")
    check(any(re.search(r"\d+/\d+ ", line) for line in text), "threads")
    check(any(re.search(r" cuModuleGetFunction\(function=0x\w+, module=0x\w+, kernel=fill_u32\) = CUDA_SUCCESS", line) for line in text),
          "the name of a kernel that was looked up")

    # With --relative, lines begin with the seconds since the first line.
    wanted = ids(s)
    lines, _ = Tail(s, "--from", "@0", "--relative", where=("--db", s.db)).end()
    equal([float(line.split()[0]) for line in lines], [round((call_id - wanted[0]) / 1e9, 6) for call_id in wanted], "times since the first line")
    done = s.run(CUDATRACE, "run", "--session", s.name, "--db", s.dir / "printed.db", "--print", "--relative", "--", WORKLOADS / "calls", "--calls", 5, preload=False)
    printed = s.rows("SELECT call_id FROM calls ORDER BY call_id", db=s.dir / "printed.db")
    equal([line[:12] for line in done.stderr.splitlines()], [f"{(call_id - printed[0][0]) / 1e9:12.6f}" for call_id, in printed], "times that run prints")

    # Test filters on a trace that no daemon is writing.
    done = s.run(CUDATRACE, "tail", "--db", s.db, "--from", "@0", "--pid", 1, preload=False, status=1)
    check("the trace has no process 1: " in done.stderr, done.stderr)
    pid = s.value("SELECT pid FROM calls WHERE layer = 'runtime' LIMIT 1")
    for options, where in (
            (("--calls", "cuMem*,!cuMemGet*", "--layers", "driver"), "layer = 'driver' AND name GLOB 'cuMem*' AND NOT name GLOB 'cuMemGet*'"),
            (("--layers", "nvtx"), "layer = 'nvtx'"), (("--pid", pid), f"pid = {pid}"), (("--failed",), "status NOT IN (0, 600)"),
            (("--min", "20us"), "duration_ns >= 20000"), (("--min", "0.00002"), "duration_ns >= 20000"),
            (("--failed", "--pid", pid, "--layers", "runtime"), f"pid = {pid} AND layer = 'runtime' AND status NOT IN (0, 600)")):
        wanted = ids(s, where)
        check(wanted, "nothing to choose:", where)
        lines, said = Tail(s, "-f", "json", "--from", "@0", *options, where=("--db", s.db)).end()
        equal([json.loads(line)["call_id"] for line in lines], wanted, options)
        check("no daemon writes" in said, said)
        lines, _ = Tail(s, "-f", "json", "-n", 3, *options, where=("--db", s.db)).end()
        equal([json.loads(line)["call_id"] for line in lines], wanted[-3:], (options, "the last"))
    middle = ids(s)[len(ids(s)) // 2]
    lines, _ = Tail(s, "-f", "json", "--from", f"@{middle}", where=("--db", s.db)).end()
    equal([json.loads(line)["call_id"] for line in lines], ids(s, f"call_id >= {middle}"), "from a moment on")
    equal(Tail(s, "-n", 0, where=("--db", s.db)).end()[0], [], "the last none")
    lines, _ = Tail(s, "-n", 5, "--threads", where=("--db", s.db)).end()
    check(all(re.search(r"^\S+ \d+/\d+ ", line) for line in lines), "threads", lines)

    # Wrong usage.
    for options, status, said in ((("--last", 3, "--from", 1), 2, "cannot be combined"), (("-f", "xml"), 2, "expected text or json"),
                                  (("--color", "sometimes"), 2, "expected auto, always or never"), (("--min", "long"), 2, "invalid value 'long' for --min: expected a duration"),
                                  (("-n",), 2, "option '-n' requires a value"), (("-x",), 2, "unknown option -x"), (("more",), 2, "unknown argument"),
                                  ((), 1, "no daemon writes")):
        lines, errors = Tail(s, *options, where=("--db", s.db)).end(status)
        check(said in errors and errors.count("\n") == 1 and not lines, options, errors)
    lines, errors = Tail(s, where=("--db", s.dir / "none.db")).end(1)
    check("no trace at" in errors, errors)

    # Colours are used on terminals but not elsewhere, unless options or $NO_COLOR request something else.
    if can("terminals", "colours"):
        for options, env, has in (((), {}, True), (("--color", "never"), {}, False), ((), {"NO_COLOR": "1"}, False),
                                  (("--color", "always"), {"NO_COLOR": "1"}, True)):
            text, _ = on_terminal(200, CUDATRACE, "tail", "--db", s.db, "-n", 20, *options, **env)
            equal("\x1b[" in text, has, f"colours with {options} {env}")
            equal(text.count("\x1b[") % 2, 0, "colours that are not ended")
    plain, coloured = (Tail(s, "-n", 50, *options, where=("--db", s.db)).end()[0] for options in ((), ("--color", "always")))
    check(plain == [re.sub(r"\x1b\[[\d;]*m", "", line) for line in coloured] != coloured, "the same in colours")

    # The disk is full.
    with open("/dev/full", "w") as full:
        done = s.run(CUDATRACE, "tail", "--db", s.db, "-n", 5, preload=False, status=1, stdout=full)
    equal(done.stderr, "cudatrace: tail: cannot write: No space left on device\n", "the message when the disk is full")

# Make the daemon write further files of the trace. At first, it begins two new files before `tail` reads the first of them.
with Session() as s:
    s.start_daemon()
    tail = Tail(s, "-f", "json", "--all", "--from", "@0")
    lines = []
    for number in range(2, 6):
        s.run(WORKLOADS / "calls", "--calls", 300)
        s.flush()  # otherwise, the calls may be in the next file
        s.daemon.send_signal(signal.SIGHUP)
        path = s.dir / f"trace.{number}.db"
        wait_for("the next file", lambda: path.exists() and f"file {path}\n" in s.cudatrace("status").stdout)
        if number == 3:
            end = s.value("SELECT max(call_id) FROM calls", db=s.dir / "trace.2.db")
            lines += tail.until(lambda line: line.get("call_id") == end)
    # A command that names the trace's first file must also find the daemon.
    named = Tail(s, "-n", 1, where=("--db", s.db))
    check(named.line(), "a line of the newest file")
    s.run(WORKLOADS / "calls", "--calls", 300)
    s.stop_daemon()
    check("the daemon has stopped" in named.end()[1], "the end of a tail that was given the first file's name")
    rest, _ = tail.end()
    lines += [json.loads(line) for line in rest]
    equal(sorted(line["call_id"] for line in lines), sorted(i for n in range(1, 6) for i in ids(s, db=s.dir / ("trace.db" if n == 1 else f"trace.{n}.db"))),
          "calls of all files")
    lines, _ = Tail(s, "-f", "json", "-n", 1500, "--calls", "cuMem*,cuLaunch*", where=("--db", s.db)).end()
    wanted = json.loads(s.run(CUDATRACE, "sql", "--db", s.db, "--format", "json", "SELECT call_id FROM calls WHERE name GLOB 'cuMem*' OR "
                              "name GLOB 'cuLaunch*' OR layer NOT IN ('driver', 'runtime') ORDER BY call_id", preload=False).stdout)
    equal([json.loads(line)["call_id"] for line in lines], [row["call_id"] for row in wanted][-1500:], "the last of several files")

# Read the output too slowly. `tail` must print the number of calls that it does not show.
with Session() as s:
    s.start_daemon()
    tail = Tail(s, "-f", "json", "--from", "@0", pipe_bytes=4096)
    lines = []
    while not lines or "not_shown" not in lines[-1]:
        s.run(WORKLOADS / "calls", "--calls", 5000)
        s.flush()
        for _ in range(400):
            if "not_shown" not in (lines or [{}])[-1]:  # this may be the last line
                lines.append(json.loads(tail.line()))
    # Although the daemon has stopped, `tail` waits for the reader, so that it can finally print how many calls were not shown.
    s.run(WORKLOADS / "calls", "--calls", 100)
    s.stop_daemon()
    wait_for("the end of the trace", lambda: has_closed(tail.child, s.db))
    rest, said = tail.end()
    lines += [json.loads(line) for line in rest]
    shown = [line["call_id"] for line in lines if "call_id" in line]
    left_out = sum(line.get("not_shown", 0) for line in lines)
    stored = ids(s)
    equal(len(shown) + left_out, len(stored), "shown and not shown")
    check(left_out > 0 and set(shown) <= set(stored) and len(set(shown)) == len(shown), "calls that were shown")
    check(f"tail: {left_out} of {len(stored)} calls were not shown" in said, said)
    equal(s.value("SELECT sum(lost) FROM totals"), 0, "lost calls")
    # A line that reports calls not shown must be in the right place, and contain the right number.
    place = {call_id: n for n, call_id in enumerate(stored)}
    at = 0
    for line in lines if s.value("SELECT count(*) FROM late_call") == 0 else []:
        at += line.get("not_shown", 0)
        if "call_id" in line:
            equal(place[line["call_id"]], at, "the place of a call")
            at += 1

# The ways to end.
with Session() as s, fifo(s.dir, "hold") as hold:
    s.start_daemon()
    tail = Tail(s, "--from", "@0")
    s.run(WORKLOADS / "calls", "--calls", 10)
    check(tail.line(), "a line")
    os.close(tail.file)  # `tail` ends without writing another line
    check(tail.child.wait() in (1, -signal.SIGPIPE), "its status", tail.child.returncode)
    equal(tail.child.stderr.read(), b"", "its message")
    held = s.start(WORKLOADS / "calls", "--calls", by_tier(5000, 20000), "--hold", hold, stdout=subprocess.DEVNULL)
    for number in signal.SIGINT, signal.SIGTERM:
        tail = Tail(s, "--from", "@0", "--all", pipe_bytes=4096)
        check(tail.line(), "a line")
        tail.child.send_signal(number)
        lines, said = tail.end()
        equal(said, "", "its message")
        check(all(LINE.fullmatch(line) for line in lines), "the last line", lines[-1:])
    if can("terminals", "a terminal that takes no more"):
        here, there = pty.openpty()
        tail = s.start(CUDATRACE, "tail", "--session", s.name, "--from", "@0", "--all", preload=False, stdout=there)
        os.close(there)
        check(os.read(here, 1), "its beginning")
        tail.terminate()
        equal(tail.wait(), 0, "its status")
        os.close(here)
    # Kill the daemon while the reader is too slow. Calls that the daemon has not stored stay in shared memory for the next daemon.
    s.flush()
    tail = Tail(s, "-f", "json", "-n", 1, pipe_bytes=4096)
    first = json.loads(tail.line())
    s.run(WORKLOADS / "calls", "--calls", 100)
    s.flush()
    s.daemon.send_signal(signal.SIGSTOP)
    os.waitid(os.P_PID, s.daemon.pid, os.WSTOPPED)
    s.run(WORKLOADS / "calls", "--calls", 100)
    s.daemon.kill()
    s.daemon.wait()
    wait_for("the end of the trace", lambda: has_closed(tail.child, s.db))
    lines, said = tail.end()
    check("the daemon has stopped; all stored calls were printed\n" in said, "the message when the daemon is killed:", said)
    lines = [json.loads(line) for line in lines]
    stored = ids(s, f"call_id > {first['call_id']}")
    equal(sum(line.get("not_shown", 1) for line in lines), len(stored), "shown and not shown after a kill")
    s.start_daemon()
    s.flush()
    equal(len(ids(s, f"call_id > {first['call_id']}")), 2 * len(stored), "calls of both programs")
    with open(hold, "w") as end:
        end.write("\n")
    equal(held.wait(), 0, "the status of the program")

# `run --print` must print the calls of its command, and no others, while the command runs. `run` must exit with the command's status.
with Session() as s, HungCall(s, "--calls", 10) as other:
    s.start_daemon()
    s.flush()
    run = [CUDATRACE, "run", "--session", s.name, "--db", s.db]
    mine = f"pid <> {other.pid}"
    start = functools.partial(s.start, preload=False)
    here, there = os.pipe()
    with HungCall(s, "--calls", 100, within=[*run, "--print", "--"], start=start, stderr=there) as hung:
        os.close(there)
        s.flush()
        lines = Lines(here)
        before = [lines.line() for _ in ids(s, mine)]
        other.release()
        hung.release()
    before += lines.left()
    wanted = s.rows(f"SELECT pid, name FROM calls WHERE {mine} ORDER BY call_id")
    equal([(int(m[2]), m[5]) for m in map(LINE.fullmatch, before)], wanted, "the lines of run --print")

    # Write all calls to a file. If a signal sent to `run` ends the command, `run` must still write all calls before it exits.
    listed = s.dir / "calls.txt"
    listed.write_text("what was there\n" * 1000)
    s.run(*run, "--output", listed, "--", "sh", "-c", '"$@"; exit 3', "sh", WORKLOADS / "calls", "--calls", by_tier(5000, 100000), preload=False,
          status=3)
    stored = s.value("SELECT count(*) FROM calls WHERE process_id = (SELECT max(process_id) FROM processes)")
    lines = listed.read_text().splitlines()
    equal((len(lines), sum(1 for line in lines if LINE.fullmatch(line))), (stored, stored), "the lines in a file")
    with HungCall(s, "--calls", 10, within=[*run, "--output", listed, "--"], start=start) as hung:
        hung.program.send_signal(signal.SIGINT)
        equal(hung.program.wait(), -signal.SIGINT, "how run ends")
    stored = s.value("SELECT count(*) FROM calls WHERE process_id = (SELECT max(process_id) FROM processes)")
    equal(len(listed.read_text().splitlines()), stored, "the lines of a killed command")

    # The command must run even if its calls cannot be printed.
    itself = "run: cannot print calls: the file is the trace itself"
    for path, says in ("/dev/full", "run: cannot write: No space left on device"), (s.db, itself), (f"{s.db}-wal", itself):
        done = s.run(*run, "--output", path, "--", "sh", "-c", '"$@"; exit 3', "sh", WORKLOADS / "calls", "--calls", 10, preload=False, status=3)
        check(says in done.stderr, path, done.stderr)
    done = s.run(*run, "--output", s.dir / "none/file", "--", "touch", s.dir / "touched", preload=False, status=1)
    check("none/file': No such file" in done.stderr and not (s.dir / "touched").exists(), done.stderr)

# If the reader of `run --print` is too slow, the command must not wait for it, and `run` must print the number of calls not shown.
with Session() as s:
    here, there = os.pipe()
    fcntl.fcntl(there, fcntl.F_SETPIPE_SZ, 4096)
    run = s.start(CUDATRACE, "run", "--session", s.name, "--db", s.db, "--print", "--", "sh", "-c", 'while read line; do "$@"; echo done; done', "sh",
                  WORKLOADS / "calls", "--calls", 5000, preload=False, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=there)
    os.close(there)
    lines, reader = [], Lines(here)
    while not "not shown" in (lines or [""])[-1]:
        run.stdin.write(b"\n")
        run.stdin.flush()
        while run.stdout.readline() != b"done\n":
            pass
        s.flush()
        for _ in range(400):
            if "not shown" not in (lines or [""])[-1]:  # this may be the last line
                lines.append(reader.line())
    run.stdin.close()
    lines += reader.left()
    equal(run.wait(), 0, "the status of run")
    left_out = sum(int(m[1]) for line in lines if (m := re.fullmatch(r"… (\d+) calls? not shown …", line)))
    shown, stored = sum(1 for line in lines if LINE.fullmatch(line)), len(ids(s))
    equal(shown + left_out, stored, "shown and not shown by run --print")
    check(any(f"run: {left_out} of {stored} calls were not shown" in line for line in lines), lines[-3:])
