"""Stops the daemon while a program makes more calls than its ring can hold. Checks that low-priority calls are dropped before the ring is
full, and are counted as skipped. Important calls that do not fit into the rest of the ring are counted as lost. The counts of skipped and
lost calls are exact, by function and by thread. The reserve for important calls grows with their share of the ring, and with the number of
lost important calls."""
import os
import signal
import subprocess

from cudatrace_test import CUDATRACE, HOOK, Session, WORKLOADS, check, equal

FEW_STEPS, MANY_STEPS, PLAIN, LONG_NS, BYTES = 40, 100, 100, 400000, 4096


def stop(s):
    s.daemon.send_signal(signal.SIGSTOP)
    os.waitid(os.P_PID, s.daemon.pid, os.WSTOPPED | os.WNOWAIT)


def run_pressed(s, steps, *, stops_first):
    """Runs the program, and stops the daemon either before the program's first call, or after this call and a flush."""
    if stops_first:
        stop(s)
    program = s.start(WORKLOADS / "pressed", "--steps", steps, "--plain", PLAIN, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
                      env={"SIMCUDA_LATENCY": f"cuCtxGetDevice_v2={LONG_NS}", "NVTX_INJECTION64_PATH": HOOK})
    equal(program.stdout.readline(), "ready\n", "what the program says")
    if not stops_first:
        s.flush()
        stop(s)
    program.communicate("\n")
    equal(program.returncode, 0, "the program's status under a stopped daemon")
    s.daemon.send_signal(signal.SIGCONT)
    s.flush()


# With MANY_STEPS, the important calls do not fit into a quarter of the ring.
for STEPS, first in ((FEW_STEPS, True), (FEW_STEPS, False), (MANY_STEPS, True)):
    with Session() as s:
        s.start_daemon("--ring", "64K")
        run_pressed(s, STEPS, stops_first=first)
        s.check_identity()
        s.check_truth()
        # All important calls are in the trace.
        wanted = {"cuLaunchKernel": STEPS + 1, "cuMemcpyHtoD_v2": STEPS, "cuMemFree_v2": STEPS, "cuCtxSynchronize": STEPS,
                  "cuMemAlloc_v2": 2 * STEPS + 1, "cuCtxGetDevice_v2": STEPS, "cuModuleLoadData": 1}
        seen = dict(s.rows("SELECT name, stored FROM totals WHERE layer = 'driver'"))
        equal({name: seen[name] for name in wanted}, wanted, "stored calls that say more")
        equal(s.value("SELECT sum(calls) FROM failures WHERE name = 'cuMemAlloc_v2'"), STEPS, "failures")
        equal(s.value("SELECT count(*) FROM ranges WHERE message = 'step'"), STEPS, "ranges")
        equal(s.value("SELECT count(*) FROM launches WHERE kernel = 'fill_u32'"), STEPS + 1, "launches with their kernel")
        equal(s.value("SELECT sum(bytes) FROM totals WHERE name = 'cuMemcpyHtoD_v2'"), STEPS * BYTES, "bytes")
        # Some low-priority calls were dropped, and the sums include their time.
        calls, stored, lost, skipped, total_ns = s.rows(
            "SELECT calls, stored, lost, skipped, total_ns FROM totals WHERE name = 'cuCtxGetCurrent'")[0]
        equal((calls, lost, stored + skipped), (STEPS * PLAIN, 0, STEPS * PLAIN), "calls that say little")
        check(skipped > 1000 and stored > 500 and total_ns > calls, "skipped, stored, their time", skipped, stored, total_ns)
        equal(s.rows("SELECT cause, sum(calls), count(DISTINCT tid) FROM losses GROUP BY cause"),
              [("pressure", s.value("SELECT sum(skipped) FROM totals"), 1)], "causes")
        report = s.run(CUDATRACE, "report", "--db", s.db, "--format", "markdown", "losses", preload=False).stdout
        check("pressure: short low-priority calls" in report, "the report", report)
        summary = {row["about"]: row["found"] for row in s.report("summary")["summary"]}
        equal((summary["losses"], summary["next"]), (f"{s.value('SELECT sum(skipped) FROM totals'):,} calls left out (pressure)",
                                                     f"cudatrace report --db {s.db} losses"), "the summary")

# In each round, the daemon is stopped while the program makes enough calls to fill eight rings. The important calls alone nearly fill one
# ring. Only in the first round are some important calls lost.
TIMES, MANY, PLAIN_OF_MANY, RING_SLOTS = 6, 115, 250, 4096
with Session() as s:
    s.start_daemon("--ring", "64K")
    program = s.start(WORKLOADS / "pressed", "--steps", MANY, "--plain", PLAIN_OF_MANY, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
                      env={"SIMCUDA_LATENCY": f"cuCtxGetDevice_v2={LONG_NS}", "NVTX_INJECTION64_PATH": HOOK})
    equal(program.stdout.readline(), "ready\n", "what the program says")
    s.flush()
    lost, skipped = [], []
    for _ in range(TIMES):
        stop(s)
        program.stdin.write("\n")
        program.stdin.flush()
        equal(program.stdout.readline(), "done\n", "what the program says")
        s.daemon.send_signal(signal.SIGCONT)
        s.flush()
        s.check_identity(lost=None)
        lost.append(s.value("SELECT sum(lost) FROM totals WHERE name <> 'cuCtxGetCurrent'"))
        skipped.append(s.value("SELECT skipped FROM totals WHERE name = 'cuCtxGetCurrent'"))
    program.communicate()
    equal(program.returncode, 0, "the program's status")
    # A plain call takes one slot, so each round must skip more plain calls than fit into six rings.
    check(min(b - a for a, b in zip(skipped[1:], skipped[2:])) > 6 * RING_SLOTS, "plain calls that gave way", skipped)
    check(lost[0] > 0, "no call that says more was lost at first", lost, skipped)
    equal(lost[1:], [lost[0]] * (TIMES - 1), "calls that say more, lost by then")
    s.check_truth()

# A thread that makes only low-priority calls can use three quarters of its ring for them.
with Session() as s:
    s.start_daemon("--ring", "64K")
    stop(s)
    program = s.start(WORKLOADS / "calls", "--calls", 20000, "--mix", "getctx", stdout=-3)
    equal(program.wait(), 0, "the program's status under a stopped daemon")
    s.daemon.send_signal(signal.SIGCONT)
    s.flush()
    s.check_identity()
    # A call that was interrupted for long may use the rest.
    stored = s.value("SELECT count(*) FROM calls WHERE name = 'cuCtxGetCurrent' AND duration_ns < 75000")
    check(RING_SLOTS * 5 // 8 < stored < RING_SLOTS * 3 // 4, "plain calls in a ring", stored)

with Session() as s:
    s.start_daemon("--ring", "64K")
    stop(s)
    program = s.start(WORKLOADS / "calls", "--calls", 50000, "--threads", 2, "--mix", "training", stdout=-3)
    equal(program.wait(), 0, "the program's status under a stopped daemon")
    s.daemon.send_signal(signal.SIGCONT)
    s.flush()
    s.check_identity(lost=None)
    s.check_truth()
    lost, skipped = s.rows("SELECT sum(lost), sum(skipped) FROM totals")[0]
    check(lost > 0 and lost + skipped > 50000, "most did not fit", lost, skipped)  # how many are skipped depends on how full the rings are
    equal(s.rows("SELECT DISTINCT cause FROM losses ORDER BY cause"), [("full",), ("pressure",)], "causes")
    equal(s.value("SELECT count(DISTINCT tid) FROM losses"), 2, "threads with losses")
    check(s.value("SELECT min(total_ns) FROM totals WHERE lost > 0") > 0, "lost time is counted")
