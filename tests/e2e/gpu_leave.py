"""Tests how CUPTI leaves a process at the end of a recording. The simulated cuptiFinalize() aborts the program if the real function could break
it: during a driver call of any thread, before the GPU has finished its work, or if graphs would fail afterwards."""
import glob
import itertools
import os
import pathlib
import resource
import shutil
import signal
import subprocess
import time

from cudatrace_test import BUILD, CUDATRACE, DRIVER_PATH, HOOK, WORKLOADS, Session, by_tier, can, check, equal, wait_for
from gpu_programs import SIMCUPTI, Program, request


TIMES = by_tier(5, 20, 100)
# Calls that are in progress for long would be found by cuptiFinalize() if the hook did not wait for them.
LATENCIES = {"SIMCUDA_LATENCY": "cuLaunchKernel=1000000,cuMemsetD8Async=3000000,cuGraphLaunch=500000,cuMemAlloc_v2=3000000"}


def record_again_and_again(s, program, threads, check_recording):
    """Records the program's work, while its threads make calls."""
    equal(program.do(threads), 0, "the answer")
    for _ in range(TIMES):
        equal(request(s, [program], "on"), "1 of 1 processes record GPU work", "the answer")
        check_recording()
        request(s, [program], "off")
    equal(program.do("rest"), 0, "the answer")
    equal(program.do("graph 1"), 0, "the answer after the recordings")
    program.end()


def busy_threads():
    """CUPTI leaves the process while threads are launching kernels and graphs. Their calls wait until it has left."""
    with Session() as s:
        s.start_daemon()
        program = Program(s, **LATENCIES)
        ends = itertools.count()

        def check_recording():
            i = next(ends)
            wait_for("the last end", lambda: program.ended() + program.logged("unsubscribe") == i)
            rows = s.value("SELECT count(*) FROM gpu_work")
            s.flush_until("GPU work", lambda: s.value("SELECT count(*) FROM gpu_work") > rows)

        record_again_and_again(s, program, "loop 3", check_recording)
        check(program.ended() > 0, "CUPTI never left")  # it stays if a call is in progress for longer than the hook waits
        without = s.value("SELECT count(*) FROM gpu_work WHERE call_id IS NULL")
        check(without <= 3 * TIMES, without, "rows of work have no call, more than calls can have been in progress at the beginnings")
        s.check_identity()


def busy_unrecorded_threads():
    """The same for calls that are in no lane's open calls, because there was no room for the threads' lanes. CUPTI itself reports calls that do
    work, and would then stay."""
    with Session() as s:
        s.start_daemon()
        program = Program(s, **LATENCIES)
        (segment,) = glob.glob(f"/dev/shm/cudatrace.*.{s.name}.{program.pid}.*")
        resource.prlimit(program.pid, resource.RLIMIT_FSIZE, (os.stat(segment).st_size, resource.RLIM_INFINITY))
        record_again_and_again(s, program, "allocate 3", lambda: None)
        check(program.ended() > 0, "CUPTI never left")
        check(s.value("SELECT sum(lost) FROM totals WHERE name = 'cuMemAlloc_v2'") > 0, "no call was lost")


def stopped():
    """The process is stopped while CUPTI is leaving, for longer than calls wait for a CUPTI that hangs. The calls still wait."""
    LONGER_S = 11
    with Session() as s:
        s.start_daemon()
        program = Program(s, SIMCUPTI_STOP="1", **LATENCIES)
        equal(request(s, [program], "on"), "1 of 1 processes record GPU work", "the answer")
        equal(program.do("loop 3"), 0, "the answer")
        setting = s.start(CUDATRACE, "set", "--session", s.name, "--gpu", "off")
        wait_for("the stop", lambda: f"{program.pid} (gpu_work) T " in pathlib.Path(f"/proc/{program.pid}/stat").read_text())
        time.sleep(LONGER_S)
        os.kill(program.pid, signal.SIGCONT)
        equal(setting.wait(), 0, "the status of set")
        equal(program.do("rest"), 0, "the answer")
        program.end()
        equal((program.ended(), program.logged("unsubscribe")), (1, 0), "how CUPTI left")
        s.check_identity()


def work_that_waits():
    """The GPU waits for the program, which makes further calls before it lets the GPU continue. CUPTI would wait for the GPU, and calls for
    CUPTI, so CUPTI stays."""
    with Session() as s:
        s.start_daemon()
        program = Program(s)
        request(s, [program], "on")
        equal(program.do("block"), 0, "the answer")
        setting = s.start(CUDATRACE, "set", "--session", s.name, "--gpu", "off")
        wait_for("the end", lambda: (program.do("set 1"), program.ended() + program.logged("unsubscribe") == 1)[1])
        equal(setting.wait(), 0, "the status of set")
        equal((program.ended(), program.logged("unsubscribe")), (0, 1), "how CUPTI left, while the GPU waits")
        equal(program.do("free"), 0, "the answer")
        program.end()
        s.check_identity()


def stays():
    """CUPTI stays without a subscriber, and the program can subscribe, in the cases where it cannot leave: graphs with a CUPTI before CUDA 12.6,
    a CUPTI of unknown version, and a context that is not a primary one, whose work would not be waited for."""
    for graphs, left, env in ((1, 0, {"SIMCUPTI_API_VERSION": 23}), (0, 1, {"SIMCUPTI_API_VERSION": 23}), (1, 1, {"SIMCUPTI_API_VERSION": 24}),
                              (0, 0, {"SIMCUPTI_REFUSE": "cuptiGetVersion=999"}), (0, 0, {})):
        with Session() as s:
            s.start_daemon()
            program = Program(s, **env)
            if not env:
                equal(program.do("context"), 0, "the answer")
            for _ in range(2):
                equal(request(s, [program], "on"), "1 of 1 processes record GPU work", "the answer")
                equal(program.do(f"graph {graphs}") if graphs else 0, 0, "the answer")
                request(s, [], "off")
            equal((program.ended(), program.logged("unsubscribe")), (2 * left, 2 - 2 * left), "how CUPTI left")
            equal(program.do(f"graph {graphs}") if graphs else 0, 0, "the answer after the recordings")
            equal(program.do("subscribe"), 0, "the program's subscription")
            program.end()
            check(s.value("SELECT count(*) FROM gpu_work WHERE recording = 2") >= 3 * graphs, "the second recording's work")
            s.check_identity()


def last_thread():
    """If all threads of the program have exited, the process ends, although the recording's thread is left. The last one runs the exit
    handlers, as usual."""
    with Session() as s:
        s.start_daemon()
        s.cudatrace("set", "--gpu", "on")
        s.run(WORKLOADS / "gpu_work", "--end", "thread", env={"LD_LIBRARY_PATH": f"{DRIVER_PATH}:{SIMCUPTI}"})
        s.flush()
        equal(s.rows("SELECT state, gpu_recording FROM processes"), [("exited", "recorded")], "the process")
        equal(s.value("SELECT sum(calls) FROM totals WHERE name = 'cuCtxSynchronize'"), 2, "the calls, with the exit handler's")
        check(s.value("SELECT count(*) FROM gpu_work") > 0, "no GPU work")
        s.check_identity()


def last_thread_without_recording():
    """If the recording does not begin, the exit handlers run in the program's last thread, which has a context. If CUPTI hangs, the process
    ends nevertheless."""
    times = by_tier(5, 20)
    for env, rounds in (({"SIMCUPTI_REFUSE": "cuptiSubscribe_v2=999"}, times), ({"SIMCUPTI_TAKEN": "x"}, times),
                        ({"SIMCUPTI_HANG": "cuptiSubscribe_v2"}, 1), ({"SIMCUPTI_HANG": "cuptiActivityFlushAll"}, 1)):
        with Session() as s:
            s.start_daemon()
            s.cudatrace("set", "--gpu", "on")
            for _ in range(rounds):
                s.run(WORKLOADS / "gpu_work", "--rounds", 4, "--end", "thread", env={"LD_LIBRARY_PATH": f"{DRIVER_PATH}:{SIMCUPTI}", **env})
            s.flush()
            equal(s.value("SELECT count(*) FROM processes WHERE state = 'exited'"), rounds, "processes")
            s.check_identity()


def exit_call():
    """If the program's only thread exits by the system call, which the hook does not see, the process ends with the thread's status, even if
    CUPTI hangs at the recording's end."""
    for hanging in (), ("cuptiActivityDisable",):
        with Session() as s:
            s.start_daemon()
            s.cudatrace("set", "--gpu", "on")
            s.run(WORKLOADS / "gpu_work", "--end", "call", status=3,
                  env={"LD_LIBRARY_PATH": f"{DRIVER_PATH}:{SIMCUPTI}", **{"SIMCUPTI_HANG": name for name in hanging}})
            s.flush()
            equal(s.value("SELECT state FROM processes"), "exited", "the process")
            check(hanging or s.value("SELECT count(*) FROM gpu_work") > 0, "no GPU work")
            s.check_identity()


def vfork():
    """The child of vfork() begins no recording, because its threads end with it. The parent's next call does."""
    with Session() as s:
        s.start_daemon()
        program = Program(s)
        setting = s.start(CUDATRACE, "set", "--session", s.name, "--gpu", "on")
        wait_for("the request", lambda: "next call" in s.cudatrace("status").stdout)
        equal(program.do("vfork"), 0, "the answer")
        equal(program.logged("subscribe 0"), 0, "recordings that the child began")
        wait_for("the parent's recording", lambda: (program.do("call"), setting.poll() is not None)[1])
        equal(setting.wait(), 0, "the status of set")
        program.work(256)
        program.end()
        equal(s.value("SELECT gpu_recording FROM processes"), "recorded", "the recording")
        s.check_identity()


def confined():
    """A filter of system calls for all threads ends the recording before it begins."""
    if not can("filters of system calls", "a filter during a recording"):
        return
    with Session() as s:
        s.start_daemon()
        program = Program(s, SIMCUPTI_LOG="")  # the filter forbids to open the log
        request(s, [program], "on")
        program.work(256)
        equal(program.do("confine"), 0, "the answer")
        program.work(257)
        check("1 cannot: the program's system call filter does not permit it" in request(s, [program], "on"), "the answer to another request")
        program.end()
        equal(s.rows("SELECT DISTINCT bytes FROM gpu_work WHERE kind = 'set'"), [(256,)], "recorded sets")
        s.check_identity()


def permitted():
    """A filter of system calls for all threads that the kernel rejects, or that permits everything, only interrupts the recording."""
    if not can("filters of system calls", "a harmless filter during a recording"):
        return
    with Session() as s:
        s.start_daemon()
        program = Program(s)
        request(s, [program], "on")
        for size, (command, answer) in enumerate((("reject", -1), ("permit", 0), ("permit", 0)), 300):
            equal((program.do(command), program.logged("unsubscribe")), (answer, size - 299), "the answer, and recordings that have ended")
            wait_for("the next recording", lambda: (program.do("call"), program.logged("subscribe 0") == size - 298)[1])
            equal(request(s, [program], "on"), "1 of 1 processes record GPU work", "the answer to another request")
            program.work(size)
        program.end()
        wait_for("the sets", lambda: s.rows("SELECT DISTINCT bytes FROM gpu_work WHERE kind = 'set' ORDER BY 1") == [(300,), (301,), (302,)])
        s.check_identity()


def hanging():
    """If CUPTI hangs when a filter ends the recording, the program waits once, and not again for each further filter. The program and its
    other calls continue."""
    hook = BUILD / "tests/faults/libcudatrace.so"
    if not hook.exists() or not can("filters of system calls", "a CUPTI that hangs during filters"):
        return
    for function, subscriptions in ("cuptiSubscribe_v2", 0), ("cuptiActivityFlushAll", 1):
        with Session() as s:
            for file in hook, HOOK.parent / "libcudatrace-gpu.so":
                shutil.copy(file, s.dir)
            s.hook = s.dir / hook.name
            s.start_daemon()
            program = Program(s, SIMCUPTI_HANG=function, CUDATRACE_TEST_POINT="gpu.hangs:2:kill")
            setting = s.start(CUDATRACE, "set", "--session", s.name, "--gpu", "on", stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)

            def has_begun():
                program.do("call")
                names = [name.read_text() for name in pathlib.Path(f"/proc/{program.pid}/task").glob("*/comm")]
                return "cudatrace-gpu\n" in names and program.logged("subscribe 0") == subscriptions

            wait_for("the recording", has_begun)
            for _ in range(3):
                equal(program.do("permit"), 0, "the answer")
            program.work(256)
            setting.kill()
            setting.wait()
            program.child.kill()
            s.check_identity()


for case in (busy_threads, busy_unrecorded_threads, stopped, work_that_waits, stays, last_thread, last_thread_without_recording, exit_call, vfork,
             confined, permitted, hanging):
    print(case.__name__, flush=True)
    case()
