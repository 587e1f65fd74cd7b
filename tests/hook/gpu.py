"""Checks the recording of GPU work. The simulated CUPTI logs each record that it delivers and each callback that it makes. The test
compares the log with the records in the lanes. Ticks are nanoseconds, so that the times are equal."""
import collections
import os
import re
import pathlib
import shutil
import subprocess

from hook_test import BUILD, HOOK, SIMCUDA, equal, recorder  # before cudatrace_test, whose folder it adds to the path

from cudatrace_test import WORKLOADS, Session, check, wait_for

SIMCUPTI = BUILD / "tests/simcupti"
STARTING, ON, ENDED, NO_LIBRARY, NO_CUPTI, TAKEN, REFUSED, FORKED = range(1, 9)  # enum ct_gpu_state
KERNEL, COPY, SET, GRAPH, DROPPED = 0, 1, 2, 3, 255  # enum ct_gpu_work_kind
KINDS = ["kernel", "copy", "set", "graph"]
TRANSFERS = {0: 0, 1: 1, 2: 2, 8: 3, 9: 4}  # CUpti_ActivityMemcpyKind: enum ct_transfer_kind
PROGRAM = WORKLOADS / "gpu_work"
# The driver calls in one round of gpu_work that make GPU work.
ROUND = {"cuLaunchKernel": 3, "cuMemcpyHtoDAsync_v2": 1, "cuMemcpyDtoD_v2": 1, "cuMemcpyDtoH_v2": 1, "cuMemsetD8Async": 1}

Work = collections.namedtuple("Work", "kind correlation start end bytes copy context stream node graph name")


class Recorded:
    """The recorder's lines. `calls` lists (function, correlation or None) in order, and `work` lists the GPU work, while `dropped` counts
    the dropped records."""

    def __init__(self, lines):
        self.states, self.calls, self.work, self.dropped, texts, work = [], [], [], 0, {}, []
        for line in lines:
            word, *rest = line.split()
            if word == "state":
                self.states.append((int(rest[0]), int(rest[1]), " ".join(rest[2:])))
            elif word == "correlation":
                function, before = self.calls.pop()
                check(before is None, "two correlations of", function)
                self.calls.append((function, int(rest[0])))
            elif word == "string":
                texts[int(rest[0])] = rest[1]
            elif word == "gpu":
                work.append([int(x) for x in rest])
            else:
                self.calls.append((word, None))
        for kind, correlation, start, end, size, copy, device, context, stream, node, graph, kernel in work:
            if kind == DROPPED:
                equal(correlation, 0, "the correlation of a report of drops")
                self.dropped += size
                continue
            equal(device, 0, "the device")
            check(kind != KERNEL or kernel in texts, "no name of kernel", kernel)
            self.work.append(Work(kind, correlation, start, end, size, copy, context, stream, node, graph, texts.get(kernel, "-")))

    @property
    def state(self):
        equal(len(self.states), 1, "the states")
        return self.states[0][:2]

    def correlated(self):
        """Returns {correlation: function}."""
        pairs = {correlation: function for function, correlation in self.calls if correlation is not None}
        equal(len(pairs), sum(correlation is not None for _, correlation in self.calls), "different correlations")
        return pairs


def read_log(path, epoch=1):
    """Returns the work that the simulated CUPTI delivered, its callbacks as {correlation: function}, and the number of drops."""
    work, calls, dropped = [], {}, 0
    for line in path.read_text().splitlines() if path.exists() else []:
        word, *rest = line.split()
        if word == "call" and not re.match("cuGraph(?!Launch)|cuStream(Begin|End)Capture", rest[0]):  # these have no work
            calls[epoch << 32 | int(rest[1])] = rest[0]
        elif word == "dropped":
            dropped += int(rest[0])
        elif word in KINDS:
            correlation, start, end, size, copy, context, stream, node, graph = map(int, rest[:9])
            work.append(Work(KINDS.index(word), epoch << 32 | correlation, start, end, size, TRANSFERS[copy], context,
                             stream, node, graph, rest[9]))
    return work, calls, dropped


def recording(s, *libraries, version="13", **more):
    """Returns the environment of a recorded program."""
    return {"CUDATRACE_GPU": "kernels", "SIMCUPTI_LOG": s.dir / "cupti.log", "SIMCUDA_LAUNCH_NS": 20000, "SIMCUDA_COPY_GBPS": 0.5,
            "LD_LIBRARY_PATH": ":".join(map(str, [*libraries, SIMCUDA, *([SIMCUPTI / version] if version else [])])), **more}


def recorded(s, *command, clock="monotonic", status=0, **env):
    with recorder(s, clock) as lines:
        s.run(*command, env=env, status=status)
    return Recorded(lines)


def check_log(found, log, function_of=None):
    """Checks that the records equal CUPTI's, and that each call has the correlation of its callback."""
    work, calls, dropped = log
    equal(sorted(found.work), sorted(work), "the work")
    equal(found.correlated(), calls, "the correlations")
    equal(found.dropped, dropped, "the dropped records")
    if function_of:
        equal(collections.Counter((w.kind, calls[w.correlation]) for w in work), function_of, "the functions that made the work")


def rounds_of(n):
    return collections.Counter({(KERNEL, "cuLaunchKernel"): 3 * n, (COPY, "cuMemcpyHtoDAsync_v2"): n, (COPY, "cuMemcpyDtoD_v2"): n,
                                (COPY, "cuMemcpyDtoH_v2"): n, (SET, "cuMemsetD8Async"): n})


def all_work_by_any_end():
    """All records arrive, however the program ends, and with each version of CUPTI."""
    for version, end in (("13", "return"), ("12", "return"), ("13", "at-once")):
        with Session() as s:
            found = recorded(s, PROGRAM, "--rounds", 40, "--end", end, **recording(s, version=version))
            check_log(found, read_log(s.dir / "cupti.log"), rounds_of(40))
            equal(found.state, (ENDED, 0), "the state")
            equal({w.name for w in found.work}, {"alpha", "_Z4betaPfi", "_ZN5gamma5deltaIfEEvv", "-"}, "the names")


def counter():
    """If the counter is the clock, times are the ticks that CUPTI computed, and hooked calls take their short path."""
    with Session() as s:
        found = recorded(s, PROGRAM, "--rounds", 300, clock="counter", **recording(s))
        check_log(found, read_log(s.dir / "cupti.log"), rounds_of(300))


def graphs():
    """A graph's kernels have the correlation of the graph's launch. Captured launches have a correlation, but no work."""
    with Session() as s:
        found = recorded(s, WORKLOADS / "graph", "--launches", 7, "--replays", 5, **recording(s))
        log = read_log(s.dir / "cupti.log")
        check_log(found, log)
        kernels = collections.Counter(w.correlation for w in found.work if w.kind == KERNEL)
        equal(sorted(kernels.values()), [7] * 5, "kernels of each graph launch")
        equal({log[1][correlation] for correlation in kernels}, {"cuGraphLaunch"}, "the functions that launched kernels")
        equal(len({w.node for w in found.work if w.kind == KERNEL}), 7, "the nodes")
        check(all(w.graph for w in found.work if w.kind == KERNEL), "a kernel without a graph")


def whole_graphs():
    """On request, each launch of a graph is one piece of work, with the correlation of the launch and the times of all its nodes. A CUPTI
    that returns the nodes, too, is of CUDA 11.7, and one without such records is older."""
    for env, both in (({"version": "13"}, False), ({"version": "12"}, False), ({"SIMCUPTI_BOTH": 1}, True), ({"SIMCUPTI_LAST_KIND": 50}, None)):
        with Session() as s:
            found = recorded(s, WORKLOADS / "graph", "--launches", 7, "--replays", 5, **{**recording(s, **env), "CUDATRACE_GPU": "graphs"})
            work, calls, dropped = read_log(s.dir / "cupti.log")
            nodes = [w for w in work if w.node]
            equal(len(nodes), 0 if both is False else 35, ("nodes that CUPTI returned with", env))
            check_log(found, ([w for w in work if not w.node] if both else work, calls, dropped))
            graphs = [w for w in found.work if w.kind == GRAPH]
            equal([calls[w.correlation] for w in graphs], [] if both is None else ["cuGraphLaunch"] * 5, ("the launches of graphs with", env))
            check(all(w.graph and not w.node and w.end - w.start > 6 * 20000 for w in graphs), "a graph without its number or time", graphs)
            equal(collections.Counter(w.kind for w in found.work if not w.graph), {SET: 5, COPY: 1}, "other work")
            for w in graphs if both else []:
                own = [node for node in nodes if node.correlation == w.correlation]
                apart = max(abs(w.start - own[0].start), abs(w.end - own[-1].end))  # each flush computes other times
                check(apart < 20000, "the times of a graph differ from those of its nodes by", apart)


def threads():
    """Each thread's calls have their own correlations."""
    with Session() as s:
        found = recorded(s, WORKLOADS / "calls", "--threads", 4, "--calls", 2000, "--mix", "launch", **recording(s, SIMCUDA_LAUNCH_NS=0))
        log = read_log(s.dir / "cupti.log")
        check_log(found, log)
        check(len(log[0]) >= 4 * 1000, "launches", len(log[0]))


def drops():
    with Session() as s:
        found = recorded(s, PROGRAM, "--rounds", 30, **recording(s, SIMCUPTI_DROP=7))
        check_log(found, read_log(s.dir / "cupti.log"))
        equal((found.dropped, len(found.work)), (30, 180), "dropped and recorded work")
    with Session() as s:
        env = recording(s, SIMCUPTI_DROP=3, CUDATRACE_GPU="graphs")
        found = recorded(s, WORKLOADS / "graph", "--launches", 7, "--replays", 10, **env)
        check_log(found, read_log(s.dir / "cupti.log"))
        equal((found.dropped, len(found.work)), (7, 14), "dropped and recorded work with whole graphs")


def refused():
    """If CUPTI cannot be used, the program runs and its calls are recorded as usual. The state contains the reason."""
    for env, state in (({"SIMCUPTI_TAKEN": "Nsight Systems"}, (TAKEN, 39, "Nsight Systems")),
                       ({"SIMCUPTI_TAKEN": "x" * 100}, (TAKEN, 39, "x" * 63)),
                       ({"SIMCUPTI_TAKEN": "old", "version": "12"}, (TAKEN, 39, "")),
                       ({"SIMCUPTI_REFUSE": "cuptiSubscribe_v2=15"}, (REFUSED, 15, "")),
                       ({"SIMCUPTI_REFUSE": "cuptiActivityEnable=35"}, (REFUSED, 35, "")),
                       ({"SIMCUPTI_REFUSE": "cuptiEnableCallback=999"}, (REFUSED, 999, "")),
                       ({"version": None}, None)):
        with Session() as s:
            found = recorded(s, PROGRAM, "--rounds", 4, **recording(s, **env))
            if state:
                equal(found.states, [state], ("the state with", env))
            else:  # an installed CUPTI refuses the simulated driver
                check(found.state == (NO_CUPTI, 0) or found.state[0] == REFUSED, "the state without CUPTI is", found.states)
            equal(found.work, [], "work")
            equal(found.correlated(), {}, "correlations")
            made = collections.Counter(function for function, _ in found.calls)
            equal({name: made[name] for name in ROUND}, {name: 4 * n for name, n in ROUND.items()}, "the calls")


def off():
    """Without the setting, the library is not even loaded."""
    with Session() as s:
        env = recording(s)
        for setting in (None, "everything"):
            with recorder(s, "monotonic") as lines:
                env.pop("CUDATRACE_GPU", None)
                child = s.start(PROGRAM, "--end", "wait", env={**env, **({"CUDATRACE_GPU": setting} if setting else {})},
                                stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
                check("ok" in child.stdout.readline(), "the program")
                check("libcudatrace-gpu" not in pathlib.Path(f"/proc/{child.pid}/maps").read_text(), "the library is loaded")
                child.communicate()
            equal(Recorded(lines).states, [], "the state")


def killed():
    """After SIGKILL, all work in the lanes is also in the log, which the simulated CUPTI writes first. No correlation is missing."""
    with Session() as s:
        with recorder(s, "monotonic") as lines:
            child = s.start(PROGRAM, "--rounds", 20, "--end", "wait", env=recording(s), stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                            text=True)
            check("ok" in child.stdout.readline(), "the program")
            wait_for("the last record", lambda: len(read_log(s.dir / "cupti.log")[0]) == 20 * 7)
            child.kill()
            child.communicate()
        found, log = Recorded(lines), read_log(s.dir / "cupti.log")
        check(set(found.work) <= set(log[0]), "work that CUPTI did not deliver")
        equal(found.correlated(), log[1], "the correlations")
        equal(found.state, (ON, 0), "the state")


def forked():
    """A forked child has no recording, and its exit does not disturb its parent's recording."""
    with Session() as s:
        found = recorded(s, PROGRAM, "--rounds", 10, "--end", "fork", **recording(s))
        check_log(found, read_log(s.dir / "cupti.log"), rounds_of(10))
    with Session() as s:
        found = recorded(s, WORKLOADS / "forks", "--children", 2, "--calls", 20, **recording(s, SIMCUDA_FORK="works"))
        equal(sorted(state[0] for state in found.states), [ENDED] * 3 + [FORKED] * 2, "the states")


def own_cupti():
    """Once the session has ended, the program can use CUPTI itself."""
    with Session() as s:
        s.start_daemon("--clock", "monotonic")
        child = s.start(PROGRAM, "--rounds", 3, "--end", "own", env=recording(s), stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        equal([child.stdout.readline(), child.stdout.readline()], ["gpu_work: rounds=3 ok\n", "first 39\n"], "the program")
        s.stop_daemon()
        child.communicate("\n")
        equal(child.returncode, 0, "the program's status")
        log = (s.dir / "cupti.log").read_text().split("\n")
        check("unsubscribe" in log and "subscribe 0" in log[log.index("unsubscribe"):], "the program subscribed")


def found_by_libcudart():
    """The libcupti that belongs to the program's libcudart is used, in wheels and in toolkits."""
    for runtime, cupti, version in (("nvidia/cuda_runtime/lib", "nvidia/cuda_cupti/lib", "12"), ("nvidia/cu13/lib", "nvidia/cu13/lib", "13"),
                                    ("cuda/lib64", "cuda/extras/CUPTI/lib64", "12")):
        with Session() as s:
            for folder in (runtime, cupti):
                os.makedirs(s.dir / folder, exist_ok=True)
            cudart = s.dir / runtime / f"libcudart.so.{version}"
            shutil.copy(BUILD / f"tests/simcudart/{version}/libcudart.so.{version}", cudart)
            shutil.copy(SIMCUPTI / version / f"libcupti.so.{version}", s.dir / cupti)
            env = recording(s, version=None, LD_PRELOAD=f"{HOOK} {cudart}")
            with recorder(s, "monotonic") as lines:
                child = s.start(PROGRAM, "--end", "wait", env=env, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
                check("ok" in child.stdout.readline(), "the program")
                maps = pathlib.Path(f"/proc/{child.pid}/maps").read_text()
                child.communicate()
            check(os.path.realpath(s.dir / cupti / f"libcupti.so.{version}") in maps, "the library of", runtime, "is not loaded")
            check_log(Recorded(lines), read_log(s.dir / "cupti.log"), rounds_of(5))


for case in (all_work_by_any_end, counter, graphs, whole_graphs, threads, drops, refused, off, killed, forked, own_cupti, found_by_libcudart):
    print(case.__name__, flush=True)
    case()
