"""Tests recordings of traces whose age or size is limited. The recording keeps the calls that --keep removes from the trace, and can be
replayed into several files with --max-db. If the recording's file cannot grow any more, the recording ends with its last whole batch, while
the trace continues. Text is imported into several files, too."""
import json
import resource
import subprocess

from cudatrace_test import CUDATRACE, DAEMON, Session, WORKLOADS, check, equal, wait_for
from series_test import files, sql

BOUND = 24 << 20


def calls(s, count):
    s.run(WORKLOADS / "calls", "--calls", count, "--mix", "training", stdout=subprocess.DEVNULL)


def replay(s, recording, name, *options):
    """Replays a recording into a trace. Returns the trace's calls by process and function."""
    s.run(DAEMON, "--replay", recording, "--db", s.dir / name, *options, preload=False)
    rows = sql(s, "SELECT pid, name, sum(calls) FROM totals JOIN processes USING (process_id) WHERE layer = 'driver' GROUP BY 1, 2",
               s.dir / name)
    return {(pid, function): count for pid, function, count in rows}


def nsys(s, db):
    """Exports the trace for Nsight Systems. Returns {table: rows}, without the tables that contain the trace's file name."""
    path = s.dir / "out.sqlite"
    s.run(CUDATRACE, "export", "--format", "nsys", "--db", db, "--output", path, preload=False)
    tables = [name for name, in s.rows("SELECT name FROM sqlite_master WHERE type = 'table' AND name NOT GLOB 'META_*' ORDER BY 1", db=path)]
    return {name: s.rows(f"SELECT * FROM {name}", db=path) for name in tables}


# Test that the recording keeps calls that --keep removes from the trace.
with Session() as s:
    recording = s.dir / "a.rec"
    s.start_daemon("--keep", "1s", "--ring", "32M", "--record", recording)
    calls(s, 5000)
    s.flush()
    wait_for("calls to expire", lambda: s.value("SELECT count(*) FROM calls") == 0)
    s.stop_daemon()
    equal(replay(s, recording, "again.db"), s.truth(), "calls of the replay and of the driver")
    equal(s.value("SELECT count(*) FROM calls", db=s.dir / "again.db"), sum(s.truth().values()), "calls that are there")

# Record a trace that consists of several files. Replay the recording into one file, and into several files.
with Session() as s:
    recording = s.dir / "a.rec"
    s.start_daemon("--max-db", "40M", "--ring", "32M", "--record", recording)
    for _ in range(4):
        calls(s, 100000)
        s.flush()
    s.stop_daemon()
    check(len(files(s)) > 1, "files of the trace:", files(s))
    equal(replay(s, recording, "one.db"), s.truth(), "calls of the replay in one file")
    s.db = s.dir / "several" / "trace.db"
    s.db.parent.mkdir()
    equal(replay(s, recording, s.db, "--max-db", "40M"), s.truth(), "calls of the replay in several files")
    check((s.db.parent / "trace.2.db").exists(), "the replay is in one file")
    equal(nsys(s, s.dir / "one.db"), nsys(s, s.dir / "trace.db"), "what Nsight Systems gets")

# Import text into several files. A file must have all rows that its calls refer to, even if a thread's earlier calls are in the file before
# it, and the trace continues while several imported files are partly read.
with Session() as s:
    count = 100000
    s.db = s.dir / "text" / "trace.db"
    s.db.parent.mkdir()
    paths = [s.dir / "a.jsonl", s.dir / "b.json"]
    lines = [{"ts": 0.5, "op_id": 1, "phase": "B", "name": "cuCtxSynchronize", "pid": 1, "tid": 7}]
    lines += [{"ts": (1000 * n + at) / 1e9, "op_id": n + 2, "phase": phase, "name": "cuMemGetInfo_v2", "pid": 1, "tid": 1000 + n // 300}
              for n in range(count // 2) for phase, at in (("B", 0), ("E", 500))]
    paths[0].write_text("".join(json.dumps(line) + "\n" for line in lines))
    paths[1].write_text(json.dumps([{"ph": "X", "ts": n, "dur": 0.5, "pid": 2, "tid": n // 300, "cat": "cuda_driver", "name": "cuInit"}
                                    for n in range(count)]))
    s.run(DAEMON, "--replay", *paths, "--db", s.db, "--max-db", "16M", preload=False)
    check((s.db.parent / "trace.2.db").exists(), "the import is in one file")
    equal(sql(s, "SELECT pid, name, count(*), count(DISTINCT tid) FROM calls GROUP BY 1, 2"),
          [[1, "cuMemGetInfo_v2", count // 2, -(-count // 600)], [2, "cuInit", count, -(-count // 300)]], "calls of the imported text")
    equal(sql(s, "SELECT name, tid FROM open_calls"), [["cuCtxSynchronize", 7]], "open calls of the imported text")

# Limit the size that the daemon's files can have. The recording is larger than the trace, and therefore reaches the limit first.
with Session() as s:
    recording = s.dir / "a.rec"
    daemon = s.start_daemon("--ring", "32M", "--record", recording)
    calls(s, 1000)
    s.flush()
    resource.prlimit(daemon.pid, resource.RLIMIT_FSIZE, (BOUND, BOUND))
    while "the recording" not in s.log():
        check(s.db.stat().st_size < BOUND, "the trace came to the bound before the recording:", recording.stat().st_size)
        calls(s, 20000)
        s.flush()
    check(": File too large; the trace continues without it" in s.log(), s.log())
    check(0 < recording.stat().st_size <= BOUND, "bytes of the recording:", recording.stat().st_size)
    calls(s, 1000)
    s.flush()
    s.check_truth()
    equal(daemon.poll(), None, "the daemon's end")
    s.stop_daemon()
    recorded, truth = replay(s, recording, "again.db"), s.truth()
    check(0 < sum(recorded.values()) < sum(truth.values()), "calls of the recording:", sum(recorded.values()))
    check(all(count <= truth[key] for key, count in recorded.items()), "the recording has calls that were not made")
    first = s.rows("SELECT call_id, layer, name, pid FROM calls ORDER BY call_id", db=s.dir / "again.db")
    equal(first, s.rows("SELECT call_id, layer, name, pid FROM calls ORDER BY call_id")[:len(first)], "what was recorded")

# If the trace itself has reached the limit on file sizes, calls wait in shared memory, and the daemon reports this.
with Session() as s:
    daemon = s.start_daemon()
    calls(s, 100)
    s.flush()
    resource.prlimit(daemon.pid, resource.RLIMIT_FSIZE, (1 << 20, resource.RLIM_INFINITY))
    calls(s, 100000)
    wait_for("the daemon to say what is wrong", lambda: "calls stay in shared memory" in s.log())
    equal(daemon.poll(), None, "the daemon's end")
    resource.prlimit(daemon.pid, resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
    s.flush()
    s.check_truth()
