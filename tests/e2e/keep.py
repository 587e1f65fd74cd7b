"""Tests cudatraced --keep. While new calls are stored, old calls must be removed in the order of their return, with all rows that refer to
them. The file must stop growing, and the sums must include the removed calls. A later daemon must continue to remove old calls."""
import contextlib
import signal
import subprocess
import time

from cudatrace_test import Session, WORKLOADS, by_tier, check, equal, fifo, wait_for

KEEP_S = 2
BUSY_S = by_tier(6, 14)  # seconds of calls, most of which expire during that time
PARTS = ("launch", "transfer", "call_subject", "long_call", "late_call", "range", "hook_call", "graph", "graph_launch")


def check_whole(s):
    """Checks that a call and the rows that belong to it are always removed together. Each check is a single query, because rows may be
    removed between two queries."""
    for part in PARTS:
        equal(s.value(f"SELECT count(*) FROM {part} WHERE call_id NOT IN (SELECT end_ns FROM call)"), 0,
              f"rows of {part} without a call")
    equal(s.rows("SELECT * FROM (SELECT (SELECT count(*) FROM call) AS rows, (SELECT count(*) FROM calls) AS shown) "
                 "WHERE rows <> shown"), [], "calls that lack a part")
    equal(s.rows("SELECT * FROM (SELECT (SELECT count(*) FROM call JOIN site USING (site_id) JOIN function "
                 "USING (function_id) WHERE name = 'cuLaunchKernel' AND status = 0) AS called, (SELECT count(*) FROM launches "
                 "JOIN calls USING (call_id) WHERE name = 'cuLaunchKernel' AND kernel IS NOT NULL) AS shown) "
                 "WHERE called <> shown"), [], "launches that lack a part")
    s.check_identity()


def wait_until_gone(s, before_ns):
    """Waits until all calls that returned before the given time have expired and been removed. This must happen although no new calls are
    made."""
    newest_ns = s.value("SELECT ifnull(max(call_id), 0) FROM calls WHERE call_id < ?", before_ns)
    wait_for("old calls to go", lambda: s.rows("SELECT call_id FROM calls WHERE call_id < ? LIMIT 1", before_ns) == [])
    check(time.monotonic_ns() - newest_ns >= KEEP_S * 10**9, "calls went before their time")


def steady(s, seconds, rate=10000):
    return s.start(WORKLOADS / "calls", "--threads", 2, "--mix", "training", "--rate", rate, "--calls", seconds * rate,
                   stdout=-3)


with Session() as s, fifo(s.dir, "hold") as hold:
    s.start_daemon("--keep", f"{KEEP_S}s")
    held = s.start(WORKLOADS / "calls", "--calls", 1000, "--mix", "training", "--hold", hold)
    program = steady(s, BUSY_S)
    sizes = []
    while program.poll() is None:
        s.flush()
        asked_ns = time.monotonic_ns()
        expired_ns = s.value("SELECT max(value) FROM (SELECT value FROM meta WHERE key = 'expired_before_ns' UNION ALL SELECT 0)")
        check(expired_ns <= time.monotonic_ns() - KEEP_S * 10**9, "calls were taken away that are to be kept")
        # The trace must contain all calls that have not expired, and the sums must include the expired calls.
        check_whole(s)
        # Note the size of the database, and the number of calls in it, which varies on a busy machine.
        sizes.append((asked_ns, s.value("PRAGMA page_count"), s.value("SELECT count(*) FROM call")))
        with contextlib.suppress(subprocess.TimeoutExpired):
            program.wait(0.2)
    equal(program.returncode, 0, "the program's status")
    s.flush()
    check(s.value("SELECT sum(expired) FROM totals") > (BUSY_S - 2 * KEEP_S) * 10000, "hardly a call has gone")
    s.check_truth()
    # New rows must reuse the pages of removed rows, so that the file does not grow.
    most = [max(column) for column in zip(*(size[1:] for size in sizes))]
    early = [max(column) for column in zip(*(size[1:] for size in sizes if size[0] - sizes[0][0] < 2 * KEEP_S * 10**9))]
    print("pages and calls at most, early:", early, "later:", most)
    check(most[0] / early[0] < 1.5 * most[1] / early[1], "the file grew with what had gone")

    # Recent calls stay in the trace.
    young = s.run(WORKLOADS / "calls", "--calls", 500, "--mix", "training")
    began_ns = time.monotonic_ns()
    s.flush()
    found = s.rows("SELECT (SELECT sum(expired) FROM totals WHERE process_id = last), (SELECT sum(stored) FROM totals "
                   "WHERE process_id = last), (SELECT count(*) FROM calls WHERE process_id = last) "
                   "FROM (SELECT max(process_id) AS last FROM processes)")[0]
    if time.monotonic_ns() - began_ns < KEEP_S * 10**9 / 2:
        check(found[0] == 0 and found[1] == found[2] >= 500, "young calls that are not there", found)

    # Once no more calls are made, the remaining calls expire. After that, the program that was held exits.
    now_ns = time.monotonic_ns()
    wait_until_gone(s, now_ns)
    equal(s.value("SELECT count(*) FROM call"), 0, "calls left")
    s.check_truth()
    equal(s.value("SELECT sum(stored) - sum(expired) FROM totals"), 0, "stored calls that have not expired")
    with open(hold, "w") as end:
        end.write("\n")
    equal(held.wait(), 0, "the held program's status")

    # Later daemons continue with the trace after a daemon was stopped, after a daemon was killed, and without --keep.
    s.stop_daemon()
    s.start_daemon("--keep", f"{KEEP_S}s")
    program = steady(s, 3)
    wait_for("its calls", lambda: s.value("SELECT count(*) FROM calls") >= 10000)
    s.daemon.send_signal(signal.SIGKILL)
    s.daemon.wait()
    s.start_daemon("--keep", f"{KEEP_S}s")
    equal(program.wait(), 0, "the program's status")
    s.flush()
    check_whole(s)
    s.check_truth()
    wait_until_gone(s, time.monotonic_ns())
    s.stop_daemon()
    s.start_daemon()
    equal(steady(s, 1).wait(), 0, "the program's status")
    s.flush()
    check_whole(s)
    equal(s.value("SELECT count(*) FROM copies") + s.value("SELECT count(*) FROM memsets") > 0, True, "copies are there")
    s.check_truth()
    # The rows and sums of processes that exited long ago are kept.
    equal(s.value("SELECT count(*) FROM processes"), 5, "processes")

# A daemon started by `run` keeps calls for the time given with --keep.
with Session() as s:
    s.cudatrace("run", "--db", s.db, "--keep", "1h", "--", WORKLOADS / "calls", "--calls", 1000)
    check(s.value("SELECT count(*) FROM calls") >= 1000, "young calls that are not there")
    equal(s.value("SELECT sum(expired) FROM totals"), 0, "expired")
