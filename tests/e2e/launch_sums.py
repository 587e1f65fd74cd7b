"""Compares the functions that sum up launches in one pass with the same sums over the views, on random traces: with several processes, kernels,
shapes, graphs and captures, launches that overlap, windows and selected processes."""
import contextlib
import random
import sqlite3

from cudatrace_test import Session, by_tier, check
from exact_trace import BASE_US, import_calls
from series_test import value
from sums_test import compare_pairs

ASKED = "(:pid IS NULL OR process_id IN (SELECT process_id FROM processes WHERE pid = :pid))"
WINDOW = "call_id BETWEEN ifnull(:from, 0) AND ifnull(:to, 9223372036854775807)"
BEGUN = "call_id >= ifnull(:from, 0) AND (:to IS NULL OR start_ns <= :to)"  # also after the window
STEPS = f"""WITH step AS MATERIALIZED (
    SELECT process_id, call_id, start_ns, 1 AS kernels FROM launches WHERE captured = 0 AND {BEGUN} AND {ASKED}
     UNION ALL
    SELECT process_id, call_id, start_ns, max(1, ifnull(kernel_nodes, 1)) FROM graph_launches
     WHERE captured = 0 AND {BEGUN} AND {ASKED}
),
gap AS MATERIALIZED (
    SELECT *, lag(call_id) OVER (PARTITION BY process_id ORDER BY call_id) AS from_ns,
           start_ns - lag(call_id) OVER (PARTITION BY process_id ORDER BY call_id) AS ns
      FROM step WHERE {WINDOW}
)"""
KINDS = "process_id, graph_exec, captured, kernel, grid_x, grid_y, grid_z, block_x, block_y, block_z"
SUMS = f"""sum({WINDOW}), sum(iif({WINDOW}, duration_ns, 0)), max(iif({WINDOW}, duration_ns, 0)), min(call_id), min(start_ns), max(call_id)"""


def slices(now_ns):
    return (f"SELECT process_id, slice, kernels, begun_ns, last_begun_ns, last_id FROM launch_slices(:from, :to, :pid, {now_ns})",
            STEPS + f""", run AS MATERIALIZED (
    SELECT process_id, max(started_ns, ifnull(:from, 0)) AS run_from_ns,
           min(ifnull(ended_ns, max(started_ns, ifnull({now_ns}, 0), (SELECT max(call_id) FROM calls))), ifnull(:to, 9223372036854775807)) AS run_to_ns
      FROM processes
)
SELECT process_id, (start_ns - run_from_ns) / max(1, (run_to_ns - run_from_ns) / 500) AS slice, sum(kernels), min(start_ns), max(start_ns), max(call_id)
  FROM step JOIN run USING (process_id) WHERE start_ns BETWEEN run_from_ns AND run_to_ns GROUP BY 1, 2""")


# Functions over all calls, with the views that they are like.
CALLS = {
    "calls": ("""SELECT process_id, tid, layer, name, category, calls, total_ns, inside_ns, min_ns, max_ns, failed, bytes
                   FROM call_sums(:from, :to, :pid)""",
              f"""SELECT process_id, tid, layer, name, category, count(*), sum(duration_ns), sum(call_id - max(start_ns, ifnull(:from, 0))),
                         min(duration_ns), max(duration_ns), sum(status NOT IN (0, 600)), sum(iif(status = 0, ifnull(bytes, 0), 0))
                    FROM calls WHERE {WINDOW} AND {ASKED} GROUP BY process_id, tid, layer, name"""),
    "durations": ("SELECT process_id, layer, name, category, sum(calls) FROM call_durations(:from, :to, :pid) GROUP BY 1, 2, 3",
                  f"SELECT process_id, layer, name, category, count(*) FROM calls WHERE {WINDOW} AND {ASKED} GROUP BY process_id, layer, name"),
    "bounds of durations": (f"""SELECT call_id FROM calls WHERE {WINDOW} AND {ASKED} AND NOT EXISTS
                                   (SELECT 1 FROM call_durations(:from, :to, :pid) AS counted
                                     WHERE counted.process_id = calls.process_id AND counted.name = calls.name
                                       AND duration_ns >= counted.from_ns AND duration_ns < counted.below_ns)""",
                            "SELECT 1 WHERE 0"),
    "durations of the run": ("SELECT process_id, layer, name, from_ns, below_ns, calls FROM call_durations(NULL, NULL, :pid)",
                             f"SELECT process_id, layer, name, from_ns, below_ns, calls FROM durations WHERE {ASKED}"),
}
PAIRS = CALLS | {
    "sums": (f"""SELECT {KINDS}, sum(launches), sum(total_ns), max(longest_ns), min(first_id), min(begun_ns), max(last_id)
                   FROM launch_sums(:from, :to, :pid) GROUP BY {KINDS}""",
             f"""SELECT process_id, NULL, captured, kernel, grid_x, grid_y, grid_z, block_x, block_y, block_z, {SUMS}
                   FROM launches WHERE {BEGUN} AND {ASKED} GROUP BY process_id, captured, kernel, grid_x, grid_y, grid_z, block_x,
                        block_y, block_z
                  UNION ALL
                 SELECT process_id, graph_exec, captured, NULL, 0, 0, 0, 0, 0, 0, {SUMS}
                   FROM graph_launches WHERE {BEGUN} AND {ASKED} GROUP BY process_id, captured, graph_exec"""),
    "processes": ("SELECT process_id, launches, begun_ns, last_id, gaps, gaps_ns, longest_ns FROM launch_process_sums(:from, :to, :pid)",
                  STEPS + """SELECT process_id, count(*), min(start_ns), max(call_id), ifnull(sum(ns > 1000000), 0), sum(iif(ns > 1000000, ns, 0)), max(ns)
                               FROM gap GROUP BY process_id"""),
    "gaps": ("SELECT process_id, from_ns, to_ns FROM launch_gaps(:from, :to, :pid)",
             STEPS + "SELECT process_id, from_ns, start_ns FROM gap WHERE ns > 1000000 ORDER BY ns DESC, call_id LIMIT 15"),
    "around": ("SELECT process_id, is_before, is_after FROM launch_around(:from, :to, :pid)",
               f"""SELECT process_id, max(call_id < ifnull(:from, 0)), max(call_id > ifnull(:to, 9223372036854775807))
                     FROM (SELECT process_id, call_id FROM launches UNION ALL SELECT process_id, call_id FROM graph_launches)
                    WHERE {ASKED} GROUP BY process_id"""),
    "slices": slices("NULL"),
    "slices until now": slices("9000000000"),
}


def random_trace(s, chosen):
    """Makes a trace of launches, some of which are turned into captures and into launches of graphs. Returns the times of all calls."""
    calls, ends = [], set()
    for tid in 70, 71, 90:
        at = chosen.randrange(50)
        for _ in range(chosen.randrange(20, 120)):
            begin, at = at, at + chosen.choice((chosen.randrange(1, 40), chosen.randrange(1, 40), chosen.randrange(90000, 300000)))
            while at in ends:
                at += 1
            ends.add(at)
            details = {"kernel": chosen.choice("abc"), "grid_x": chosen.choice((1, 2)), "block_x": chosen.choice((32, 64))}
            name = chosen.choice(("cuLaunchKernel", "cuLaunchKernel", "cuMemAlloc_v2"))
            calls.append((tid // 10, tid, name, begin, at, 0, details if name == "cuLaunchKernel" else {}))
            at += chosen.choice((0, 3, 20, 1500, chosen.randrange(4000), 400000))
    import_calls(s, s.db, calls)
    with contextlib.closing(sqlite3.connect(s.db)) as db:
        shapes = [shape for shape, in db.execute("SELECT shape_id FROM shape")]
        db.executemany("UPDATE shape SET captured = 1 WHERE shape_id = ?", [(shape,) for shape in shapes if chosen.random() < 0.2])
        for call_id, process_id in db.execute("SELECT call_id, process_id FROM launch").fetchall():
            if chosen.random() < 0.2:
                db.execute("DELETE FROM launch WHERE call_id = ?", (call_id,))
                db.execute("INSERT INTO graph_launch VALUES (?, ?, ?, ?, 0, ?)",
                           (call_id, process_id, chosen.choice((16, 32)), chosen.choice((None, 0, 3)), chosen.random() < 0.2))
        if chosen.random() < 0.5:
            db.execute("UPDATE process SET ended_ns = NULL, state = 'running' WHERE pid = 9")
        db.commit()
    return [(BASE_US + end) * 1000 for end in ends]


gaps = 0
for seed in range(by_tier(4, 8, 40)):
    chosen = random.Random(seed)
    with Session() as session:
        times = random_trace(session, chosen)
        for bounds in (None, None), (None, chosen.choice(times)), (chosen.choice(times), None), sorted(chosen.choices(times, k=2)):
            for pid in None, 7, 9:
                compare_pairs(session, PAIRS, f"trace {seed}", bounds, pid)
        gaps = max(gaps, value(session, "SELECT count(*) FROM launch_gaps()"))
check(gaps == 15, "no trace has more gaps than are kept:", gaps)
