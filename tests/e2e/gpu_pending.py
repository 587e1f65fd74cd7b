"""Tests the `gpu_pending` view, and the losses counted for GPU work that CUPTI had not returned when its process ended. Kernels on the
first stream take an hour, and memory sets on the second stream take no time."""
from cudatrace_test import SIMCUDA, WORKLOADS, Session, check, equal
from gpu_programs import SIMCUPTI, Program, request

HOUR_NS = 3600 * 10 ** 9


def pending(s):
    return s.rows("SELECT pid, name, kernel, place FROM gpu_pending JOIN processes USING (process_id) ORDER BY pid, call_id")


def losses(s):
    return s.rows("SELECT pid, calls FROM losses JOIN processes USING (process_id) WHERE cause = 'cupti' ORDER BY pid")


def hung_and_killed():
    """A hung process's first kernel is found while other streams make progress. Once the process has been killed, the count is exact."""
    with Session() as s:
        s.start_daemon()
        program = Program(s, rounds=0, SIMCUDA_LAUNCH_NS=HOUR_NS)
        request(s, [], "on", "--pid", program.pid)
        program.do("set 1")
        s.flush_until("the recording", lambda: "\ngpu 1 of 1 processes record GPU work\n" in s.cudatrace("status").stdout)
        program.do("set 3")
        program.do("launch 4")
        program.do("set 2")
        s.flush_until("the sets", lambda: s.value("SELECT count(*) FROM gpu_work WHERE kind = 'set'") >= 5)
        hung = [(program.pid, "cuLaunchKernel", "alpha", place) for place in (1, 2, 3, 4)]
        equal((pending(s), losses(s)), (hung, []), "the pending calls and the losses of the hung process")
        program.child.kill()
        program.child.wait()
        s.flush_until("the end", lambda: s.value("SELECT count(*) FROM processes WHERE state = 'killed'"))
        equal((pending(s), losses(s)), (hung, [(program.pid, 4)]), "the pending calls and the losses of the killed process")
        (row,) = s.report("pending")["pending"]
        equal([row[name] for name in ("pid", "state", "function", "kernel", "calls")], [program.pid, "killed", "cuLaunchKernel", "alpha", 4],
              "the report")
        s.check_identity()


def nothing_returned():
    """If CUPTI has returned none of a recording's work, all of it is lost. Work from an earlier recording does not count."""
    with Session() as s:
        s.start_daemon()
        program = Program(s, SIMCUDA_LAUNCH_NS=1000)
        request(s, [program], "on")
        program.work(100)
        request(s, [], "off")
        s.flush_until("the work", lambda: s.value("SELECT count(*) FROM gpu_work") == 35)
        equal((pending(s), losses(s)), ([], []), "pending calls and losses after a recording")
        program.end()
        s.flush_until("the end", lambda: s.value("SELECT count(*) FROM processes WHERE state = 'exited'"))
        equal((pending(s), losses(s)), ([], []), "pending calls and losses after an exit")
    with Session() as s:
        s.start_daemon()
        program = Program(s, rounds=0, SIMCUDA_LAUNCH_NS=HOUR_NS)
        request(s, [program], "on")
        program.do("launch 3")
        program.end()
        s.flush_until("the end", lambda: s.value("SELECT count(*) FROM processes WHERE state = 'exited'"))
        equal(losses(s), [(program.pid, 3)], "the losses of a process that exits during its work")


def captured():
    """Launches captured into a graph cause no work of their own, and are not pending."""
    with Session() as s:
        s.start_daemon()
        s.run(WORKLOADS / "graph", "--launches", 7, "--replays", 5,
              env={"CUDATRACE_GPU": "kernels", "LD_LIBRARY_PATH": f"{SIMCUDA}:{SIMCUPTI}", "SIMCUDA_LAUNCH_NS": 1000})
        s.flush_until("the end", lambda: s.value("SELECT count(*) FROM processes WHERE state = 'exited'"))
        equal(s.rows("SELECT count(*) FROM launches WHERE captured"), [(7,)], "captured launches")
        check(s.value("SELECT count(*) FROM gpu_work") >= 7 * 5, "the work of the graph")
        equal((pending(s), losses(s)), ([], []), "pending calls and losses")


def selected():
    """Calls whose work was returned are not pending, even if later calls in the same streams were not recorded."""
    for selection, calls in ({"CUDATRACE_SAMPLE": "7"}, 10 * 35 / 7), ({"CUDATRACE_CALLS": "cuLaunch*"}, 10):
        with Session() as s:
            s.start_daemon()
            program = Program(s, SIMCUDA_LAUNCH_NS=1000, CUDATRACE_GPU="kernels", **selection)
            for _ in range(10):
                program.work(100)
            program.end()
            s.flush_until("the end", lambda: s.value("SELECT count(*) FROM processes WHERE state = 'exited'"))
            known, works = s.rows("SELECT count(call_id), count(*) FROM gpu_work")[0]
            check(calls <= known < works, "some of the work has a call:", known, works)
            equal((pending(s), losses(s)), ([], []), f"pending calls and losses with {selection}")


def without_work():
    """A call whose name merely looks like a memory set causes no work, and has no correlation."""
    with Session() as s:
        s.start_daemon()
        program = Program(s, SIMCUDA_LAUNCH_NS=1000, CUDATRACE_GPU="kernels")
        equal(program.do("access"), 801, "the status, because the simulated driver has no such function")
        program.end()
        s.flush_until("the end", lambda: s.value("SELECT count(*) FROM processes WHERE state = 'exited'"))
        noted = s.rows("SELECT name, count(correlation) FROM calls LEFT JOIN correlation USING (call_id) "
                       "WHERE name IN ('cuMemSetAccess', 'cuMemsetD8Async') GROUP BY 1")
        equal(noted, [("cuMemSetAccess", 0), ("cuMemsetD8Async", 5)], "correlations by function")


for case in (hung_and_killed, nothing_returned, captured, selected, without_work):
    print(case.__name__, flush=True)
    case()
