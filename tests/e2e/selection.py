"""Tests the selection of calls by layer, by name and by sampling, both before processes start and while they are running. Omitted calls
must be counted exactly."""

from cudatrace_test import CUDATRACE, Session, WORKLOADS, check, equal, wait_for

CALLS = WORKLOADS / "calls"


def traced(s, *options, workload=(CALLS, "--mix", "training", "--threads", 2, "--calls", 3000)):
    s.cudatrace("run", "--db", s.db, *options, "--", *workload)
    s.check_identity()
    s.check_truth()  # totals.calls includes the calls that were left out


def stored(s, condition="1"):
    return s.value(f"SELECT ifnull(sum(stored), 0) FROM totals WHERE {condition}")


def skipped(s, condition="1"):
    return s.value(f"SELECT ifnull(sum(skipped), 0) FROM totals WHERE {condition}")


def memory(s, *options):
    return s.run(CUDATRACE, "report", "--db", s.db, *options, "memory", preload=False).stdout


with Session() as s:
    traced(s, "--calls", "cuMem*,!cuMemGetInfo*")
    wanted = "name GLOB 'cuMem*' AND name NOT GLOB 'cuMemGetInfo*'"
    check(stored(s, wanted) > 0, "calls that were asked for are stored")
    equal((skipped(s, wanted), stored(s, f"NOT ({wanted})")), (0, 0), "left out though wanted, stored though not")
    check(skipped(s, f"NOT ({wanted})") > 1000, "the others are counted")
    equal(s.rows("SELECT name FROM totals WHERE calls > 100 AND total_ns < calls"), [], "time of what was left out")

# Record the calls that free memory, but not the calls that allocated it, as may happen after an attach.
with Session() as s:
    traced(s, "--calls", "cuMemFree*", workload=(WORKLOADS / "demo", "--rounds", 20))
    freed = s.value("SELECT count(*) FROM calls WHERE status = 0")
    check(freed > 0, "nothing was freed")
    equal(s.rows("SELECT unknown_frees FROM processes"), [(freed,)], "frees of memory that nobody saw allocated")
    note = f"In all, {freed} calls freed memory whose allocation is not known"
    check(memory(s).startswith(f"Memory by process\n\n{note}"), "the report", memory(s))
    check(note in memory(s, "--format", "markdown"), "the report", memory(s, "--format", "markdown"))
    equal(memory(s, "--format", "json"), '{\n"memory": []\n}\n', "the report for programs")
with Session() as s:
    traced(s, workload=(WORKLOADS / "demo", "--rounds", 20))
    equal(s.rows("SELECT unknown_frees FROM processes"), [(0,)], "frees of memory that nobody saw allocated")
    check("freed memory" not in memory(s), "the report", memory(s))

with Session() as s:
    traced(s, "--layers", "runtime,nvtx")
    equal(stored(s, "layer = 'driver'"), 0, "driver calls stored without their layer")
    check(skipped(s, "layer = 'driver'") > 1000, "they are counted")

with Session() as s:
    # The bytes that a call copies are counted whether or not the call is stored.
    traced(s, "--calls", "!cuMemcpy*", workload=(CALLS, "--mix", "copy", "--calls", 2000))
    left_out = s.value("SELECT sum(bytes) FROM totals WHERE name LIKE 'cuMemcpy%'")
    with Session() as everything:
        traced(everything, workload=(CALLS, "--mix", "copy", "--calls", 2000))
        equal(left_out, everything.value("SELECT sum(bytes) FROM totals WHERE name LIKE 'cuMemcpy%'"), "bytes")

with Session() as s:
    # The hook also learns the names of kernels and the contents of graphs from omitted calls.
    traced(s, "--calls", "cuGraphLaunch", workload=(WORKLOADS / "graph",))
    equal(s.rows("SELECT DISTINCT kernel_nodes FROM graph_launches"), [(20,)], "kernels that a launch replays")

with Session() as s:
    traced(s, "--sample", 10, workload=(CALLS, "--mix", "getctx", "--threads", 4, "--calls", 20000))
    share = stored(s) / (stored(s) + skipped(s))
    check(0.08 < share < 0.12, "one of ten was asked for, and stored are", share)

with Session() as s:
    # Ranges can be excluded as a layer. Sampling and function names do not affect ranges.
    traced(s, "--layers", "driver", workload=(WORKLOADS / "ranges", "--do", "nest"))
    equal(s.rows("SELECT DISTINCT stored, skipped > 0 FROM totals WHERE layer = 'nvtx'"), [(0, 1)], "ranges left out")
with Session() as s:
    traced(s, "--sample", 1000, "--calls", "cuInit", workload=(WORKLOADS / "ranges", "--do", "nest"))
    equal(s.rows("SELECT DISTINCT stored > 0, skipped FROM totals WHERE layer = 'nvtx'"), [(1, 0)], "ranges recorded")

with Session() as s:
    # A running process must apply every change of the session's selection.
    s.start_daemon()
    # The program must not make calls faster than the daemon reads them, because calls dropped from a full ring would also count as
    # omitted.
    child = s.start(CALLS, "--mix", "getctx", "--calls", 1 << 40, "--rate", 20000)
    def grows(value):
        """Returns whether the value is larger after a flush than before it."""
        s.flush()
        before = value(s)
        s.flush()
        return value(s) > before

    wait_for("calls stored at first", lambda: grows(stored))
    s.cudatrace("set", "--calls", "!cuCtxGet*")
    wait_for("calls left out once it is asked for", lambda: grows(skipped))
    wait_for("no more of them stored", lambda: not grows(lambda s: stored(s, "name GLOB 'cuCtxGet*'")))
    said = s.cudatrace("status").stdout
    check("calls !cuCtxGet*\n" in said and "sample 1\n" in said, "status says", said)
    s.cudatrace("set", "--calls", "*")
    wait_for("calls stored again", lambda: grows(stored))
    wait_for("none left out any more", lambda: not grows(skipped))
    child.kill()
    child.wait()
    s.flush()
    s.check_identity(killed=1)

with Session() as s:
    for options, says in ((("--layers", "kernel"), "expected driver"), (("--layers", "hook,driver"), "expected driver"), (("--layers", ""), "expected driver"),
                          (("--sample", "0"), "a number from 1"), (("--sample", "x"), "a number from 1"),
                          (("--calls", "cu Mem"), "expected names"), (("--calls", "a,,b"), "expected names"),
                          (("--calls", "x" * 2000), "at most 1023 characters")):
        for command in (("run", *options, "--", "true"), ("set", *options)):
            said = s.cudatrace(*command, status=2).stderr
            check(says in said and command[0] + ": " in said, command, "said", said)
    check("no cudatraced serves" in s.cudatrace("set", "--sample", 2, status=1).stderr, "set without a daemon")
    check("no option given: use --layers" in s.cudatrace("set", status=2).stderr, "set without an option")
