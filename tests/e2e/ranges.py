"""Tests ranges and marks that programs create through NVTX: their messages, and how they are nested with driver calls. Also tests ranges
that are never closed, ranges that another thread or process closes, and more ranges than the hook can keep."""
import os
import pathlib
import signal
import subprocess

from cudatrace_test import CUDATRACE, HOOK, SHAPE, HungCall, SANITIZED, Session, WORKLOADS, by_tier, check, equal, fifo

RANGES = WORKLOADS / "ranges"
TOOL = {"NVTX_INJECTION64_PATH": HOOK}
START = ["cuInit", "cuDeviceGet", "cuDevicePrimaryCtxRetain", "cuCtxSetCurrent"]


def act(s, what, *options, **more):
    return s.run(RANGES, "--do", what, *options, env=TOOL, **more)


def hung_in(s, what, **popen):
    return HungCall(s, "--do", what, program=RANGES, env=TOOL, **popen)


def calls(s, what="message"):
    """Returns [(name, depth, message)] for all calls after the workload's startup, in the order of their return."""
    rows = s.rows(f"SELECT name, depth, {what} FROM calls ORDER BY call_id")
    equal([row[0] for row in rows[:len(START)]], START, "the workload's start")
    return rows[len(START):]


def check_nesting():
    with Session() as s:
        # Use `cudatrace run`, which sets NVTX's environment variable to the hook's path, as is usual.
        s.trace(RANGES, "--do", "nest")
        page = "p" * 4094
        equal(calls(s), [
            ("cuCtxGetCurrent", 1, None), ("cuCtxGetCurrent", 2, None), ("nvtxMark", 2, "here"),
            ("nvtxRangePush", 1, "layer"), ("cuCtxGetCurrent", 1, None), ("nvtxRangePush", 0, "forward"),
            ("nvtxMark", 0, "outside"), ("nvtxRangePush", 0, "gr\u00fc\u00df \u4e16 \U0001f680"), ("nvtxMark", 0, "wide"),
            ("nvtxMark", 0, "latin ? and ?"), ("nvtxMark", 0, ""), ("nvtxMark", 0, None),
            ("nvtxMark", 0, page), ("nvtxRangePush", 0, page), ("nvtxRangeStart", 0, page)], "the calls of nest")
        equal(s.rows("SELECT kind, message, depth FROM ranges ORDER BY call_id LIMIT 3"),
              [("mark", "here", 2), ("push", "layer", 1), ("push", "forward", 0)], "the ranges of nest")
        equal(s.value("SELECT count(*) FROM ranges JOIN calls USING (call_id) WHERE layer <> 'nvtx' "
                      "OR calls.category <> 'range' OR ranges.message IS NOT calls.message"), 0, "rows that disagree")
        equal(s.value("SELECT sum(duration_ns) FROM ranges WHERE kind = 'mark'"), 0, "the duration of marks")
        # Calls inside a range must begin and end within the range.
        equal(s.rows("""
            SELECT outer.message, count(*), sum(inner.layer = 'driver')
              FROM ranges AS outer
              JOIN calls AS inner ON inner.start_ns >= outer.start_ns AND inner.end_ns <= outer.end_ns
                                 AND inner.call_id <> outer.call_id AND inner.depth > outer.depth
             WHERE outer.kind = 'push' GROUP BY outer.call_id ORDER BY outer.call_id LIMIT 2"""),
              [("layer", 2, 1), ("forward", 5, 3)], "what lies within the ranges")
        s.check_identity()
        s.check_truth()


def check_domains():
    with Session() as s:
        s.start_daemon()
        act(s, "domains")
        s.flush()
        argb = 0xff102030
        equal(calls(s, "NULL")[:6], [
            # The program popped a range of one domain while an inner range of another domain was still open. The popped range's level stays
            # occupied until the inner range is popped as well.
            ("cuCtxGetCurrent", 3, None), ("nvtxRangePush", 1, None), ("cuCtxGetCurrent", 3, None),
            ("nvtxRangePush", 2, None), ("nvtxRangePush", 0, None), ("cuCtxGetCurrent", 0, None)], "the depths of domains")
        equal(s.rows("SELECT kind, domain, message, category, color, payload FROM ranges ORDER BY call_id"), [
            ("push", "library", "registered", 9, argb, 0.1),
            ("push", None, "inner", None, None, None),
            ("push", None, "full", "default seven", argb, -5),
            ("mark", "d\u00f6main", "\u03b1", "\u00e9tude", None, float(2**64 - 1)),
            ("mark", "d\u00f6main", "w\u00efde", 9, argb, 1.5),
            ("mark", None, "full", "default seven", argb, 2**31),
            ("mark", None, "full", "default seven", argb, -2**31),
            ("mark", None, "full", "eight", argb, float("-inf")),
            ("mark", None, None, 9, argb, 1.5),
            ("mark", None, None, None, None, None),
            ("mark", None, None, None, None, None)], "the ranges of domains")
        s.check_identity()


def check_processes():
    with Session() as s:
        s.start_daemon()
        act(s, "processes")
        s.flush()
        rows = s.rows("SELECT message, domain, kind, depth FROM ranges ORDER BY call_id")
        equal(rows, [("a", None, "start", 0), ("b", "library", "start", 0), ("c", None, "start", 1),
                     ("ending", None, "push", 0)], "the ranges of processes")
        equal(s.value("SELECT count(DISTINCT range_id) FROM ranges WHERE kind = 'start'"), 3, "their identifiers")
        a, b, c = s.rows("SELECT start_ns, end_ns, tid, process_id FROM ranges WHERE kind = 'start' ORDER BY start_ns")
        check(a[0] < b[0] < a[1] < b[1], "a and b overlap", a, b)
        ending = s.rows("SELECT start_ns, end_ns, tid FROM ranges WHERE message = 'ending'")[0]
        check(c[0] < ending[0] < c[1] < ending[1] and c[2] == ending[2] != a[2], "c began before the thread that ended it", c,
              ending)
        s.check_identity()


def check_race():
    count = by_tier(4000, 20000)
    with Session() as s:
        s.start_daemon("--ring", "2M")
        act(s, "race", "--count", count)
        s.flush()
        # Each range must have ended exactly once, no matter which process or thread ended it.
        equal(s.rows("SELECT name, calls FROM totals WHERE layer = 'nvtx'"), [("nvtxRangeStart", 8 * count)], "ranges")
        equal(s.value("SELECT count(*) - count(DISTINCT range_id) FROM ranges"), 0, "identifiers given twice")
        equal(s.rows("SELECT DISTINCT message FROM ranges"), [("exchanged",)], "their messages")
        s.check_identity(lost=None)


def check_deep():
    with Session() as s:
        s.start_daemon()
        act(s, "deep", "--count", 1000)
        s.flush()
        wanted = [("cuCtxGetCurrent", 15, None)]  # a record holds a depth up to 15; higher ones become 15
        wanted += [("nvtxRangePush", min(i, 15), f"level {i}") for i in reversed(range(1000))]
        equal(calls(s), wanted + [("cuCtxGetCurrent", 0, None)], "a thousand ranges")
        s.check_identity()
    with Session() as s:
        s.start_daemon()
        act(s, "deep", "--count", 3000)
        s.flush()
        # The hook keeps 1024 of the open ranges. It counts the others as lost, but still returns the right levels for them, which the
        # workload checks.
        equal(s.rows("SELECT calls, stored, lost FROM totals WHERE layer = 'nvtx'"), [(3000, 1024, 1976)], "3000 ranges")
        equal(s.rows("SELECT cause, calls FROM losses"), [("memory", 1976)], "the losses")
        equal(calls(s)[-1], ("cuCtxGetCurrent", 0, None), "the call behind them")
        s.check_identity(lost=1976)


def check_limits():
    with Session() as s:
        s.start_daemon("--ring", "4M")
        act(s, "limits")
        s.flush()
        equal(s.rows("SELECT name, calls, lost FROM totals WHERE layer = 'nvtx' ORDER BY name"),
              [("nvtxMark", 70, 0), ("nvtxRangePush", 2000, 0), ("nvtxRangeStart", 4464, 4464)], "beyond the limits")
        equal(s.value("SELECT count(*) FROM ranges WHERE domain = message"), 1022, "domains with their names")
        equal(s.rows("SELECT domain, count(*) FROM ranges WHERE kind = 'push' AND domain <> message GROUP BY domain"),
              [("(one of more domains than cudatrace keeps)", 978)], "the others")
        rows = [row[0] for row in s.rows("SELECT message FROM ranges WHERE kind = 'mark' ORDER BY call_id")]
        kept = sum(message.startswith("string ") for message in rows)
        equal(rows[:kept], [f"string {i}" for i in range(999, kept * 1000, 1000)], "registered strings")
        check(kept > 60 and set(rows[kept:]) == {"(one of more strings than cudatrace keeps)"}, "the others", rows[kept:])
        s.check_identity(lost=4464)


def shared_bytes(s):
    return sum(os.stat(f"/dev/shm/{name}").st_blocks * 512 for name in os.listdir("/dev/shm") if f".{s.name}." in name)


def check_distinct():
    """Checks that no message is lost if there are very many different ones, and that memory use does not grow with the number of
    messages."""
    count, seen, shared = by_tier(250000, 1000000), 0, []
    with Session() as s:
        s.start_daemon("--ring", "2M")
        child = s.start(RANGES, "--do", "distinct", "--count", count, env=TOOL, stdin=subprocess.PIPE,
                        stdout=subprocess.PIPE)
        while child.stdout.readline() == b"\n":
            s.flush()
            shared.append(shared_bytes(s))
            child.stdin.write(b"\n")
            child.stdin.flush()
            seen += 1
            if seen == 20:
                before = resident(s.daemon.pid)
        equal(child.wait(), 0, "its status")
        grown = resident(s.daemon.pid) - before
        s.flush()
        equal(seen, count // 5000, "times that it waited")
        equal(s.value("SELECT count(*) FROM ranges WHERE kind = 'push'"), count, "ranges")
        equal(s.value("SELECT count(DISTINCT message) FROM ranges WHERE kind = 'push'"), count, "their messages")
        equal(s.value("SELECT count(*) FROM (SELECT message, row_number() OVER (ORDER BY call_id) - 1 AS number "
                      "FROM ranges WHERE kind = 'push') WHERE message <> 'step ' || number"), 0, "messages out of place")
        s.check_identity()
        check(max(shared) < 3 << 20, "shared memory", max(shared))
        if not SANITIZED:
            check(grown < 24 << 20, "the daemon grew by", grown)
    with Session() as s:
        s.start_daemon()
        # Repeat the test with a program that does not wait for the daemon. Ranges that do not fit into the ring are counted as lost, and
        # the process's memory must not grow.
        done = s.run(RANGES, "--do", "distinct", "--count", count, env=TOOL, stdin=open("/dev/zero"))
        grown = int(done.stdout.split("grown=")[1].split()[0])
        check(grown < 1 << 20, "the process grew by", grown)
        s.flush()
        s.check_identity(lost=None)
        equal(s.value("SELECT sum(calls) FROM totals WHERE layer = 'nvtx'"), count + count // 4, "ranges")


def resident(pid):
    status = pathlib.Path(f"/proc/{pid}/status").read_text()
    return int(status.split("VmRSS:")[1].split()[0]) * 1024


def check_threads():
    with Session() as s:
        s.start_daemon()
        mapped = act(s, "threads", "--count", 200).stdout.split("mapped=")[1].split()[0]
        check(int(mapped) < 8 << 20, "what threads leave mapped", mapped)
        s.flush()
        # If a thread exits and leaves a range open, the range never ends. The ranges of the next thread that uses the same lane must begin
        # at depth 0.
        equal(s.rows("SELECT message, depth, count(*), count(DISTINCT tid) > 1 FROM ranges GROUP BY message, depth"),
              [("first act", 0, 100, 1)], "ranges of threads")
        equal(s.rows("SELECT DISTINCT depth FROM calls"), [(0,)], "depths")
        equal(s.rows("SELECT * FROM open_calls"), [], "open calls")
        check(s.value("SELECT count(*) FROM lane") < 8, "lanes are used again", s.value("SELECT count(*) FROM lane"))
        s.check_identity()


def check_killed():
    with Session() as s:
        s.start_daemon()
        wanted = [("nvtxRangePush", 0), ("nvtxRangePush", 1), ("cuCtxSynchronize", 2)]
        with hung_in(s, "hang"):
            s.flush()
            equal(s.rows("SELECT name, depth FROM open_calls ORDER BY depth"), wanted, "what it is in")
        s.flush()
        equal(s.rows("SELECT name, depth FROM open_calls ORDER BY depth"), wanted, "what it was in")
        equal(s.value("SELECT count(*) FROM ranges"), 0, "ranges that ended")
        s.check_identity()


def check_crossing():
    """Tests a range that encloses the beginning of a call but ends during the call, and a range that begins during the call and ends after
    it."""
    with Session() as s:
        s.start_daemon()
        with hung_in(s, "cross", stdout=subprocess.PIPE) as child:
            os.kill(child.pid, signal.SIGUSR1)
            equal(child.program.stdout.readline(), b"handled\n", "what the handler says")
            s.flush()
            # The range at depth 0 has ended, and no other call has taken its depth.
            equal(s.rows("SELECT name, depth FROM open_calls ORDER BY depth"), [("cuCtxSynchronize", 1), ("nvtxRangePush", 2)],
                  "the open calls")
            child.release()
        s.flush()
        equal(calls(s), [
            ("cuCtxGetCurrent", 0, None), ("nvtxRangePush", 0, "ends inside the call"), ("cuCtxSynchronize", 1, None),
            ("cuCtxGetCurrent", 0, None), ("nvtxRangePush", 2, "outlives the call"), ("cuCtxGetCurrent", 3, None),
            ("nvtxRangePush", 2, "after"), ("nvtxRangePush", 1, "after"), ("nvtxRangePush", 0, "after"),
            ("cuCtxGetCurrent", 0, None)], "the calls of cross")
        s.check_identity()


def check_jump():
    """Checks that the trace does not show the next range inside a call that was left by longjmp()."""
    with Session() as s:
        s.start_daemon()
        with hung_in(s, "jump") as child:
            os.kill(child.pid, signal.SIGUSR1)
            equal(child.program.wait(), 0, "its status")
        s.flush()
        equal(calls(s), [("cuCtxGetCurrent", 2, None), ("nvtxRangePush", 1, "behind"), ("nvtxRangePush", 0, "around"),
                         ("nvtxMark", 0, "outside")], "the calls of jump")
        s.check_identity()


def check_forks():
    with Session() as s:
        s.start_daemon()
        act(s, "forks")
        s.flush()
        equal(s.rows("SELECT process_id IN (SELECT process_id FROM calls WHERE layer = 'driver'), message, depth "
                     "FROM ranges ORDER BY message"),
              [(0, "child's", 0), (1, "parent's", 0), (1, "parent's too", 1)], "ranges of parent and child")
        s.check_identity()


def check_dormant():
    with Session() as s, fifo(s.dir, "told") as told, fifo(s.dir, "released") as released:
        def wait_inside(change):
            child = s.start(RANGES, "--do", "wait", "--told", told, "--released", released, "--count", 100, env=TOOL)
            with open(told, "rb") as waiting:
                waiting.read(1)
            change()
            with open(released, "wb") as go:
                go.write(b"\n")
            equal(child.wait(), 0, "its status")

        # Without a daemon, the hook must return correct levels and handles, and create no file.
        for what in ("nest", "domains", "processes", "deep", "threads", "forks"):
            act(s, what)
        wait_inside(lambda: None)
        equal([name for name in os.listdir("/dev/shm") if s.name in name], [], "files without a daemon")
        # Replace the daemon while ranges are open. As with open calls, neither daemon records the end of these ranges.
        s.start_daemon()

        def change_daemon():
            s.stop_daemon()
            equal(s.rows("SELECT name FROM open_calls"), [("nvtxRangePush",)], "what was open when it went")
            s.start_daemon()

        wait_inside(change_daemon)
        s.flush()
        equal(s.rows("SELECT DISTINCT message, depth FROM ranges ORDER BY message"), [("behind", 0), ("inside", 0)],
              "ranges of the second daemon's")
        s.check_identity()


def check_other_tools():
    with Session() as s:
        # If the user has set the variable, `run` must not change it, even if it is empty or names a tool that cannot be loaded.
        for value in ("/nowhere/libtool.so", ""):
            done = s.trace("sh", "-c", 'echo "$NVTX_INJECTION64_PATH"', env={"NVTX_INJECTION64_PATH": value})
            equal(done.stdout, value + "\n", "the variable that the user set")
        done = s.trace("sh", "-c", 'echo "$NVTX_INJECTION64_PATH"')
        equal(pathlib.Path(done.stdout.strip()), HOOK, "the variable that run sets")
        s.trace(RANGES, "--optional", 1, env={"NVTX_INJECTION64_PATH": "/nowhere/libtool.so"})
        equal(s.value("SELECT count(*) FROM functions WHERE layer = 'nvtx'"), 0, "functions of another tool")
        check(s.value("SELECT count(*) FROM calls") > 0, "driver calls are traced beside it")
    with Session() as s:
        # The hook also records ranges if it is not preloaded, but only loaded by NVTX as its tool.
        s.start_daemon()
        s.run(RANGES, "--do", "nest", preload=False, env=TOOL)
        s.flush()
        # If NVTX loads the hook after the driver was loaded, the hook can trace driver calls only through the driver's slots.
        equal(s.rows("SELECT DISTINCT layer FROM calls ORDER BY 1"), [("driver",), ("nvtx",)] if SHAPE else [("nvtx",)], "layers")
        s.check_identity()


check(CUDATRACE.exists() and RANGES.exists(), "build first")
check_nesting()
check_domains()
check_processes()
check_race()
check_deep()
check_limits()
check_threads()
check_killed()
check_crossing()
check_jump()
check_forks()
check_dormant()
check_other_tools()
check_distinct()
