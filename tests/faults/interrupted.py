"""Tests signal handlers that interrupt the hook at each of its instructions. If the handler leaves the hook by siglongjmp, the thread's
next calls must be recorded. If the handler forks, the child continues inside the hook, and the child's writes must be discarded.
tests/traps/signals.py uses the same mechanism.

    interrupted.py fork_late | clone_late | alternate | jump | jump_launch | jump_decoded | jump_range
"""
import platform
import re
import subprocess
import sys

from fault_test import SIMCUDA, SOURCE, check, cudatrace_test, equal, needs, promise, skip

(trap,) = sys.argv[1:]
if platform.machine() != "x86_64":
    skip("steps through x86-64 instructions")
needs("ptrace")
INTERRUPTED = {"jump": "cuDriverGetVersion", "jump_launch": "cuLaunchKernel", "jump_decoded": "cuStreamQuery"}


def check_jumps(s, rounds_made, missed):
    seen, truth = s.totals(), s.truth()
    behind = [(pid, name) for pid, name in truth if name == "cuCtxGetCurrent"]
    equal([seen[key] for key in behind], [truth[key] for key in behind], "calls behind a jump")
    if trap == "jump_range":
        wanted = [("nvtxMark", truth[behind[0]]), ("nvtxRangePush", truth[behind[0]])]
        equal(s.rows("SELECT name, count(*) FROM calls WHERE message = 'behind' GROUP BY name ORDER BY name"), wanted,
              "ranges behind a jump")
        return
    # An interrupted call has a row only if the signal handler left the call after its record had been published.
    rows = [name for (name,) in s.rows("SELECT name FROM calls ORDER BY call_id")]
    rows = rows[rows.index("cuCtxGetCurrent") + 1:]  # after the round without signals
    rounds, recorded = [], False
    for name in rows:
        if name == INTERRUPTED[trap]:
            check(not recorded, "an interrupted call is there twice")
            recorded = True
        elif name == "cuCtxGetCurrent":
            rounds.append(recorded)
            recorded = False
    equal(len(rounds), rounds_made, "rounds")
    rounds = [recorded for number, recorded in enumerate(rounds) if number not in missed]
    first = rounds.index(True)
    check(first > 10 and len(rounds) - first > 3 and all(rounds[first:]), "rounds that were recorded", rounds)


with cudatrace_test.Session() as s:  # the hook without test points, because their instructions would be interrupted, too
    program = s.dir / "signals"
    subprocess.run(["cc", "-O1", "-g", "-D_GNU_SOURCE", "-I", SOURCE / "tests/simcuda",
                    "-I", SOURCE / "tests/workloads", "-o", program,
                    SOURCE / "tests/traps/signals.c", "-L" + str(SIMCUDA), "-l:libcuda.so.1", "-ldl"], check=True)
    s.start_daemon()
    ran = s.run(program, trap, status=None,
                env={"TEST_FLUSH": f"LD_PRELOAD= exec {cudatrace_test.CUDATRACE} flush --session {s.name}"})
    if ran.returncode == 77:
        skip("this C library has no _Fork()")
    with promise({"alternate": "alternate-stack", "fork_late": "clone", "clone_late": "clone"}.get(trap, "siglongjmp")):
        said = re.fullmatch(rf"((?:missed in round \d+\n)*){trap}: every instruction, (\d+) rounds\n", ran.stdout)
        check(ran.returncode == 0 and said, "it ended with", ran.returncode, "and said", ran.stdout)
        rounds_made, missed = int(said[2]), [int(number) for number in re.findall(r"\d+", said[1])]
        s.flush()
        lost = s.value("SELECT sum(lost) FROM totals")
        s.check_identity(lost=lost)
        equal(s.rows("SELECT DISTINCT state FROM processes"), [("exited",)], "how it ended")
        equal(s.rows("SELECT count(*) FROM open_calls"), [(0,)], "open calls")
        if trap == "alternate":
            s.check_truth()
            check(lost > 0, "calls that interrupted a record are counted as lost")
        elif "late" in trap:
            equal(lost, 0, "calls lost")
            check("stopped tracing" not in (s.dir / "daemon.log").read_text(), (s.dir / "daemon.log").read_text())
            # The parent makes two calls in each round, and twenty more calls at the end. A child's call has a row only if the call had not
            # yet begun when the child was forked.
            parent, *childrens = [calls for (calls,) in s.rows(
                "SELECT calls FROM totals WHERE name = 'cuLaunchKernel' ORDER BY process_id")]
            equal((parent, set(childrens)), (22 * rounds_made, {1}), "the parent's calls, and the children's")
            equal(s.rows("SELECT * FROM (SELECT start_ns, lag(end_ns) OVER (PARTITION BY tid ORDER BY call_id) AS before "
                         "FROM calls) WHERE start_ns < before - 1000"), [], "calls that began before the one before had ended")
        else:
            equal(lost, 0, "calls lost behind a jump")
            check_jumps(s, rounds_made, missed)
