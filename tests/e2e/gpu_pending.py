"""Tests the `gpu_pending` view, the columns of `cudatrace top` that are derived from it, and the losses counted for GPU work that CUPTI had
not returned when its process ended. Kernels on the first stream take an hour, and memory sets on the second stream take no time."""
import contextlib
import json
import shutil
import signal
import sqlite3

from cudatrace_test import CUDATRACE, SIMCUDA, WORKLOADS, Session, can, check, equal, wait_for
from exact_trace import BASE_US, add_work, import_calls
from gpu_programs import SIMCUPTI, Program, request
from screen_test import Screen
from series_test import file, files, sql

HOUR_NS = 3600 * 10 ** 9


def pending(s):
    return s.rows("SELECT pid, name, kernel, place FROM gpu_pending JOIN processes USING (process_id) ORDER BY pid, call_id")


def losses(s):
    return s.rows("SELECT pid, calls FROM losses JOIN processes USING (process_id) WHERE cause = 'cupti' ORDER BY pid")


def hung_and_killed():
    """Checks that the view finds the kernel that a process hangs in, even while other streams make progress. Once the process has been
    killed, the number of losses must be exact."""
    with Session() as s:
        s.start_daemon()
        program = Program(s, rounds=0, SIMCUDA_LAUNCH_NS=HOUR_NS)
        request(s, [], "on", "--pid", program.pid)
        program.do("set 1")
        s.flush_until("the recording", lambda: "\ngpu 1 of 1 processes record GPU work\n" in s.cudatrace("status").stdout)
        program.do("set 3")
        program.do("launch 4")
        program.do("set 2")
        s.flush_until("the sets", lambda: s.value("SELECT count(*) FROM gpu_work WHERE kind = 'set'") >= 5)
        hung = [(program.pid, "cuLaunchKernel", "alpha", place) for place in (1, 2, 3, 4)]
        equal((pending(s), losses(s)), (hung, []), "the pending calls and the losses of the hung process")
        program.child.kill()
        program.child.wait()
        s.flush_until("the end", lambda: s.value("SELECT count(*) FROM processes WHERE state = 'killed'"))
        equal((pending(s), losses(s)), (hung, [(program.pid, 4)]), "the pending calls and the losses of the killed process")
        (row,) = s.report("pending")["pending"]
        equal([row[name] for name in ("pid", "state", "function", "kernel", "calls")], [program.pid, "killed", "cuLaunchKernel", "alpha", 4],
              "the report")
        s.check_identity()


def nothing_returned():
    """Checks that if CUPTI returns none of a recording's work, all of this work is counted as lost, and that nothing is lost if CUPTI has
    returned everything."""
    with Session() as s:
        s.start_daemon()
        program = Program(s, SIMCUDA_LAUNCH_NS=1000)
        request(s, [program], "on")
        program.work(100)
        request(s, [], "off")
        s.flush_until("the work", lambda: s.value("SELECT count(*) FROM gpu_work") == 35)
        equal((pending(s), losses(s)), ([], []), "pending calls and losses after a recording")
        program.end()
        s.flush_until("the end", lambda: s.value("SELECT count(*) FROM processes WHERE state = 'exited'"))
        equal((pending(s), losses(s)), ([], []), "pending calls and losses after an exit")
    with Session() as s:
        s.start_daemon()
        program = Program(s, rounds=0, SIMCUDA_LAUNCH_NS=HOUR_NS)
        request(s, [program], "on")
        program.do("launch 3")
        program.end()
        s.flush_until("the end", lambda: s.value("SELECT count(*) FROM processes WHERE state = 'exited'"))
        equal(losses(s), [(program.pid, 3)], "the losses of a process that exits during its work")


def captured():
    """Checks that launches captured into a graph, which cause no work by themselves, are not pending."""
    with Session() as s:
        s.start_daemon()
        s.run(WORKLOADS / "graph", "--launches", 7, "--replays", 5,
              env={"CUDATRACE_GPU": "kernels", "LD_LIBRARY_PATH": f"{SIMCUDA}:{SIMCUPTI}", "SIMCUDA_LAUNCH_NS": 1000})
        s.flush_until("the end", lambda: s.value("SELECT count(*) FROM processes WHERE state = 'exited'"))
        equal(s.rows("SELECT count(*) FROM launches WHERE captured"), [(7,)], "captured launches")
        check(s.value("SELECT count(*) FROM gpu_work") >= 7 * 5, "the work of the graph")
        equal((pending(s), losses(s)), ([], []), "pending calls and losses")


def selected():
    """Checks that calls whose work has been returned are not pending, even if later calls in the same streams were not recorded."""
    for selection, calls in ({"CUDATRACE_SAMPLE": "7"}, 10 * 35 / 7), ({"CUDATRACE_CALLS": "cuLaunch*"}, 10):
        with Session() as s:
            s.start_daemon()
            program = Program(s, SIMCUDA_LAUNCH_NS=1000, CUDATRACE_GPU="kernels", **selection)
            for _ in range(10):
                program.work(100)
            program.end()
            s.flush_until("the end", lambda: s.value("SELECT count(*) FROM processes WHERE state = 'exited'"))
            known, works = s.rows("SELECT count(call_id), count(*) FROM gpu_work")[0]
            check(calls <= known < works, "some of the work has a call:", known, works)
            equal((pending(s), losses(s)), ([], []), f"pending calls and losses with {selection}")


def without_work():
    """Checks that a call whose name merely resembles a memory set has no correlation ID, because it causes no GPU work."""
    with Session() as s:
        s.start_daemon()
        program = Program(s, SIMCUDA_LAUNCH_NS=1000, CUDATRACE_GPU="kernels")
        equal(program.do("access"), 801, "the status, because the simulated driver has no such function")
        program.end()
        s.flush_until("the end", lambda: s.value("SELECT count(*) FROM processes WHERE state = 'exited'"))
        noted = s.rows("SELECT name, count(correlation) FROM calls LEFT JOIN correlation USING (call_id) "
                       "WHERE name IN ('cuMemSetAccess', 'cuMemsetD8Async') GROUP BY 1")
        equal(noted, [("cuMemSetAccess", 0), ("cuMemsetD8Async", 5)], "correlations by function")


def default_streams():
    """Calls identify the default streams of every context by the numbers 0 and 1, so such a call may belong to any context. Checks that it
    is pending until its own work has been returned, even if later work of a context has been returned."""
    with Session() as s:
        import_calls(s, s.db, [(7, 7, "cuLaunchKernel", at, at + 2, 0, {"kernel": "a", "grid_x": at, "stream": at // 10 % 2}) for at in range(10, 70, 10)])
        add_work(s.db, [(7, "kernel", "a", 0, 7, at, at + 5, None, at + 2) for at in (10, 40, 50)])
        with contextlib.closing(sqlite3.connect(s.db)) as db:
            equal(db.execute("SELECT DISTINCT stream FROM shape ORDER BY 1").fetchall(), [(0,), (1,)], "the streams that the calls name")
            db.execute("DELETE FROM correlation")
            db.executemany("INSERT INTO correlation VALUES (1, ?, ?)", [(number, (10 * number + 2 + BASE_US) * 1000) for number in range(1, 7)])
            db.executemany("UPDATE gpu_run SET correlation = ? WHERE run_id = ?", ((1, 1), (4, 2), (5, 3)))
            db.executemany("INSERT INTO gpu_returned VALUES (1, ?, 7, ?, ?)", ((1, 1, 10), (2, 5, 20)))
            db.commit()
        equal(s.rows(f"SELECT start_ns / 1000 - {BASE_US}, stream, place FROM gpu_pending ORDER BY call_id"),
              [(20, None, 1), (30, None, 2), (60, None, 3)], "calls in the default streams")


def two_files():
    """Checks that a call in an earlier file of the trace is pending until CUPTI returns its work in a later file."""
    with Session() as s:
        streams = {1: 16, 2: 32, 3: 16, 10: 32}  # by the number of the launch
        import_calls(s, s.db, [(7, 7, "cuLaunchKernel", 10 * number, 10 * number + 2, 0, {"kernel": "a", "grid_x": number, "stream": stream})
                               for number, stream in streams.items()])
        with contextlib.closing(sqlite3.connect(s.db)) as db:
            db.executemany("INSERT INTO correlation VALUES (1, ?, ?)", [(number, (10 * number + 2 + BASE_US) * 1000) for number in streams])
            db.execute("INSERT INTO meta VALUES ('series', 'pending') ON CONFLICT DO UPDATE SET value = excluded.value")
            db.commit()
        second = s.dir / "trace.2.db"
        shutil.copy(s.db, second)
        until_ns = (50 + BASE_US) * 1000
        for path, gone, returned in (s.db, ">", 1), (second, "<", 3):
            with contextlib.closing(sqlite3.connect(path)) as db:
                db.execute("INSERT INTO gpu_returned VALUES (1, 1, 7, ?, ?)", (returned, (10 * returned + 5 + BASE_US) * 1000))
                db.executescript(f"DELETE FROM call WHERE end_ns {gone} {until_ns}; DELETE FROM launch WHERE call_id {gone} {until_ns}")
        query = f"SELECT start_ns / 1000 - {BASE_US}, stream, place FROM gpu_pending ORDER BY call_id"
        equal(sql(s, query), [[20, 32, 1], [100, 32, 2]], "pending calls of both files")
        equal(s.rows(query), [(20, 32, 1), (30, 16, 1)], "pending calls at the end of the first file")


def next_file():
    """Checks that a new file of the trace begins with the correlations of pending calls, and with few others."""
    with Session() as s:
        s.start_daemon()
        program = Program(s, rounds=0, SIMCUDA_LAUNCH_NS=HOUR_NS)
        request(s, [program], "on")
        program.do("set 500")
        program.do("launch 4")
        program.do("set 1")
        s.flush_until("the sets", lambda: s.value("SELECT count(*) FROM gpu_work WHERE kind = 'set'") >= 501)
        before = pending(s)
        equal(len(before), 4, "pending calls")
        s.daemon.send_signal(signal.SIGHUP)
        wait_for("the next file", lambda: files(s) == [1, 2])
        program.do("launch 1")
        s.flush_until("the next call", lambda: s.value("SELECT count(*) FROM launches", db=file(s, 2)))
        # Copied: the four pending launches, and the last call with returned work. New: one launch.
        equal(s.value("SELECT count(*) FROM correlation", db=file(s, 2)), 6, "correlations in the next file")
        equal(len(sql(s, "SELECT pid, name, kernel, place FROM gpu_pending JOIN processes USING (process_id)")), 5, "pending calls of both files")


def small_files():
    """Checks that calls stay in a trace with a small limit while so much work is pending that each file begins with more than its share."""
    with Session() as s:
        s.start_daemon("--max-db", "16M")
        program = Program(s, rounds=0, SIMCUDA_LAUNCH_NS=HOUR_NS)
        request(s, [program], "on")
        for _ in range(10):
            program.do("launch 11000")
            s.flush()
        for _ in range(40):
            program.do("launch 10")
            s.flush()
        made, kept = sql(s, "SELECT (SELECT sum(calls) FROM totals), (SELECT count(*) FROM calls)")[0]
        check(kept > made / 2, kept, "of", made, "calls are in files", files(s))


def begun():
    """Checks when work became pending: when its call began, or when the last returned work of its stream ended. If no daemon writes the
    trace, `top` takes the trace's last time for the current time."""
    with Session() as s:
        launches = [(7, 7, "cuLaunchKernel", at, at + 2, 0, {"kernel": "a", "grid_x": 1}) for at in (10, 20, 30)]
        import_calls(s, s.db, [*launches, (8, 8, "cuLaunchKernel", 1000014, 1000015, 0, {"kernel": "b", "grid_x": 1}), (9, 9, "cuInit", 0, 5000040, 0, {})])
        add_work(s.db, [(7, "kernel", "a", 0, 7, 13, 40, None, 12)])
        with contextlib.closing(sqlite3.connect(s.db)) as db:
            db.execute("INSERT INTO correlation VALUES (1, 2, ?), (1, 3, ?), (2, 1, ?)", [(us + BASE_US) * 1000 for us in (22, 32, 1000015)])
            db.execute("INSERT INTO gpu_returned VALUES (1, 1, 7, 1, ?)", ((40 + BASE_US) * 1000,))
            db.execute("UPDATE process SET state = 'running', ended_ns = NULL")
            db.commit()
        equal(s.rows(f"SELECT process_id, kernel, place, since_ns / 1000 - {BASE_US} FROM gpu_pending ORDER BY call_id"),
              [(1, "a", 1, 40), (1, "a", 2, 40), (2, "b", 1, 1000014)], "since when work is pending")
        equal([(row["pid"], row["gpu_s"], row["gpu_work"]) for row in top(s, "--db", s.db, "--sort", "gpu_s")], [(7, 5.0, "a"), (8, 4.0, "b"), (9, None, None)],
              "pending work in top")
        check("gpu_work" in head(s), "the columns about GPU work are missing", head(s))
        with contextlib.closing(sqlite3.connect(s.db)) as db:
            db.execute("DELETE FROM correlation")
            db.commit()
        check("open_call" in head(s) and "gpu_" not in head(s), "unused columns are shown", head(s))
        equal([row["gpu_work"] for row in top(s, "--db", s.db)], [None] * 3, "work that is not pending, in JSON")


def head(s):
    """Returns the names of the columns that `top` prints for people."""
    return s.run(CUDATRACE, "top", "--db", s.db, "--once", "--sort", "gpu_s", preload=False).stdout.splitlines()[0]


def top(s, *where):
    return json.loads(s.run(CUDATRACE, "top", *(where or ("--session", s.name)), "--once", "--json", "--interval", "0.1", preload=False).stdout)["processes"]


def shown_by_top():
    """Checks that `top` shows a kernel that the GPU has not finished for two seconds, and that the kernel's name stays on the screen until
    the process ends."""
    with Session() as s:
        s.start_daemon()
        hung = Program(s, "hung", rounds=0, SIMCUDA_LAUNCH_NS=HOUR_NS, CUDATRACE_GPU="kernels")
        idle = Program(s, "idle", SIMCUDA_LAUNCH_NS=1000, CUDATRACE_GPU="kernels")
        hung.do("launch 2")
        hung.do("set 3")

        def rows():
            return {row["pid"]: row for row in top(s)}

        row = wait_for("the kernel in top", lambda: (found := rows()[hung.pid])["gpu_work"] and found)
        equal((row["gpu_work"], row["open_call"]), ("alpha", None), "the work of the hung process")
        check(row["gpu_s"] >= 2, "how long it has been pending:", row)
        equal((rows()[idle.pid]["gpu_s"], rows()[idle.pid]["gpu_work"]), (None, None), "the work of a process that has none")
        if can("tmux", "the screen") and can("terminals", "the screen"):
            with Screen(s, 160, 10) as screen:
                lines = screen.wait_for_text("gpu_work", "alpha")
                check("alpha" in next(line for line in lines if line.split()[:1] == [str(hung.pid)]), "not in the row of its process", lines)
                hung.child.kill()
                hung.child.wait()
                screen.wait("the columns to go", lambda lines: "gpu_" not in lines[2] and "open_call" in lines[2])
        idle.end()


for case in (hung_and_killed, nothing_returned, captured, selected, without_work, default_streams, two_files, next_file, small_files, begun, shown_by_top):
    print(case.__name__, flush=True)
    case()
