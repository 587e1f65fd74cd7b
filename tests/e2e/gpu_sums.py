"""Compares the functions that sum up GPU work in one pass with the same sums over the views, on random traces: with several processes, devices,
recordings and threads, nested calls, work at equal times, work without a call, windows and selected processes. In one trace, gaps are longer
than the calls that the pass keeps."""
import contextlib
import random
import shutil
import sqlite3

from cudatrace_test import Session, by_tier, equal
from exact_trace import BASE_US, add_work, import_calls
from series_test import sql
from sums_test import compare_pairs

NAMES = ("cuLaunchKernel", "cuStreamSynchronize", "cuMemcpyHtoD_v2", "cuMemAlloc_v2", "cuCtxSynchronize")
KEPT = 1 << 18  # tools/trace/host_calls.c
WORK = """WITH work AS MATERIALIZED (
    SELECT device, kind, max(gpu_start_ns, ifnull(:from, 0)) AS start_ns, min(gpu_end_ns, ifnull(:to, 9223372036854775807)) AS end_ns
      FROM gpu_work
     WHERE gpu_end_ns >= ifnull(:from, 0) AND gpu_start_ns <= ifnull(:to, 9223372036854775807)
       AND (:pid IS NULL OR process_id IN (SELECT process_id FROM processes WHERE pid = :pid))
),
period AS MATERIALIZED (
    SELECT iif(:from IS NULL, ifnull(min(start_ns) FILTER (WHERE kind IN ('kernel', 'graph')), min(start_ns)), 0) AS first_ns,
           iif(:to IS NULL, ifnull(max(end_ns) FILTER (WHERE kind IN ('kernel', 'graph')), max(end_ns)), 9223372036854775807) AS last_ns
      FROM work
)"""
GAPS = """ FROM gpu_idle_calls CROSS JOIN period
          LEFT JOIN (SELECT device, min(gpu_start_ns) AS begun_ns FROM gpu_work
                      WHERE process_id IN (SELECT process_id FROM processes WHERE pid = :pid) GROUP BY device) USING (device)
          LEFT JOIN (SELECT device, min(start_ns) AS window_begun_ns FROM work GROUP BY device) USING (device)"""
ASKED = """to_ns > ifnull(:from, 0) AND from_ns < ifnull(:to, 9223372036854775807)
           AND (:pid IS NULL OR (process_id IN (SELECT process_id FROM processes WHERE pid = :pid) AND to_ns > begun_ns))"""
IN_PERIOD = """to_ns > ifnull(:from, first_ns) AND from_ns < ifnull(:to, last_ns)
           AND (:pid IS NULL OR (process_id IN (SELECT process_id FROM processes WHERE pid = :pid) AND to_ns > window_begun_ns))"""


def cut(from_ns, to_ns):
    return f"idle_ns * (1.0 * (min(to_ns, {to_ns}) - max(from_ns, {from_ns})) / (to_ns - from_ns))"


# Pairs of queries whose results must be equal: by the function, and by the views.
PAIRS = {
    "busy": ("""SELECT device, from_ns, to_ns, busy_ns, kernel_ns, copy_ns, both_ns, graph_ns, computing_ns, first_ns, last_ns, early_ns, late_ns,
                       kernels, copies, sets, graphs FROM gpu_busy_sums(:from, :to, :pid) ORDER BY device""",
             WORK + """, part AS (
    SELECT device, part, start_ns, end_ns
      FROM work
      JOIN (SELECT 'any' AS part, '' AS kinds UNION ALL SELECT 'kernel', 'kernel' UNION ALL SELECT 'copy', 'copy' UNION ALL SELECT 'both', 'kernel copy'
             UNION ALL SELECT 'graph', 'graph' UNION ALL SELECT 'computing', 'kernel graph') ON kinds = '' OR instr(kinds, kind) > 0
),
covered AS (
    SELECT *, max(end_ns) OVER (PARTITION BY device, part ORDER BY start_ns, end_ns ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING) AS until_ns FROM part
),
long AS (
    SELECT device, part, start_ns, end_ns, until_ns, max(end_ns - max(start_ns, ifnull(until_ns, start_ns)), 0) AS ns FROM covered
)
SELECT device, min(start_ns), max(end_ns),
       ifnull(sum(ns) FILTER (WHERE part = 'any'), 0), ifnull(sum(ns) FILTER (WHERE part = 'kernel'), 0), ifnull(sum(ns) FILTER (WHERE part = 'copy'), 0),
       ifnull(sum(ns) FILTER (WHERE part = 'both'), 0), ifnull(sum(ns) FILTER (WHERE part = 'graph'), 0), ifnull(sum(ns) FILTER (WHERE part = 'computing'), 0),
       first_ns, last_ns,
       sum(max(min(end_ns, first_ns) - max(start_ns, ifnull(until_ns, start_ns)), 0)) FILTER (WHERE part = 'any'),
       sum(max(end_ns - max(start_ns, ifnull(until_ns, start_ns), last_ns), 0)) FILTER (WHERE part = 'any'),
       (SELECT sum(kind = 'kernel') FROM work WHERE work.device = long.device), (SELECT sum(kind = 'copy') FROM work WHERE work.device = long.device),
       (SELECT sum(kind = 'set') FROM work WHERE work.device = long.device), (SELECT sum(kind = 'graph') FROM work WHERE work.device = long.device)
  FROM long CROSS JOIN period GROUP BY device ORDER BY device"""),
    "idle": ("SELECT device, host_state, host_call, gaps, round(idle_ns), longest_ns FROM gpu_idle_sums(:from, :to, :pid) WHERE gaps > 0 ORDER BY 1, 2, 3",
             WORK + f"SELECT device, host_state, host_call, count(*), round(sum({cut('ifnull(:from, from_ns)', 'ifnull(:to, to_ns)')})), max(to_ns - from_ns)"
             f"{GAPS} WHERE {ASKED} GROUP BY 1, 2, 3 ORDER BY 1, 2, 3"),
    "the longest gaps": ("SELECT device, host_state, host_call, from_ns, ended, begun FROM gpu_idle_sums(:from, :to, :pid) WHERE gaps > 0 ORDER BY 1, 2, 3",
                         WORK + f"SELECT device, host_state, host_call, from_ns, ended, begun FROM (SELECT *, row_number() OVER (PARTITION BY device, host_state, "
                         f"host_call ORDER BY to_ns - from_ns DESC, from_ns) AS place {GAPS} WHERE {ASKED}) WHERE place = 1 ORDER BY 1, 2, 3"),
    "idle in the period": ("SELECT device, host_state, host_call, round(period_ns) FROM gpu_idle_sums(:from, :to, :pid) WHERE period_ns > 0 ORDER BY 1, 2, 3",
                           WORK + f"SELECT device, host_state, host_call, round(sum({cut('ifnull(:from, first_ns)', 'ifnull(:to, last_ns)')})) AS ns"
                           f"{GAPS} WHERE {IN_PERIOD} GROUP BY 1, 2, 3 HAVING ns > 0 ORDER BY 1, 2, 3"),
    "shares": ("SELECT device, process_id, busy_ns, round(alone_ns), periods, from_ns, to_ns FROM gpu_share_sums(:from, :to) ORDER BY 1, 2",
               """SELECT device, process_id, sum(to_ns - from_ns), round(total(alone_ns)), count(*), min(from_ns), max(to_ns)
      FROM (SELECT device, process_id, max(from_ns, ifnull(:from, from_ns)) AS from_ns, min(to_ns, ifnull(:to, to_ns)) AS to_ns,
                   alone_ns * (1.0 * (min(to_ns, ifnull(:to, to_ns)) - max(from_ns, ifnull(:from, from_ns))) / nullif(duration_ns, 0)) AS alone_ns
              FROM gpu_busy
             WHERE to_ns >= ifnull(:from, 0) AND from_ns <= ifnull(:to, 9223372036854775807))
     GROUP BY 1, 2 ORDER BY 1, 2"""),
    "queues": ("""SELECT process_id, device, context, stream, launched, latency_ns, longest_ns, depth, deepest, empty, launched_q1, launched_q2,
                         launched_q3, launched_q4, depth_q1, depth_q2, depth_q3, depth_q4 FROM gpu_queue_sums(:from, :to, :pid) ORDER BY 1, 2, 3, 4""",
               """SELECT process_id, device, context, stream, count(*), sum(latency_ns), max(latency_ns), sum(depth), max(depth), sum(depth = 1),
                         sum(quarter = 0), sum(quarter = 1), sum(quarter = 2), sum(quarter = 3), sum(iif(quarter = 0, depth, 0)),
                         sum(iif(quarter = 1, depth, 0)), sum(iif(quarter = 2, depth, 0)), sum(iif(quarter = 3, depth, 0))
      FROM (SELECT *, 4 * (launched_ns - min(launched_ns) OVER ()) / (max(launched_ns) OVER () - min(launched_ns) OVER () + 1) AS quarter
              FROM launch_queue
             WHERE launched_ns BETWEEN ifnull(:from, 0) AND ifnull(:to, 9223372036854775807)
               AND (:pid IS NULL OR process_id IN (SELECT process_id FROM processes WHERE pid = :pid)))
     GROUP BY 1, 2, 3, 4 ORDER BY 1, 2, 3, 4"""),
    "work": ("""SELECT device, process_id, kind, kernel, mangled, copy_kind, graph, runs, duration_ns, longest_ns, queued_ns, queued_runs, bytes
                  FROM gpu_work_sums(:from, :to, :pid) ORDER BY 1, 2, 3, 4, 5, 6, 7""",
             """SELECT device, process_id, kind, kernel, mangled, copy_kind, iif(kind = 'graph', graph, NULL), count(*), sum(duration_ns), max(duration_ns),
                       ifnull(sum(queued_ns), 0), count(queued_ns), sum(bytes)
                  FROM gpu_work
                 WHERE gpu_end_ns >= ifnull(:from, 0) AND gpu_start_ns <= ifnull(:to, 9223372036854775807)
                   AND (:pid IS NULL OR process_id IN (SELECT process_id FROM processes WHERE pid = :pid))
                 GROUP BY 1, 2, 3, 4, 5, 6, 7 ORDER BY 1, 2, 3, 4, 5, 6, 7"""),
    "recordings": ("SELECT * FROM gpu_recording_times() ORDER BY device, process_id, recording",
                   "SELECT * FROM gpu_recordings ORDER BY device, process_id, recording"),
}


def compare(s, what, bounds=(None, None), pid=None):
    compare_pairs(s, PAIRS, what, bounds, pid)


def thread_calls(random, tid, ends):
    """Returns the calls of a thread. Some are inside others, and no two end at the same time."""
    calls, at = [], random.randrange(5)
    for _ in range(random.randrange(5, 40)):
        begin, end = at + random.randrange(1, 30), at + random.randrange(31, 80)
        at = end + 1
        for depth, (b, e) in enumerate(((begin, end), (begin + 2, end - 2))[:random.choice((1, 1, 2))]):
            while e in ends and e > b:
                e -= 1
            if e > b and e not in ends:
                ends.add(e)
                calls.append((tid // 10, tid, random.choice(NAMES), b, e, depth, {}))
    return calls


def random_trace(s, random, kinds):
    ends = set()
    calls = [call for tid in (70, 71, 90) for call in thread_calls(random, tid, ends)]
    import_calls(s, s.db, calls)
    work, recordings = [], []
    for pid, *_, end, _, _ in random.choices(calls, k=random.randrange(1, 60)):
        begin = end + random.choice((-1, 0, 0, 5, random.randrange(200)))
        kind = random.choice(kinds)
        work.append((pid, kind, random.choice("abc") if kind == "kernel" else None, random.randrange(2), random.randrange(3), max(begin, 0),
                     max(begin, 0) + random.choice((0, 1, 10, random.randrange(100))), None, end if random.random() < 0.8 else None))
        recordings.append(random.choice((0, 1, 1, 2)) if random.random() < 0.3 else begin // 400 + 1)
    add_work(s.db, work)
    with contextlib.closing(sqlite3.connect(s.db)) as db:
        for number, recording in enumerate(recordings, 1):
            db.execute("UPDATE correlation SET correlation = correlation + (?1 << 32) WHERE correlation = ?2", (recording, number))
            db.execute("UPDATE gpu_run SET correlation = correlation + (?1 << 32) WHERE run_id = ?2", (recording, number))
        for number, in db.execute("SELECT run_id FROM gpu_run").fetchall():
            db.execute("UPDATE gpu_run SET queued_ns = ?, bytes = ? WHERE run_id = ?",
                       (random.choice((None, 0, random.randrange(1000))), random.choice((None, random.randrange(5000))), number))
            db.execute("UPDATE gpu_task SET graph = ? WHERE gpu_task_id = ?", (random.randrange(3), number))
        db.execute("UPDATE gpu_run SET correlation = NULL WHERE run_id % 10 = ?", (random.randrange(20),))
        db.execute("DELETE FROM kernel WHERE name_id % 3 = ?", (random.randrange(6),))
        db.execute("DELETE FROM gpu_device WHERE process_id = ?", (random.randrange(1, 4),))
        db.execute("UPDATE name SET demangled = 'demangled ' || mangled")
        db.commit()
    return work


def divide(s, random):
    """Divides a trace into three files. A call may be in another file than its work. Its file may be gone although its correlation was
    copied. Some calls have expired."""
    paths = [s.db, s.dir / "trace.2.db", s.dir / "trace.3.db"]
    calls = [call_id for call_id, in s.rows("SELECT call_id FROM calls ORDER BY 1")]
    bounds = [0, *sorted(random.choices(calls, k=2)), calls[-1]]
    for path in paths[1:]:
        shutil.copy(s.db, path)
    for number, path in enumerate(paths):
        its = bounds[number:number + 2]
        with contextlib.closing(sqlite3.connect(path)) as db:
            db.execute("DELETE FROM call WHERE NOT (end_ns > ? AND end_ns <= ?)", its)
            db.execute("DELETE FROM correlation WHERE NOT (call_id > ? AND call_id <= ?) AND correlation % 5 > 0", its)
            db.execute("DELETE FROM gpu_run WHERE run_id * 7 / 4 % 3 <> ?", (number,))
            db.execute("UPDATE gpu_task SET gpu_task_id = 3 * gpu_task_id + ?", (1000 - number,))
            db.execute("UPDATE gpu_run SET gpu_task_id = 3 * gpu_task_id + ?", (1000 - number,))
            db.execute("UPDATE kernel SET name_id = name_id + ?", (number,))
            db.execute("UPDATE name SET name_id = -name_id - ?", (number,))
            db.execute("UPDATE name SET name_id = -name_id")
            db.execute("DELETE FROM gpu_device WHERE process_id + ? = 3", (number,))
            db.commit()
        expire(path, random.choice(calls) if random.random() < 0.3 else 0)


def expire(path, before_ns):
    """Marks calls as expired, although they are still in the trace."""
    with contextlib.closing(sqlite3.connect(path)) as db:
        db.execute("INSERT OR REPLACE INTO meta VALUES ('expired_before_ns', ?)", (before_ns,))
        db.commit()


def at_random():
    for seed in range(by_tier(4, 8, 40)):
        chosen = random.Random(seed)
        with Session() as s:
            work = random_trace(s, chosen, ("HtoD", "set") if seed % 4 == 3 else ("kernel", "kernel", "HtoD", "set", "graph"))
            times = sorted((BASE_US + piece[at]) * 1000 for piece in work for at in (5, 6))
            windows = [(None, None), (None, chosen.choice(times)), (chosen.choice(times), None), sorted(chosen.choices(times, k=2))]
            for bounds in windows:
                for pid in None, 7, 9:
                    compare(s, f"trace {seed}", bounds, pid)
            expire(s.db, chosen.choice(times))
            compare(s, f"trace {seed} with expired calls")
            divide(s, chosen)
            for bounds, pid in (windows[0], None), (windows[0], 7), (windows[3], None), (windows[3], 9):
                compare(s, f"the files of trace {seed}", bounds, pid)
            check_runs(s)


def check_runs(s):
    """Checks that the sections on a run have only its work. Each of the processes is a run of its own."""
    sections = "work", "queue"
    for number in 1, 2, 3:
        with contextlib.closing(sqlite3.connect(s.dir / f"trace.{number}.db" if number > 1 else s.db)) as db:
            db.execute("INSERT OR IGNORE INTO run SELECT process_id, process_id FROM process")
            db.execute("UPDATE process SET run_id = process_id")
            db.commit()
    for pid, run_id in sql(s, "SELECT pid, run_id FROM processes"):
        equal(s.report("--run", run_id, *sections), s.report("--pid", pid, *sections), f"the work of run {run_id}")


def long_gaps():
    """The first gap contains more calls than are kept, and the second is within them. A third thread's call ends while the gap begins."""
    with Session() as s:
        last_us = 2 * KEPT
        import_calls(s, s.db, [(7, 7, "cuLaunchKernel", 10, 20, 0, {}), (7, 7, "cuMemAlloc_v2", 50, 60, 0, {}),
                               (7, 7, "cuStreamSynchronize", last_us, last_us + 10, 0, {}), (7, 7, "cuLaunchKernel", last_us + 20, last_us + 30, 0, {}),
                               (7, 7, "cuLaunchKernel", last_us + 60, last_us + 70, 0, {}), (9, 9, "cuStreamQuery", 90, 100, 0, {})])
        with contextlib.closing(sqlite3.connect(s.db)) as db:
            db.execute("INSERT INTO call (duration_ns, site_id, end_ns) WITH RECURSIVE other(end_ns) AS (SELECT end_ns + 1000 FROM call WHERE end_ns = ?1 UNION "
                       "ALL SELECT end_ns + 1000 FROM other WHERE end_ns < ?2) SELECT 500, (SELECT site_id FROM call WHERE end_ns = ?1), end_ns FROM other",
                       ((BASE_US + 100) * 1000, (BASE_US + last_us - 1) * 1000))
            db.commit()
        add_work(s.db, [(7, "kernel", "a", 0, 7, 25, 40, None, 20), (7, "kernel", "b", 0, 7, last_us + 40, last_us + 50, None, last_us + 30),
                        (7, "kernel", "a", 0, 7, last_us + 75, last_us + 80, None, last_us + 70), (9, "kernel", "a", 1, 7, 10, 20, None, None),
                        (9, "kernel", "a", 1, 7, last_us + 90, last_us + 95, None, 100)])
        compare(s, "long gaps")


at_random()
long_gaps()
