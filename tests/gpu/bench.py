#!/usr/bin/env python3
"""What tracing costs on this machine's GPU: calls that return at once, launches, and a PyTorch training loop, untraced,
under cudatrace and under its peers, in interleaved rounds of one run. README.md says what each figure is.

Prints JSON lines and then a table; progress goes to standard error. Exits 77 where there is no GPU. With --driver it
runs on a simulated driver to show that it works, and says so in every line.
"""
import argparse
import contextlib
import json
import math
import os
import pathlib
import signal
import statistics
import sys
import tempfile
import time

import bench_variants
import run

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(1, os.path.join(os.path.dirname(HERE), "bench"))
from figures import spread  # noqa: E402: lies with the other benchmarks

SHORT_CALLS = bench_variants.FUNCTIONS[:2]
LAUNCH_TARGET = 1.015
TRAINING_TARGET = 1.01
CONFIDENCE = 0.95
# What must work for the run to be of use; a peer that does not is a line that says why.
WANTED = ("untraced", "cudatrace")
TRAINING_CPUS = 4


def progress(text):
    print(text, file=sys.stderr, flush=True)


# ---- the machine ----


def siblings(cpu):
    """The processors that share a core with this one."""
    try:
        text = pathlib.Path(f"/sys/devices/system/cpu/cpu{cpu}/topology/thread_siblings_list").read_text(encoding="utf-8")
    except OSError:
        return {cpu}
    found = set()
    for part in text.strip().split(","):
        first, _, last = part.partition("-")
        found |= set(range(int(first), int(last or first) + 1))
    return found


def keep_away_from(cpus, allowed):
    """This script, and with it every daemon that is started, goes elsewhere if there is an elsewhere."""
    cores = set().union(*(siblings(cpu) for cpu in cpus))
    os.sched_setaffinity(0, (allowed - cores) or (allowed - set(cpus)) or allowed)


def host():
    def first(path, prefix=""):
        with contextlib.suppress(OSError), open(path, encoding="utf-8") as file:
            for line in file:
                if line.startswith(prefix):
                    return line.partition(":")[2].strip() if prefix else line.strip()
        return "unknown"

    clock = "/sys/devices/system/clocksource/clocksource0/current_clocksource"
    return f"{first('/proc/cpuinfo', 'model name')}, {os.cpu_count()} processors, Linux {os.uname().release}, " \
           f"clock source {first(clock)}"


# ---- figures ----


class Report:
    """JSON lines as they come; the table's lines are kept for the end."""

    def __init__(self, simulated):
        self.label = {"driver": "simulated, no GPU"} if simulated else {}
        self.simulated = simulated
        self.device = "unknown"
        self.two_reads_ns = None  # added to a call that returns at once, by a wrapper that does nothing else
        self.table = []
        self.lines = []
        self.broken = False

    def line(self, **fields):
        text = json.dumps({"benchmark": fields.pop("benchmark"), **self.label, "device": self.device, **fields})
        self.lines.append(text)
        print(text, flush=True)

    def figure(self, benchmark, variant, figure, values, unit, **more):
        self.line(benchmark=benchmark, variant=variant, figure=figure, unit=unit, **spread(values), **more)

    def say(self, text=""):
        self.table.append(text)

    def left_out(self, benchmark, variant, why):
        self.line(benchmark=benchmark, variant=variant, left_out=why)
        self.say(f"  {variant:<24}left out: {why}")
        if variant in WANTED:
            self.broken = True

    def target(self, what, value, limit):
        if not self.simulated:
            self.say(f"  {what}: {value:.4f}, target at most {limit}: {'reached' if value <= limit else 'not reached'}")


def cell(values, digits=1):
    if not values:
        return "-"
    figures = spread(values)
    return f"{figures['median']:.{digits}f} ({figures['min']:.{digits}f}-{figures['max']:.{digits}f})"


def median_interval(values):
    """(low, high, confidence) of the median from the order of the values alone, as the sign test gives it: of n values
    the k-th from either end. Without an interval of CONFIDENCE, for few values, all of them."""
    values, count = sorted(values), len(values)

    def outside(k):
        return 2 * sum(math.comb(count, i) for i in range(k)) / 2 ** count

    k = max([k for k in range(1, count // 2 + 1) if 1 - outside(k) >= CONFIDENCE], default=1)
    return values[k - 1], values[count - k], max(0.0, 1 - outside(k))


# ---- calls and launches ----


class Calls:
    """Rounds of processes: each variant once a round, every second round in the reverse order."""

    BENCHMARK = "gpu-calls"

    def __init__(self, options, report, place, deadline):
        self.options = options
        self.report = report
        self.place = place
        self.deadline = deadline
        self.left_out = {}
        self.results = {}

    def run(self):
        self.place.build()
        with contextlib.ExitStack() as stack:
            variants = []
            for name, what, make in bench_variants.TABLE:
                if name in self.options.without:
                    continue
                try:
                    variants.append(make(self.place, name, what))
                    stack.callback(variants[-1].close)
                except bench_variants.Failed as why:
                    self.left_out[name] = str(why)
            # A first process finds files and the driver's own caches cold.
            variants[0].measure("warm-up")
            for number in range(self.options.rounds):
                begun = time.monotonic()
                self.round(number, variants)
                variants = [variant for variant in variants if variant.name not in self.left_out]
                took = time.monotonic() - begun
                progress(f"calls: round {number + 1} of {self.options.rounds}, {took:.1f} s")
                if time.monotonic() + took > self.deadline:
                    progress("calls: no time for another round")
                    break
        self.tell(variants)

    def round(self, number, variants):
        for variant in variants if number % 2 == 0 else variants[::-1]:
            try:
                self.results.setdefault(variant.name, []).append(variant.measure(number))
            except bench_variants.Failed as why:
                self.left_out[variant.name] = str(why)
                self.results.pop(variant.name, None)

    def values(self, name, function, percentile):
        return [measured.figures[function][percentile] for measured in self.results[name]]

    def tell(self, variants):
        report = self.report
        if "untraced" not in self.results:
            report.left_out(self.BENCHMARK, "untraced", self.left_out.get("untraced", "not asked for"))
            return
        report.device = self.results["untraced"][0].device
        two = self.added("two_counter_reads")
        if two:
            report.two_reads_ns = statistics.median(two[SHORT_CALLS[0]])
        for function in SHORT_CALLS:
            report.say(f"{function}: ns a call (medians of batches), and what is added to untraced")
            report.say(f"  {'':<24}{'ns':<26}{'added':<26}x two counter reads")
            for variant in variants:
                self.tell_short(variant, function, two)
            report.say()
        report.say("cuLaunchKernel of an empty kernel: ns of single calls; turns: batches through the tracer / past it")
        report.say(f"  {'':<24}{'p50':<27}{'p99':<27}{'p50 / untraced':<22}turns")
        for variant in variants:
            self.tell_launch(variant)
        report.say()
        for variant in variants:
            self.tell_recorded(variant)
        for name, why in self.left_out.items():
            report.left_out(self.BENCHMARK, name, why)
        if "cudatrace" in self.results:
            report.target("cudatrace, cuLaunchKernel p50 / untraced", statistics.median(self.over_untraced("cudatrace")),
                          LAUNCH_TARGET)
        report.say()

    def added(self, name):
        """{function: ns added in each round}, None for a variant that did not run."""
        if name not in self.results or "untraced" not in self.results:
            return None
        return {function: [value - bare for value, bare in zip(self.values(name, function, "p50"),
                                                               self.values("untraced", function, "p50"))]
                for function in SHORT_CALLS}

    def over_untraced(self, name):
        return [value / bare for value, bare in zip(self.values(name, "cuLaunchKernel", "p50"),
                                                    self.values("untraced", "cuLaunchKernel", "p50"))]

    def tell_short(self, variant, function, two):
        report, name = self.report, variant.name
        times, added = self.values(name, function, "p50"), self.added(name)[function]
        for percentile in bench_variants.PERCENTILES:
            report.figure(self.BENCHMARK, name, f"{function}_{percentile}", self.values(name, function, percentile), "ns")
        over = []
        if name != "untraced":
            report.figure(self.BENCHMARK, name, f"{function}_added", added, "ns")
        # A difference that the noise of processes has made nothing of is nothing to divide by.
        if two and name not in ("untraced", "wrapper") and min(two[function]) > 0:
            over = [value / peer for value, peer in zip(added, two[function])]
            report.figure(self.BENCHMARK, name, f"{function}_added_over_two_counter_reads", over, "ratio")
        report.say(f"  {name:<24}{cell(times):<26}{cell(added) if name != 'untraced' else '':<26}{cell(over, 2)}")

    def tell_launch(self, variant):
        report, name = self.report, variant.name
        for percentile in bench_variants.PERCENTILES:
            report.figure(self.BENCHMARK, name, f"cuLaunchKernel_{percentile}",
                          self.values(name, "cuLaunchKernel", percentile), "ns")
        ratios = self.over_untraced(name)
        turns = [measured.figures["turns"]["through"] / measured.figures["turns"]["past"] for measured in self.results[name]]
        report.figure(self.BENCHMARK, name, "cuLaunchKernel_p50_over_untraced", ratios, "ratio")
        report.figure(self.BENCHMARK, name, "cuLaunchKernel_p50_through_over_past", turns, "ratio")
        report.say(f"  {name:<24}{cell(self.values(name, 'cuLaunchKernel', 'p50'), 0):<27}"
                   f"{cell(self.values(name, 'cuLaunchKernel', 'p99'), 0):<27}"
                   f"{cell(ratios, 3) if name != 'untraced' else '':<22}{cell(turns, 3)}")

    def tell_recorded(self, variant):
        """A tracer that recorded less than was called was not measured."""
        report, results = self.report, self.results[variant.name]
        recorded = [measured.recorded for measured in results if measured.recorded is not None]
        lost = sum(measured.lost or 0 for measured in results)
        if not recorded:
            return
        wanted = self.place.calls()
        report.line(benchmark=self.BENCHMARK, variant=variant.name, figure="recorded", unit="calls", least=min(recorded),
                    at_least_called=wanted, lost=lost)
        if lost or min(recorded) < wanted:
            report.say(f"  {variant.name:<24}BEWARE: {lost} lost, {min(recorded)} recorded of {wanted} or more: its figures are "
                       "not those of recording each call")
            report.broken |= variant.name in WANTED


# ---- training ----


class Training:
    """Pairs of processes, untraced and traced in turn, the first one changing. Of the loop that is bound by launches every
    second pair is a triple, with the driver's layer alone."""

    LIMIT_S = 120
    # By the models of bench_training.py: steps, steps before them, steps between two waits.
    MODELS = {"layers": (1000, 200, 10), "transformer": (80, 20, 5)}

    def __init__(self, options, report, place, cpus, deadline, model):
        self.benchmark = f"gpu-training-{model}"
        self.model = model
        self.options = options
        self.report = report
        self.place = place
        self.cpus = cpus
        self.deadline = deadline
        self.python = options.python
        self.steps = {"untraced": [], "cudatrace": [], "cudatrace_driver_layer": []}
        self.ratios = {"cudatrace": [], "cudatrace_driver_layer": []}
        self.stored = {"cudatrace": [], "cudatrace_driver_layer": []}
        self.lost = {"cudatrace": 0, "cudatrace_driver_layer": 0}

    def command(self):
        command = [self.python, f"{HERE}/bench_training.py", "--model", self.model]
        for option, value in zip(("--steps", "--warm-up", "--block"), self.MODELS[self.model]):
            command += [option, str(value)]
        if self.cpus:
            command += ["--cpus", ",".join(map(str, sorted(self.cpus)))]
        return command + (["--device", "cpu"] if self.report.simulated else [])

    def once(self, name, number):
        command, session = self.command(), f"gputraining{os.getpid()}"
        database = f"{self.place.scratch}/training.{name}.{number}.db"
        if name != "untraced":
            layers = ["--layers", "driver"] if name == "cudatrace_driver_layer" else []
            command = [self.place.cudatrace, "run", "--session", session, "--db", database, *layers, "--", *command]
        try:
            ended = run.run_process(command, self.place.env, self.LIMIT_S)
        finally:
            bench_variants.stop_left_over(self.place, session)
        try:
            said = json.loads(bench_variants.last_line(ended.stdout.decode(errors="replace")))
        except ValueError:
            said = None
        if ended.status != 0 or not said:
            raise bench_variants.Failed(f"{name}: ended with status {ended.status}: "
                                        + bench_variants.last_line(ended.stderr.decode(errors="replace")))
        if name != "untraced":
            stored, lost = bench_variants.totals(database)
            self.stored[name].append(stored / said["all_steps"])
            self.lost[name] += lost
        return said

    def pair(self, number):
        names = ["untraced", "cudatrace"] if number % 2 == 0 else ["cudatrace", "untraced"]
        if number % 2 != 0 and self.model == "layers":
            names.append("cudatrace_driver_layer")
        said = {name: self.once(name, number) for name in names}
        for name in names:
            self.steps[name].append(said[name]["p50_ms"])
            if name != "untraced":
                self.ratios[name].append(said[name]["p50_ms"] / said["untraced"]["p50_ms"])
        self.report.device = said["untraced"]["device"]
        self.torch = said["untraced"]["torch"]

    def run(self):
        try:
            self.once("untraced", "warm-up")
            longest = 0
            for number in range(self.options.pairs):
                begun = time.monotonic()
                self.pair(number)
                longest = max(longest, time.monotonic() - begun)
                progress(f"{self.model}: pair {number + 1} of {self.options.pairs}, {time.monotonic() - begun:.1f} s, "
                         f"ratio {self.ratios['cudatrace'][-1]:.4f}")
                if time.monotonic() + longest > self.deadline:
                    progress(f"{self.model}: no time for another pair")
                    break
        except bench_variants.Failed as why:
            self.report.left_out(self.benchmark, "cudatrace", str(why))
        if self.ratios["cudatrace"]:
            self.tell()

    def say_floor(self, calls):
        """What two reads of the counter for each call would cost a loop whose time is the processor's."""
        if self.report.two_reads_ns and self.model == "layers":
            ns = self.report.two_reads_ns
            share = calls * ns / 1e6 / statistics.median(self.steps["untraced"])
            self.report.line(benchmark=self.benchmark, figure="two_counter_reads_share_of_step", unit="share",
                             median=round(share, 5), calls_a_step=round(calls, 1), two_counter_reads_ns=round(ns, 2))
            self.report.say(f"  two reads of the counter for each of {calls:.0f} calls, {ns:.1f} ns: {100 * share:.1f} % of the step")

    def tell(self):
        report = self.report
        report.say(f"PyTorch {self.torch}, training step, {self.model}, {self.MODELS[self.model][0]} steps a process, ms "
                   "(median of blocks)")
        for name, values in self.steps.items():
            if not values:
                continue
            report.figure(self.benchmark, name, "step", values, "ms")
            if name == "untraced":
                report.say(f"  {name:<24}{cell(values, 4)}")
                continue
            ratios = self.ratios[name]
            low, high, confidence = median_interval(ratios)
            calls = statistics.median(self.stored[name])
            report.figure(self.benchmark, name, "step_over_untraced", ratios, "ratio",
                          pairs=[round(ratio, 5) for ratio in ratios], low=round(low, 5), high=round(high, 5),
                          confidence=round(confidence, 4), calls_a_step=round(calls, 1), lost=self.lost[name])
            self.say_floor(calls)
            report.say(f"  {name:<24}{cell(values, 4):<26}ratio {statistics.median(ratios):.4f} of {len(ratios)} pairs, "
                       f"{100 * confidence:.1f} % interval {low:.4f}-{high:.4f}, least {min(ratios):.4f}, most {max(ratios):.4f}; "
                       f"{calls:.0f} calls a step, {self.lost[name]} lost")
            if self.lost[name]:
                report.say("  BEWARE: calls were lost: the figures are in part those of a full ring")
                report.broken = True
        report.target("cudatrace, training step / untraced", statistics.median(self.ratios["cudatrace"]), TRAINING_TARGET)
        report.say()


# ---- the hook's parts ----


def profile(options, report, scratch):
    """The benchmarks of tests/bench that need no GPU, built here: what the hook costs on this host, part by part."""
    build = pathlib.Path(scratch) / "build"
    programs = build / "tests" / "bench"
    programs.mkdir(parents=True)
    for part in ("hook", "collector", "tools"):
        (build / part).symlink_to(os.path.abspath(os.path.join(options.build, part)))
    # Read by the end-to-end tests' sessions when they are imported.
    os.environ["CUDATRACE_BUILD"] = str(build)
    sys.path.append(os.path.join(os.path.dirname(HERE), "e2e"))
    import hook  # noqa: PLC0415: the modules are found through figures' folder
    import hook_parts  # noqa: PLC0415
    hook_parts.build_programs(programs)
    hook.run(build)
    report.say(hook_parts.report(programs / "hook_parts"))


# ---- ----


def parse_arguments():
    parser = argparse.ArgumentParser(description="Measure what tracing costs on this machine's GPU.")
    parser.add_argument("--build", required=True, help="meson's build directory")
    parser.add_argument("--out", help="keep the JSON lines and the table in this directory")
    parser.add_argument("--only", choices=("calls", *Training.MODELS), action="append", help="this part alone (repeatable)")
    parser.add_argument("--profile", action="store_true", help="the hook's parts on this host, and nothing else")
    parser.add_argument("--without", action="append", default=[], metavar="VARIANT", help="leave it out (repeatable)")
    parser.add_argument("--rounds", type=int, default=7, help="of calls and launches (7)")
    parser.add_argument("--batches", type=int, default=400, help="batches of 200 short calls a process (400)")
    parser.add_argument("--launch-batches", type=int, default=200, help="batches of 200 launches a process (200)")
    parser.add_argument("--pairs", type=int, default=10, help="of training processes (10)")
    parser.add_argument("--python", default="python3", help="one that has PyTorch")
    parser.add_argument("--seconds", type=float, default=285, help="begin no round that would not end by then (285)")
    parser.add_argument("--driver", metavar="LIBCUDA", help="a simulated driver instead of a GPU: shows that the bench works")
    options = parser.parse_args()
    unknown = set(options.without) - {name for name, _, _ in bench_variants.TABLE}
    if unknown or set(options.without) & set(WANTED):
        parser.error(f"cannot leave out {', '.join(sorted(unknown or set(WANTED)))}")
    if not os.access(os.path.join(options.build, "tools", "cudatrace"), os.X_OK):
        parser.error(f"{options.build} holds no tools/cudatrace: build it first")
    return options


def measure(options, report, scratch):
    allowed = os.sched_getaffinity(0)
    cpu = max(allowed)
    deadline = time.monotonic() + options.seconds
    if options.profile:
        profile(options, report, scratch)
        return
    if not options.driver:
        run.require_gpu()
    place = bench_variants.Place(options, scratch, cpu)
    report.say(f"host: {host()}")
    if not options.only or "calls" in options.only:
        keep_away_from({cpu}, allowed)
        Calls(options, report, place, deadline).run()
    for model in Training.MODELS:
        if not options.only or model in options.only:
            cpus = set(sorted(allowed)[-TRAINING_CPUS:]) if len(allowed) >= 2 * TRAINING_CPUS else set()
            keep_away_from(cpus, allowed)
            Training(options, report, place, cpus, deadline, model).run()
    report.say(f"device: {report.device}")


def main():
    options = parse_arguments()
    # So that probes, mounts and daemons go with an interrupted run, too.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit("ended by a signal"))
    report = Report(bool(options.driver))
    begun = time.monotonic()
    try:
        with tempfile.TemporaryDirectory(prefix="cudatrace-gpubench-") as scratch:
            measure(options, report, scratch)
    except run.Skip as reason:
        print(f"skipped: {reason}")
        return run.SKIP
    except bench_variants.Failed as why:
        print(f"failed: {why}")
        return 1
    if options.driver:
        report.say("SIMULATED DRIVER: no figure above is one of a GPU")
    report.say(f"took {time.monotonic() - begun:.0f} s")
    table = "\n".join(report.table) + "\n"
    print(table, end="")
    if options.out:
        os.makedirs(options.out, exist_ok=True)
        out = pathlib.Path(options.out)
        (out / "bench.jsonl").write_text("".join(f"{line}\n" for line in report.lines), encoding="utf-8")
        (out / "bench.txt").write_text(table, encoding="utf-8")
    return 1 if report.broken else 0


if __name__ == "__main__":
    sys.exit(main())
