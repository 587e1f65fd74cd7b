"""Measures live tracing by the hook and the daemon, both with default settings. The call rate is increased until calls are lost. One or
more programs make the calls of a PyTorch training run (tests/workloads/mix.c) on the simulated driver, all at the same rate. Reports the
total rate where losses begin, the daemon's CPU time per call and its breakdown, and how many bytes the daemon writes. Also reports the cost
of traced calls compared with untraced ones."""
import collections
import os
import shutil
import subprocess
import sys
import time

from cudatrace_test import Session
from figures import emit, emit_missing
from scene import Daemon, calls, cpu_of_ended_s

SECONDS, ROUNDS = 2, 3
RATES = (200_000, 400_000, 600_000, 800_000, 1_000_000, 1_500_000, 2_000_000, 3_000_000)  # calls a second of each program
PROGRAMS = (1, 2, 4, 8, 16)
BURSTS = 1000  # bursts a second
HOTTEST = 12

Seen = collections.namedtuple("Seen", "made_per_s lost skipped stored daemon_ns cpu_ns kept_bytes written_bytes")


def run_programs(s, count, rate, preload):
    """Returns (the number of calls per second that all programs together made, CPU time per call in nanoseconds)."""
    before, start = cpu_of_ended_s(), time.monotonic()
    programs = [s.start(*calls("--rate", rate, "--burst", rate // BURSTS, "--calls", rate * SECONDS, "--seed", number + 1), preload=preload,
                        stdout=subprocess.DEVNULL) for number in range(count)]
    if any([program.wait(120) for program in programs]):
        sys.exit("live: a program failed")
    made = count * rate * SECONDS
    return made / (time.monotonic() - start), (cpu_of_ended_s() - before) * 1e9 / made


def live(count, rate):
    with Session() as s:
        daemon = Daemon(s.start_daemon().pid)
        before_s, before_bytes, size = daemon.cpu_s(), daemon.written_bytes(), s.db.stat().st_size
        made_per_s, cpu_ns = run_programs(s, count, rate, True)
        s.flush()
        used_s = daemon.cpu_s() - before_s
        s.check_sums(lost=None)  # do not check each row: with twenty million, that takes minutes
        s.check_truth()
        stored, lost, skipped = s.rows("SELECT sum(stored), sum(lost), sum(skipped) FROM totals")[0]
        written = daemon.written_bytes() - before_bytes
        s.stop_daemon()  # this writes the log into the database
        return Seen(made_per_s, lost, skipped, stored, used_s * 1e9 / stored, cpu_ns, (s.db.stat().st_size - size) / stored, written / stored)


def untraced_cpu_ns(count, rate):
    with Session() as s:
        return run_programs(s, count, rate, False)[1]


def hottest(count, rate):
    """Returns {function: share of the daemon's CPU time} as measured by perf. Returns None if perf is missing or not permitted."""
    if not shutil.which("perf"):
        return None
    with Session() as s:
        data = s.dir / "perf.data"
        record = s.start("perf", "record", "-q", "-o", data, "-p", s.start_daemon().pid, preload=False, stderr=subprocess.DEVNULL)
        run_programs(s, count, rate, True)
        s.flush()
        s.stop_daemon()
        if record.wait(60):
            return None
        said = s.run("perf", "report", "-q", "-i", data, "--stdio", "--sort", "symbol", preload=False).stdout
    rows = [line.split() for line in said.splitlines() if "%" in line]  # "12.34%  [.] name", the largest first
    return {row[2]: float(row[0].rstrip("%")) / 100 for row in rows[:HOTTEST]}


def climb(count):
    """Increases the call rate until calls are lost. Returns (results at the last rate without losses, results at the first rate with
    losses)."""
    whole = None
    for rate in RATES:
        seen = live(count, rate)
        print(f"live: {count} programs, {rate} wanted of each: {seen}", file=sys.stderr, flush=True)
        if seen.lost or seen.skipped:
            return whole, seen
        whole = seen
    return whole, None


def run(_build, options):
    processors = len(os.sched_getaffinity(0))
    for count in options.programs or [count for count in PROGRAMS if count <= max(2, processors)]:
        rounds = [climb(count) for _ in range(ROUNDS)]
        kept = [whole for whole, _ in rounds if whole]
        more = {"programs": count, "processors": processors}
        emit("live", f"{count}_programs_no_loss_to", [whole.made_per_s if whole else 0 for whole, _ in rounds], "calls/s", **more)
        emit("live", f"{count}_programs_daemon_cpu_per_call", [whole.daemon_ns for whole in kept], "ns", **more)
        emit("live", f"{count}_programs_stored_under_loss", [first.stored / SECONDS for _, first in rounds if first], "calls/s", **more)
        emit("live", f"{count}_programs_lost_share",
             [first.lost / (first.lost + first.skipped + first.stored) for _, first in rounds if first], "share", **more)
        emit("live", f"{count}_programs_skipped_share",
             [first.skipped / (first.lost + first.skipped + first.stored) for _, first in rounds if first], "share", **more)
        emit("live", f"{count}_programs_bytes_per_call", [whole.kept_bytes for whole in kept], "bytes", **more)
        emit("live", f"{count}_programs_bytes_written_per_call", [whole.written_bytes for whole in kept], "bytes", **more)
        at = RATES[1]
        pairs = [(live(count, at).cpu_ns, untraced_cpu_ns(count, at)) for _ in range(ROUNDS)]
        emit("live", f"{count}_programs_added_per_call", [traced - untraced for traced, untraced in pairs], "ns", rate=at, **more)
    count, rate = min(2, processors), RATES[3]
    shares = hottest(count, rate)
    if not shares:
        emit_missing("live", "daemon_time_by_function", "no perf here that may look at the daemon")
    for name, share in (shares or {}).items():
        emit("live", f"daemon_time_in {name}", [share], "share", programs=count, rate=rate)
