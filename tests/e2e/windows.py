"""Tests queries on every view for the calls that returned, began or were in progress within a window of the trace. The queries must not
read all rows, but must find the same calls as queries that do, even calls that last longer than the window."""
import contextlib
import random
import sqlite3

from cudatrace_test import HungCall, Session, WORKLOADS, check, equal, seed

LONG_NS = 100000000  # as in collector/store/stored_calls.c
VIEWS = ("calls", "launches", "copies", "memsets", "waits")
BEGAN = ("start_ns BETWEEN :from AND :to AND (call_id BETWEEN :from AND :to + 100000000 OR "
         "call_id IN (SELECT call_id FROM long_calls WHERE start_ns BETWEEN :from AND :to))")
WENT_ON = ("start_ns <= :to AND (call_id BETWEEN :from AND :to + 100000000 OR "
           "call_id IN (SELECT call_id FROM long_calls WHERE start_ns <= :to AND call_id >= :from))")
RETURNED = "call_id BETWEEN :from AND :to"
# A unary plus before a column prevents SQLite from using an index on the column, so that these queries read every row.
ALL_READ = {
    BEGAN: "+start_ns BETWEEN :from AND :to",
    WENT_ON: "+start_ns <= :to AND +call_id >= :from",
    RETURNED: "+call_id BETWEEN :from AND :to",
}


def check_window(connection, view, window):
    for where, all_read in ALL_READ.items():
        found, wanted = (connection.execute(f"SELECT call_id FROM {view} WHERE {condition} ORDER BY call_id", window).fetchall()
                         for condition in (where, all_read))
        equal(found, wanted, f"{view} WHERE {where} {window}")


with Session() as s:
    s.start_daemon()
    # One call lasts from the first of the other calls to the last. Some calls take longer than a tenth of a second, but most take almost no
    # time.
    with HungCall(s, "--calls", 10, stdout=-3) as longest:
        programs = [s.start(WORKLOADS / "hang", "--calls", 50, env={"SIMCUDA_LATENCY": "cuCtxSynchronize=150000000"}, stdout=-3),
                    s.start(WORKLOADS / "hang", "--calls", 50, env={"SIMCUDA_LATENCY": "cuCtxSynchronize=90000000"}, stdout=-3),
                    s.start(WORKLOADS / "calls", "--calls", 4000, "--threads", 3, "--mix", "training", "--rate", 10000, stdout=-3),
                    s.start(WORKLOADS / "calls", "--calls", 4000, "--mix", "copy", "--rate", 10000, stdout=-3)]
        equal([p.wait() for p in programs], [0] * len(programs), "statuses")
        longest.release()
    s.flush()

    equal(s.rows("SELECT call_id, start_ns, duration_ns FROM long_calls ORDER BY call_id"),
          s.rows("SELECT call_id, start_ns, duration_ns FROM calls WHERE duration_ns > ? ORDER BY call_id", LONG_NS),
          "the long calls")
    check(s.value("SELECT count(*) FROM long_calls") >= 2, "long calls are not there")
    with contextlib.closing(sqlite3.connect(f"file:{s.db}?mode=ro", uri=True)) as connection:
        first, last = connection.execute("SELECT min(start_ns), max(end_ns) FROM calls").fetchone()
        starts = [row[0] for row in connection.execute("SELECT start_ns FROM calls")]
        choice = random.Random(seed())
        for _ in range(12):
            start = choice.choice((choice.randrange(first, last), choice.choice(starts)))
            window = {"from": start, "to": start + choice.choice((0, 1000, 10**6, 10**8, 10**9))}
            for view in VIEWS:
                check_window(connection, view, window)
        for where in ALL_READ:
            for view in VIEWS:
                plan = [row[3] for row in connection.execute(
                    f"EXPLAIN QUERY PLAN SELECT count(*) FROM {view} WHERE {where}", window)]
                read = [step for step in plan if step.split()[0] == "SCAN"
                        and step.split()[1] in ("call", "launch", "transfer", "call_subject")]
                equal(read, [], f"tables read from end to end for {view} WHERE {where}")
    s.check_identity()
