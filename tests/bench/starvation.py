"""Measures programs that make more calls than the collector can store. Eight processes each try to make a million calls per second, and
one process makes a thousand. Losses must be counted for each process, and the slow process should lose nothing. A program must never wait
for the collector, so traced calls must take hardly more CPU time than untraced ones. The achieved rate is not checked, because the daemon
may occupy a processor that the programs would otherwise use."""
import subprocess
import sys
import time

from cudatrace_test import Session
from figures import emit
from scene import calls, cpu_of_ended_s

FAST, RATE, SECONDS, ROUNDS = 8, 1000000, 3, 3
SLOW_RATE = 1000


def start_all(s, preload):
    """Returns (rate, average CPU time per call, pid of the slow program, pids of the fast programs). The rate is the average call rate of
    the fast program that took longest."""
    before = cpu_of_ended_s()
    slow = s.start(*calls("--rate", SLOW_RATE, "--calls", SLOW_RATE * SECONDS), preload=preload,
                   stdout=subprocess.DEVNULL)
    start = time.monotonic()
    fast = [s.start(*calls("--rate", RATE, "--burst", 100, "--calls", RATE * SECONDS), preload=preload,
                    stdout=subprocess.PIPE) for _ in range(FAST)]
    rates = []
    for program in fast:
        if not program.stdout.readline().endswith(b"ok\n"):
            sys.exit("starvation: a program failed")
        rates.append(RATE * SECONDS / (time.monotonic() - start))
    if any([program.wait(60) for program in (slow, *fast)]):
        sys.exit("starvation: a program failed")
    cpu_ns = (cpu_of_ended_s() - before) * 1e9 / (FAST * RATE + SLOW_RATE) / SECONDS
    return min(rates), cpu_ns, slow.pid, [program.pid for program in fast]


def lost_share(s, pid):
    """Returns the share of the process's calls that were lost. If the trace has several processes with this pid, uses the last of them,
    because the trace begins a new process at an exec."""
    return s.value("SELECT 1.0 * sum(lost + skipped) / sum(calls) FROM totals WHERE process_id = "
                   "(SELECT max(process_id) FROM processes WHERE pid = ?)", pid)


def lost_of_more(s):
    """Returns the share of all launches, copies, memsets and allocations that were lost."""
    return s.value("SELECT 1.0 * sum(lost + skipped) / sum(calls) FROM totals WHERE category IN ('launch', 'copy', 'set', 'memory') "
                   "AND name NOT LIKE '%Get%'")


def run(_build, _options):
    rates, cpu_ns = {True: [], False: []}, {True: [], False: []}
    slow_lost, least, most, stored, more_lost, over_capacity = [], [], [], [], [], []
    for number in range(ROUNDS):
        for preload in (True, False) if number % 2 == 0 else (False, True):
            with Session() as s:
                if not preload:
                    rate, cpu, _, _ = start_all(s, False)
                    rates[False].append(rate)
                    cpu_ns[False].append(cpu)
                    continue
                s.start_daemon()
                start = time.monotonic()
                rate, cpu, slow, fast = start_all(s, True)
                s.flush()
                seconds = time.monotonic() - start
                rates[True].append(rate)
                cpu_ns[True].append(cpu)
                # Check that the stored and the lost calls of each process add up to the driver's own count.
                s.check_identity(lost=None)
                s.check_truth()
                shares = [lost_share(s, pid) for pid in fast]
                slow_lost.append(lost_share(s, slow))
                least.append(min(shares))
                most.append(max(shares))
                stored.append(s.value("SELECT sum(stored) FROM totals") / seconds)
                more_lost.append(lost_of_more(s))
                over_capacity.append(s.value("SELECT 1.0 * sum(calls) / sum(stored) FROM totals"))
    emit("starvation", "untraced_slowest_calls_per_s", rates[False], "calls/s")
    emit("starvation", "traced_slowest_calls_per_s", rates[True], "calls/s")
    emit("starvation", "traced_over_untraced", [t / u for t, u in zip(rates[True], rates[False])], "ratio")
    emit("starvation", "untraced_cpu_per_call", cpu_ns[False], "ns")
    emit("starvation", "traced_cpu_per_call", cpu_ns[True], "ns")
    emit("starvation", "stored_per_s", stored, "calls/s")
    emit("starvation", "fast_lost_share_least", least, "share")
    emit("starvation", "fast_lost_share_most", most, "share")
    emit("starvation", "made_over_stored", over_capacity, "ratio")
    emit("starvation", "launches_copies_allocations_lost_share", more_lost, "share", target=("<=", 0))
    emit("starvation", "slow_lost_share", slow_lost, "share", target=("<=", 0))
