"""Measures the cost of tracing a PyTorch training loop on this machine's GPU. Runs pairs of processes, untraced and traced, in alternating
order. If `cudatrace probe` is permitted, further processes are run under it. --peers adds bpftrace and strace. --gpu-times adds recorders
of GPU times: `cudatrace run --gpu`, CUPTI alone, torch.profiler, and nsys if it is installed. For the launch-bound loop, every second pair
is also run with only the driver layer."""
import contextlib
import json
import math
import os
import pathlib
import re
import sqlite3
import sys
import time

import run as gpu_run
import gpu_variants
from figures import emit, emit_missing, over
from gpu_variants import Failed

NAME = "gpu_training"
PROGRAM = pathlib.Path(__file__).resolve().parent / "gpu_training_loop.py"
# {model of the program: (steps, warm-up steps, steps between two waits)}
MODELS = {"layers": (1000, 200, 10), "transformer": (80, 20, 5), "gpu_bound": (20, 5, 5)}
TARGETS = {"transformer": ("<=", 1.01), "gpu_bound": ("<=", 1.01)}
GPU_TIMES_TARGET = ("<=", 1.03)
PEERS = ("bpftrace", "strace")
GPU_TIMES = ("cudatrace_gpu", "cupti_kernels", "torch_profiler", "nsys")
# Options of `cudatrace run`.
TRACED = {"cudatrace": [], "cudatrace_driver_layer": ["--layers", "driver"], "cudatrace_gpu": ["--gpu"]}
CONFIDENCE = 0.95
LIMIT_S, CPUS = 120, 4


def median_interval(values):
    """Returns (low, high, confidence) of a confidence interval for the median. As in the sign test, the interval depends only on the order
    of the values: it ranges from the k-th smallest to the k-th largest value. If there are too few values to reach CONFIDENCE, the interval
    spans all of them."""
    values, count = sorted(values), len(values)

    def outside(k):
        return 2 * sum(math.comb(count, i) for i in range(k)) / 2 ** count

    k = max([k for k in range(1, count // 2 + 1) if 1 - outside(k) >= CONFIDENCE], default=1)
    return values[k - 1], values[count - k], max(0.0, 1 - outside(k))


# Options of `cudatrace probe`. The last variant records kernel events only within the calls of a function that is called once.
PROBES = {"probe": [], "probe_kernel": ["--kernel"], "kernel_alone": ["--kernel", "--calls", "cuInit"]}


class Training:
    def __init__(self, options, place, cpus, model):
        self.options, self.place, self.cpus, self.model = options, place, cpus, model
        self.said, self.stored, self.lost = {}, {}, 0
        self.has_probe = os.geteuid() == 0 and os.path.exists(f"{os.path.dirname(os.path.dirname(place.cudatrace))}/probe/cudatrace-probe")

    def command(self):
        command = [self.options.python, PROGRAM, "--model", self.model]
        for option, value in zip(("--steps", "--warm-up", "--block"), MODELS[self.model]):
            command += [option, str(value)]
        if self.cpus:
            command += ["--cpus", ",".join(map(str, sorted(self.cpus)))]
        return command + ([] if self.place.is_gpu else ["--device", "cpu"])

    def once(self, name, number):
        command, session = self.command(), f"gputraining{os.getpid()}"
        database = f"{self.place.scratch}/training.{name}.{number}.db"
        env = self.place.env
        if name in TRACED:
            command = [self.place.cudatrace, "run", "--session", session, "--db", database, *TRACED[name], "--", *command]
        elif name == "torch_profiler":
            command.append("--profiler")
        elif name == "nsys":
            command, env = gpu_run.nsys_command(database, command), {**env, "TMPDIR": self.place.scratch}
        elif name == "cupti_kernels":
            env = {**env, "CUDA_INJECTION64_PATH": self.place.built("gpu_cupti"), "BENCH_CUPTI": "kernels", "BENCH_CUPTI_OUT": database}
        probing = contextlib.nullcontext()
        if name in PROBES:
            probing = gpu_variants.probing(self.place, self.place.env, session, database, "--all", "--library", self.place.driver,
                                           *PROBES[name])
        elif name == "bpftrace":
            probing = gpu_variants.bpftracing(self.place, self.place.env, [])
        elif name == "strace":
            command = gpu_variants.strace_command(command)
        try:
            with probing:
                ended = gpu_run.run_process(command, env, LIMIT_S)
        finally:
            gpu_variants.stop_left_over(self.place, session)
        try:
            # nsys prints lines of its own after those of the program.
            said = json.loads(gpu_variants.last_line("\n".join(re.findall("^{.*}$", ended.stdout.decode(errors="replace"), re.MULTILINE))))
        except ValueError:
            said = None
        if ended.status != 0 or not said:
            raise Failed(f"{name}: ended with status {ended.status}: {gpu_variants.last_line(ended.stderr.decode(errors='replace'))}")
        if name == "cupti_kernels":
            _, said["kernels"], _, kernel_ns = gpu_variants.cupti_records(database)
            said["kernel_ms"] = kernel_ns / 1e6
        elif name == "nsys":
            said["kernels"], said["kernel_ms"] = nsys_kernels(database)
        elif name == "cudatrace_gpu":
            said["kernel_times_ns"] = kernel_times(database)
        if name in TRACED or name in PROBES:
            stored, lost = gpu_variants.totals(database)
            self.stored.setdefault(name, []).append(stored / said["all_steps"])
            self.lost += lost
        return said

    def pair(self, number):
        names = ["untraced", "cudatrace"] if number % 2 == 0 else ["cudatrace", "untraced"]
        if number % 2 != 0 and self.model == "layers":
            names.append("cudatrace_driver_layer")
        if self.has_probe:
            names += PROBES
        if self.options.gpu_times:
            names += GPU_TIMES[::1 if number % 2 == 0 else -1]
        if self.options.peers:
            names += PEERS
        names = [name for name in names if name not in self.options.without and (name != "nsys" or gpu_run.find_nsys())]
        for name, said in {name: self.once(name, number) for name in names}.items():
            self.said.setdefault(name, {})[number] = said

    def measure(self, deadline):
        self.once("untraced", "warm-up")
        longest = 0
        for number in range(self.options.pairs):
            begun = time.monotonic()
            self.pair(number)
            longest = max(longest, time.monotonic() - begun)
            print(f"{NAME}: {self.model}: pair {number + 1} of {self.options.pairs}, {time.monotonic() - begun:.1f} s", file=sys.stderr,
                  flush=True)
            if time.monotonic() + longest > deadline:
                print(f"{NAME}: {self.model}: no time for another pair", file=sys.stderr)
                break

    def show(self):
        untraced = self.said["untraced"]
        more = {**self.place.label, "device": untraced[0]["device"], "torch": untraced[0]["torch"]}
        for name, rounds in self.said.items():
            steps = [said["p50_ms"] for said in rounds.values()]
            emit(NAME, f"{self.model}_{name}_step_ms", steps, "ms", **more)
            if name == "untraced":
                continue
            ratios = over(steps, [untraced[number]["p50_ms"] for number in rounds])
            low, high, confidence = median_interval(ratios)
            target = TARGETS.get(self.model) if self.place.is_gpu and name == "cudatrace" else None
            emit(NAME, f"{self.model}_{name}_step_over_untraced", ratios, "ratio", target, **more,
                 pairs=[round(ratio, 5) for ratio in ratios], low=round(low, 5), high=round(high, 5), confidence=round(confidence, 4))
            if name == "cudatrace_gpu":
                self.show_gpu_times(rounds, more)
            if name in self.stored:
                emit(NAME, f"{self.model}_{name}_calls_a_step", self.stored[name], "calls", **more)
        if self.lost:
            sys.exit(f"{NAME}: {self.model}: {self.lost} calls were lost: the figures are in part those of a full ring")

    def show_gpu_times(self, rounds, more):
        """Compares the cost and the total kernel time with the other recorders' figures in the same round. torch.profiler does not record
        the warm-up, so only the last kernels are compared."""
        for name in [name for name in GPU_TIMES[1:] if name in self.said]:
            others = [self.said[name][number] for number in rounds]
            target = GPU_TIMES_TARGET if name == "cupti_kernels" and self.place.is_gpu else None
            emit(NAME, f"{self.model}_cudatrace_gpu_step_over_{name}",
                 over([said["p50_ms"] for said in rounds.values()], [said["p50_ms"] for said in others]), "ratio", target, **more)
            ms = [sum(said["kernel_times_ns"][-other["kernels"]:]) / 1e6 for said, other in zip(rounds.values(), others)]
            emit(NAME, f"{self.model}_cudatrace_gpu_kernel_time_over_{name}", over(ms, [other["kernel_ms"] for other in others]), "ratio", **more,
                 kernels=others[0]["kernels"], of=len(rounds[min(rounds)]["kernel_times_ns"]))


def kernel_times(database):
    """Returns each kernel's time on the GPU, ordered by start time."""
    with contextlib.closing(sqlite3.connect(database)) as opened:
        return [ns for (ns,) in opened.execute("SELECT duration_ns FROM gpu_work WHERE kind = 'kernel' ORDER BY gpu_start_ns")]


def nsys_kernels(report):
    """Returns (the number of kernels that nsys recorded, the sum of their times in milliseconds)."""
    path = f"{report}.sqlite"
    exported = gpu_run.nsys_export(report, path, LIMIT_S)
    if exported.status != 0:
        raise Failed(f"nsys export: {gpu_variants.last_line(exported.stderr.decode(errors='replace'))}")
    with contextlib.closing(sqlite3.connect(path)) as opened:
        kernels, ns = opened.execute("SELECT count(*), sum(end - start) FROM CUPTI_ACTIVITY_KIND_KERNEL").fetchone()
    return kernels, ns / 1e6


def own_processors(place):
    """Reserves processors for the training, and returns them. Returns an empty set if there are too few processors."""
    cpus = set(sorted(place.allowed)[-CPUS:]) if len(place.allowed) >= 2 * CPUS else set()
    place.keep_away_from(cpus)
    return cpus


def run(build, options):
    deadline = time.monotonic() + options.seconds
    with gpu_variants.place(build, options) as place:
        cpus = own_processors(place)
        if options.gpu_times:
            place.build()
        for model in MODELS:
            if model in options.without:
                continue
            training = Training(options, place, cpus, model)
            try:
                training.measure(deadline)
            except Failed as why:
                emit_missing(NAME, model, why)
            if "untraced" in training.said:
                training.show()
