"""Tests that the output of `cudatrace top` always agrees with the trace and the programs. The cases include hung calls, lost calls and held
memory, and a daemon that is missing, stopped or killed. Also tests the interactive screen in a tmux terminal."""
import json
import lzma
import os
import pathlib
import pty
import re
import select
import signal
import subprocess

from cudatrace_test import CUDATRACE, Session, WORKLOADS, can, check, equal, fifo, wait_for
from screen_test import Screen, findable

FIXTURE = pathlib.Path(__file__).resolve().parents[1] / "fixtures" / "h200-training.db.xz"
MB = 1e6


def moments(s, *options, count=1, where=None):
    """Returns the output of `top --json`, which is one object for each time that `top` reads the trace."""
    done = s.run(CUDATRACE, "top", *(where or ("--session", s.name)), "--json", "--count", count, "--interval", "0.2", *options,
                 preload=False)
    decoder, text, found = json.JSONDecoder(), done.stdout, []
    while text.strip():
        moment, end = decoder.raw_decode(text)
        found.append(moment)
        text = text[end:].lstrip()
    equal(len(found), count, "moments")
    return found


def by_pid(moment):
    return {row["pid"]: row for row in moment["processes"]}


def shown(lines, *pids):
    """Returns the given processes that are on the screen, in the order of the screen. The screen may also show untraced programs of other
    tests."""
    return [int(words[0]) for words in map(str.split, lines[3:]) if words and words[0] in map(str, pids)]


# Run two programs. One of them hangs in a call, and the other holds memory and makes calls until it is killed.
with Session() as s, fifo(s.dir, "inside") as inside, fifo(s.dir, "release") as release:
    s.start_daemon()
    hung = s.start(WORKLOADS / "hang", "--calls", 10, stdout=subprocess.DEVNULL,
                   env={"SIMCUDA_BLOCK": "cuCtxSynchronize", "SIMCUDA_BLOCK_NOTIFY": inside, "SIMCUDA_BLOCK_RELEASE": release})
    with open(inside, "rb") as notice:
        notice.read(1)
    busy = s.start(WORKLOADS / "demo", "--rounds", 1 << 30, stdout=subprocess.DEVNULL, env={"SIMCUDA_LATENCY": "cuMemcpyHtoD_v2=1000000"})
    s.flush_until("calls of the busy one", lambda: s.value("SELECT count(*) FROM calls JOIN processes USING (process_id) "
                                                           "WHERE processes.pid = ? AND calls.category = 'launch'", busy.pid) > 100)
    before, after = moments(s, count=2)
    check(before["live"] and after["live"] and after["since_ns"] == before["at_ns"] < after["at_ns"], "moments", before, after)
    for pid in hung.pid, busy.pid:
        row, earlier = by_pid(after)[pid], by_pid(before)[pid]
        seconds = (after["at_ns"] - after["since_ns"]) / 1e9
        equal(row["calls/s"], round((row["calls"] - earlier["calls"]) / seconds), "calls a second")
        equal((row["state"], row["lost"], row["failed"]), ("running", 0, 0), "how it does")
        # The sums are up to a tenth of a second old, because they come from the last stored batch. Their age varies, so a share may exceed
        # 100 %.
        check(0 <= row["driver_%"] <= 101 + 10 / seconds, "the part of one thread's time", row)
    first, second = by_pid(before)[hung.pid], by_pid(after)[hung.pid]
    equal((second["open_call"], second["calls/s"], second["driver_%"]), ("cuCtxSynchronize", 0, 100.0), "the hung one")
    check(abs(second["open_s"] - first["open_s"] - seconds) <= 0.11, "for how long a call is open", first, second, seconds)
    row = by_pid(after)[busy.pid]
    check(row["calls/s"] > row["launches/s"] > 0 and row["copied_MB/s"] > 0, "the busy one", row)
    functions = {f["function"]: f for f in moments(s, "--pid", busy.pid, count=2)[1]["functions"]}
    check(functions["cuLaunchKernel"]["calls/s"] > 0 and functions["cuInit"]["calls/s"] == 0, "functions", functions)
    thread, = moments(s, "--pid", hung.pid, "--threads")[0]["threads"]
    equal((thread["tid"], thread["open_call"], thread["driver_%"]), (hung.pid, "cuCtxSynchronize", 100.0), "the hung thread")
    # Sorted, filtered.
    equal([r["pid"] for r in moments(s, "--sort", "pid")[0]["processes"]], sorted((hung.pid, busy.pid)), "by pid")
    equal([r["pid"] for r in moments(s, "--sort", "-pid")[0]["processes"]], sorted((hung.pid, busy.pid), reverse=True), "turned round")
    equal([r["pid"] for r in moments(s, "--sort", "open_s")[0]["processes"]][0], hung.pid, "the longest open one first")
    for text in "HANG --CALLS", str(hung.pid):
        equal([r["pid"] for r in moments(s, "--find", text)[0]["processes"]], [hung.pid], text)
    # Print tables into a pipe until the reader closes it.
    with subprocess.Popen([CUDATRACE, "top", "--session", s.name, "--interval", "0.1"], env=s.env(preload=False), text=True,
                          stdout=subprocess.PIPE, stderr=subprocess.PIPE) as piped:
        # Between two tables of traced processes, there may be a table of untraced processes, which belong to other tests.
        seen = []
        while sum("calls/s" in line for line in seen) < 2:
            seen.append(piped.stdout.readline())
            check(seen[-1], "it ended behind", seen)
        piped.stdout.close()
        equal((piped.wait(), piped.stderr.read()), (-signal.SIGPIPE, ""), "how it ends when nobody reads")

    if can("tmux", "the screen") and can("terminals", "the screen"):
        with Screen(s, 200, 20) as screen:
            lines = screen.wait_for_text(str(hung.pid), str(busy.pid), "2 processes", "live", "cuCtxSynchronize")
            check(all(column in lines[2] for column in ("pid", "calls/s", "driver_%", "held_MB", "lost", "open_call", "command", "calls")),
                  "columns", lines[2])
            check("process_id" not in lines[2], "a column that says nothing to people", lines[2])
            check(all(len(line) <= 200 for line in lines), "lines that are too long", lines)
            screen.press("/", *"hang", "Enter")
            screen.wait("the hung one alone", lambda lines: str(hung.pid) in lines[3] and not any(str(busy.pid) in x for x in lines))
            screen.press("Enter")
            screen.wait_for_text(f"process {hung.pid}", "functions", "cuInit")
            screen.press("Tab")
            screen.wait_for_text(f"process {hung.pid}", "1 thread ", "open_call")
            screen.press("Escape")
            screen.wait_for_text("2 processes", str(busy.pid))
            for width, height in (80, 24), (20, 5), (80, 3), (200, 50):
                screen.resize(width, height)
                lines = screen.wait(f"{width} columns", lambda lines: len(lines) == height and lines[0].startswith("cudatrace top")
                                    and (height < 4 or str(hung.pid) in "".join(lines)))
                check(all(len(line) <= width for line in lines), "lines that are too long", lines)
            # The key `>` sorts by the next column to the right, which is the pid. The key `r` reverses the order.
            screen.press(">")
            screen.wait("sorted by pid", lambda lines: shown(lines, hung.pid, busy.pid) == sorted((hung.pid, busy.pid)))
            screen.press("r")
            screen.wait("turned round", lambda lines: shown(lines, hung.pid, busy.pid) == sorted((hung.pid, busy.pid), reverse=True))
            screen.press("Space")
            screen.wait_for_text("paused")
            screen.press("Space")
            # A process disappears when it exits, and the key `a` shows it again.
            busy.kill()
            busy.wait()
            screen.wait("the busy one to go", lambda lines: re.search(r" 1 process[, ]", lines[0]))
            screen.press("a")
            screen.wait_for_text("2 processes", "killed")
            # Stop, continue and kill the daemon.
            s.daemon.send_signal(signal.SIGSTOP)
            screen.wait_for_text("the daemon is stopped")
            s.daemon.send_signal(signal.SIGCONT)
            screen.wait_for_text("live")
            # Let the trace continue in its next file.
            s.daemon.send_signal(signal.SIGHUP)
            screen.wait_for_text("trace.2.db")
            s.daemon.kill()
            s.daemon.wait()
            s.daemon = None
            screen.wait_for_text("the daemon has exited", "cuCtxSynchronize")
            screen.press("q")
            wait_for("the end of top", screen.has_ended)
    else:
        s.daemon.kill()
        s.daemon.wait()
        s.daemon = None
    # `top` shows the trace of a killed daemon.
    moment, = moments(s, where=("--db", s.db))
    equal((moment["live"], by_pid(moment)[hung.pid]["open_call"]), (False, "cuCtxSynchronize"), "what a killed daemon left")
    hung.kill()
    hung.wait()
    s.start_daemon()
    s.flush()

# If no daemon is writing the trace, `top` shows the rates of each process over its whole lifetime.
with Session() as s:
    s.db.write_bytes(lzma.decompress(FIXTURE.read_bytes()))
    at = "--db", s.db
    row, = moments(s, where=at)[0]["processes"]
    calls, seconds = s.rows("SELECT (SELECT sum(calls) FROM totals), (ended_ns - started_ns) / 1e9 FROM processes")[0]
    equal((row["calls"], row["calls/s"]), (calls, round(calls / seconds)), "calls")
    equal(row["driver_%"], round(s.value("SELECT sum(total_ns) FROM totals WHERE layer = 'driver'") / seconds / 1e7, 1), "time")
    equal((row["state"], row["held_MB"], row["open_call"]), ("exited", 0, None), "one that has ended")
    equal([m["processes"] for m in moments(s, where=at, count=3)], [[row]] * 3, "what nobody writes, again")
    done = s.run(CUDATRACE, "top", *at, "--once", preload=False)
    check(done.stdout.splitlines()[2].split()[0] == str(row["pid"]) and done.stderr == "", "as a table", done.stdout, done.stderr)
    for options, status, says in ((("--sort", "time"), 2, "invalid value 'time' for --sort: expected one of pid, calls/s"), (("--interval", "0"), 2, "'0' for --interval"),
                                  (("--interval", "soon"), 2, "'soon' for --interval"), (("--count", "0"), 2, "'0' for --count"), (("--pid", "x"), 2, "'x' for --pid"),
                                  (("--pid", row["pid"] + 1), 1, f"has no process {row['pid'] + 1}"), (("--threads",), 2, "--threads requires --pid"),
                                  (("more",), 2, "unknown argument 'more'"), (("--find", "nothing such"), 0, "no row with 'nothing such'")):
        done = s.run(CUDATRACE, "top", *at, "--once", *options, preload=False, status=status)
        check(says in done.stderr, options, done.stderr)
    done = s.run(CUDATRACE, "top", "--db", s.dir / "none.db", "--once", preload=False, status=1)
    check("no trace at" in done.stderr, done.stderr)

# A trace without calls.
with Session() as s:
    s.start_daemon()
    equal(moments(s)[0]["processes"], [], "processes of an empty trace")
    done = s.cudatrace("top", "--once")
    check("no traced process is running" in done.stderr, done.stderr)
    # A daemon that is writing a different trace must not affect the trace that is shown.
    other = s.dir / "other.db"
    other.write_bytes(lzma.decompress(FIXTURE.read_bytes()))
    found = moments(s, count=3, where=("--db", other))
    equal([(m["live"], len(m["processes"])) for m in found], [(False, 1)] * 3, "beside another trace's daemon")

# `top` must find the daemon if it is given the name of the trace, even if the daemon is already writing a later file of that trace.
with Session() as s:
    s.start_daemon()
    s.run(WORKLOADS / "calls", "--calls", 10)
    s.daemon.send_signal(signal.SIGHUP)
    wait_for("the next file", lambda: f"file {s.dir / 'trace.2.db'}\n" in s.cudatrace("status").stdout)
    for name in "trace.db", "trace.2.db":
        moment, = moments(s, where=("--db", s.dir / name))
        equal(moment["live"], True, f"whether the daemon of {name} is found")

# While a daemon is writing the trace, `top` lists untraced processes that have loaded the driver, and the key `t` attaches to the selected
# process. Here, attaching fails because the driver has no table of entry points, and the screen must show this reason.
with Session() as s:
    s.start_daemon()
    program = findable(s, WORKLOADS / "attached")
    plain = s.start(program, "--do", "steps", 1, preload=False, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    equal(plain.stdout.readline(), b"ready\n", "an untraced program")
    hooked = s.start(WORKLOADS / "attached", "--do", "steps", 1, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    equal(hooked.stdout.readline(), b"ready\n", "a program with the hook")
    command = f"{program} --do steps 1"
    row, = [row for row in moments(s)[0]["untraced"] if row["pid"] in (plain.pid, hooked.pid)]
    equal(row, {"pid": plain.pid, "command": command}, "in JSON")
    equal([row["pid"] for row in moments(s, "--find", program)[0]["untraced"]], [plain.pid], "what --find leaves")
    for options, has in (("--once",), True), (("--count", 1, "--format", "markdown"), True), (("--once", "--format", "csv"), False):
        text = s.cudatrace("top", *options, "--interval", "0.1").stdout
        found = re.findall(rf"\b({plain.pid}|{hooked.pid})\b", text.partition("not traced:\n")[2])
        equal(found, [str(plain.pid)] if has else [], f"the second table with {options}")
    if can("tmux", "attach by a key") and can("terminals", "attach by a key"):
        with Screen(s, 80, 24, "--find", str(program)) as screen:
            screen.wait_for_text(f"{plain.pid}  not traced  {command}"[:80], "0 processes, 1 not traced", "t attach")
            screen.press("Enter")  # there are no functions to show
            screen.press("t")
            screen.wait_for_sentence("none of its")
            lines = screen.wait_for_sentence(f"attach: process {plain.pid} (attached) has an unknown driver")
            check(lines[0].startswith("cudatrace top") and "calls/s" in lines[2] and "not traced" in lines[3], "the rest of the screen", lines)
            screen.resize(40, 4)
            screen.wait("a small screen", lambda lines: len(lines) == 4 and lines[3].startswith("attach: process"))
            screen.resize(80, 24)
            screen.press("x")
            screen.wait("the message to go", lambda lines: "not traced" in lines[3] and not any("attach: process" in line for line in lines))
            plain.kill()
            plain.wait()
            screen.wait_for_text("no row with that text")
    hooked.kill()
    plain.kill()
    plain.wait()
    s.stop_daemon()
    equal(moments(s, where=("--db", s.db))[0]["untraced"], [], "of a trace that nobody writes")

# On a terminal that cannot move its cursor, `top` must draw nothing. The error message suggests options that print instead of drawing.
with Session() as s:
    s.trace(WORKLOADS / "calls", "--calls", 10)
    here, there = pty.openpty()
    done = s.run(CUDATRACE, "top", "--db", s.db, preload=False, status=1, env={"TERM": "dumb"}, stdin=there, stdout=there)
    check("$TERM: dumb) cannot move its cursor; --once and --count print without one" in done.stderr, done.stderr)
    equal(select.select([here], [], [], 0)[0], [], "what the terminal got")
    os.close(here)
    os.close(there)
