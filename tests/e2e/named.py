"""Tests the names that programs give to threads, streams, events, contexts and devices through NVTX. Names are given before and after the
first call, in wide characters, repeatedly for the same object, for a reused handle, and without a daemon. Some names are too long."""
import json

from cudatrace_test import HOOK, Session, WORKLOADS, equal, fifo

NAMED = WORKLOADS / "named"
TOOL = {"NVTX_INJECTION64_PATH": HOOK}
OBJECTS = "SELECT role, name, until_ns IS NULL FROM object_names WHERE role NOT IN ('thread', 'stream') ORDER BY named_ns"
NAMES = [("event", "event", 0), ("event", "event, again", 0), ("context", "context", 1), ("device", "device", 0),
         ("device", "device 0", 1)]


def check_names():
    with Session() as s:
        s.start_daemon()
        lines = [line.split() for line in s.run(NAMED, env=TOOL).stdout.splitlines()]
        s.flush()
        s.check_identity()
        s.check_truth()
        main, by_another, by_itself, nameless = map(int, lines[0][1:])
        stream, other, again = map(int, lines[1][1:])
        long = "\u00e9" * 127  # 255 bytes are kept, but never half of a character
        wanted = {main: "main thread", by_another: "w\u00f6rker", by_itself: long, nameless: "comm"}
        equal(dict(s.rows("SELECT tid, name FROM threads")), wanted, "names of threads")
        equal(s.rows("SELECT comm FROM threads WHERE tid <> ?", main), [("comm",)] * 3, "their names in the kernel")

        # Each launch has the name that its stream had at the time of the launch.
        equal(again == stream, True, "the handle comes again")
        equal(s.rows("SELECT stream, stream_name FROM launches ORDER BY call_id"),
              [(stream, None), (stream, "first"), (stream, "s\u00e9cond"), (0, None), (0, "default"), (other, "by resource"),
               (again, None)], "launches by stream")
        equal(s.rows(OBJECTS), NAMES, "other objects")

        # The report and the export show the names.
        report = s.cudatrace("report", "--format", "csv").stdout
        equal([name for name in wanted.values() if name not in report], [], "threads that the report does not name")
        trace = json.loads(s.cudatrace("export", "--format", "chrome").stdout)
        trace = trace["traceEvents"] if isinstance(trace, dict) else trace
        equal({event["tid"]: event["args"]["name"] for event in trace if event["name"] == "thread_name"}, wanted, "tracks")
        equal([event["args"].get("stream_name") for event in trace if event.get("args", {}).get("kernel")][:3],
              [None, "first", "s\u00e9cond"], "streams of launches in an export")


def check_many():
    """Checks that each object keeps its name until it is destroyed, even if there are more objects than the hook can keep names for."""
    with Session() as s:
        s.start_daemon()
        s.run(NAMED, "--many", 1500, env=TOOL)
        s.flush()
        s.check_identity()
        equal(s.rows("SELECT count(*), count(DISTINCT name), count(until_ns) FROM object_names WHERE role = 'event'"),
              [(1500, 1500, 1500)], "names, different ones, and those that ended")


def check_late_daemon():
    """Checks that the trace contains names given before its daemon started, whether or not an earlier daemon was running."""
    with Session() as s, fifo(s.dir, "told") as told, fifo(s.dir, "released") as released:
        for before in (False, True):
            if before:
                s.db = s.dir / "first.db"
                s.start_daemon()
            child = s.start(NAMED, "--told", told, "--released", released, env=TOOL)
            with open(told, "rb") as made, open(released, "wb", buffering=0) as make:
                def call():
                    make.write(b"c")
                    equal(made.read(1), b"c", "what it says of a call")

                call()
                if before:
                    s.flush()
                    s.stop_daemon()
                    s.db = s.dir / "second.db"
                    call()
                s.start_daemon()
                s.flush_until("a process that finds the daemon", lambda: call() or s.value("SELECT count(*) FROM calls"))
            equal(child.wait(), 0, "its status")
            s.flush()
            equal(s.rows("SELECT name FROM threads"), [("main thread",)], "a name from before the daemon")
            equal(s.rows("SELECT stream_name FROM launches ORDER BY call_id"), [("by resource",), (None,)], "streams")
            equal([row[1] for row in s.rows(OBJECTS)], ["event, again", "context", "device 0"], "other objects")
            s.stop_daemon()


check_names()
check_many()
check_late_daemon()
