"""Measures the age of calls when they first become visible to SQL, without any flush. Programs make calls at a steady rate, while a
reader queries the newest call through its own connection."""
import sqlite3
import statistics
import subprocess
import sys
import time

from cudatrace_test import Session
from figures import emit
from scene import calls

PROCESSES, SECONDS, ROUNDS, POLL_S = 4, 10, 3, 0.002
RATES = {"busy": 100000, "quiet": 40}  # calls per second, of all processes together


def watch(path, programs):
    """Queries the newest call until the programs have exited. Returns [(time of the query, newest call at that time)], in order."""
    seen = []
    connection = sqlite3.connect(f"file:{path}?mode=ro", uri=True, timeout=30)
    newest = 0
    while any(program.poll() is None for program in programs):
        row = connection.execute("SELECT call_id FROM calls ORDER BY call_id DESC LIMIT 1").fetchone()
        now = time.monotonic_ns()
        if row and row[0] > newest:
            newest = row[0]
            seen.append((now, newest))
        time.sleep(POLL_S)
    connection.close()
    return seen


def ages_ms(ends, seen):
    """Returns the age of each call at the time of the first query that could see it."""
    ages, look = [], 0
    for end in ends:
        while look < len(seen) and seen[look][1] < end:
            look += 1
        if look == len(seen):
            break  # arrived after the last query
        ages.append((seen[look][0] - end) / 1e6)
    return ages


def measure(rate):
    with Session() as s:
        s.start_daemon()
        each = rate // PROCESSES
        programs = [s.start(*calls("--rate", each, "--burst", max(1, rate // 10000), "--calls", each * SECONDS,
                                   "--mix", "training"), stdout=subprocess.DEVNULL) for _ in range(PROCESSES)]
        seen = watch(s.db, programs)
        if any(program.returncode for program in programs):
            sys.exit("latency: a program failed")
        s.flush()
        if s.value("SELECT sum(lost) FROM totals") or s.value("SELECT count(*) FROM late_call"):
            sys.exit("latency: calls were lost or came late: ages would not be those of all")
        ends = [row[0] for row in s.rows("SELECT call_id FROM calls ORDER BY call_id")]
    ages = sorted(ages_ms(ends, seen))
    made = len(ends) / (ends[-1] - ends[0]) * 1e9
    return statistics.median(ages), ages[len(ages) * 99 // 100], ages[-1], made


def run(_build, _options):
    for name, rate in RATES.items():
        rounds = [measure(rate) for _ in range(ROUNDS)]
        for figure, values in zip(("age_p50", "age_p99", "age_max"), zip(*rounds)):
            emit("latency", f"{name}_{figure}", values, "ms", target=("<=", 250) if figure == "age_max" else None)
        emit("latency", f"{name}_calls_per_s", [made for *_, made in rounds], "calls/s")
