#!/usr/bin/env python3
"""Attaches to working programs on a real GPU, and compares the recorded calls with CUPTI's counts.

The test attaches to `torch`, `triton`, `jax` and `nccl` (two processes, on two GPUs), and then waits for two quiet moments. The number of
calls recorded between the two moments must equal the number of CUPTI's callbacks, for each driver function. After the detach, nothing more
is recorded. `load` is a training run. While it is working, the test repeatedly attaches and detaches at arbitrary points, without CUPTI.
All results must be bit-identical, and nothing may be left in the process. README.md has the details.

    attach.py --build build                      0 for success, 1 for a failure, 2 for wrong usage, 77 where there is no GPU or CUPTI
    attach.py --simulated build --times 5        the same on the simulated driver, with its own counts in place of CUPTI's
"""
import argparse
import bisect
import collections
import contextlib
import json
import os
import pathlib
import re
import shutil
import sqlite3
import statistics
import subprocess
import sys
import tempfile
import time

import compare
import run
from attach_work import WORKLOADS, Command, Trouble, Work

HERE = pathlib.Path(__file__).resolve().parent
# Untraced epochs: a warm-up, the reference for all later epochs, and a third one to show that untraced epochs agree.
PLAIN_EPOCHS = 3
LOAD_STEPS_HELD = 10
ATTACH_MOST_MS = 50


# ---- what must hold ----


def between(first, second):
    """Returns how many times each function was called between two moments. Subtracting Counters would drop negative differences."""
    return {name: second[name] - first[name] for name in first.keys() | second.keys() if second[name] != first[name]}


def compare_calls(report, what, ours, theirs, slotless):
    """Compares how often each function was called. Lists the functions that CUPTI or the trace cannot count, grouped by reason."""
    rows = compare.differences(ours, theirs)
    reasons = (
        ("that have no slot, which cannot be seen by who comes later", lambda name, us, cupti: name in slotless and us < cupti),
        ("that CUPTI does not count in full", lambda name, us, cupti: name in compare.UNCOUNTED),
        ("that the hook has called, too", compare.is_query),
    )
    for reason, is_so in reasons:
        explained = [row for row in rows if is_so(*row)]
        rows = [row for row in rows if row not in explained]
        if explained:
            report.note(f"{what}: functions {reason}", compare.table(explained))
    return report.check(not rows and sum(ours.values()) > 0,
                        f"{what}: {len(rows)} functions differ of {len(set(ours) | set(theirs))}; cudatrace {sum(ours.values())} calls, "
                        f"CUPTI {sum(theirs.values())}", compare.table(rows))


def check_part(report, what, ours, theirs):
    """Checks the calls around an attach or a detach, when only some calls are recorded. No function may have more recorded calls than
    were made."""
    more = [row for row in compare.differences(ours, theirs) if row[1] > row[2] and row[0] not in compare.UNCOUNTED]
    report.check(not more, f"{what}: {sum(ours.values())} calls of {sum(theirs.values())} are recorded, and none more often than it was "
                 "made", compare.table(more))


class Before:
    """A process's state before the first attach."""

    def __init__(self, program):
        self.exports, self.descriptors = program.ask("slots"), program.descriptors()
        self.threads = len(os.listdir(f"/proc/{program.pid}/task"))
        self.slotless = {name for name, export in self.exports.items() if export["slot"] is None}

    def changed(self, program):
        """Returns the functions whose slot or code has changed."""
        return [name for name, export in program.ask("slots").items() if export != self.exports[name]]

    def check_attached(self, report, program):
        """Checks that slots or code have changed and shared memory exists, so that check_nothing_left() proves something later."""
        changed, memory = self.changed(program), program.shared_memory()
        missing = [name for name in self.exports if name not in changed and name not in self.slotless]
        report.check(changed and not missing and memory, f"while it is attached to, {len(changed)} of {len(self.exports)} functions come by "
                     f"the hook, and its memory is in /dev/shm: {memory}", missing[:compare.ROWS_SHOWN])

    def check_nothing_left(self, report, program):
        changed = self.changed(program)
        report.check(not changed, f"the driver's {len(self.exports) - len(self.slotless)} slots and the code of its {len(self.exports)} "
                     "functions are as before", changed[:compare.ROWS_SHOWN])
        report.check(not program.shared_memory(), "nothing of it is left in /dev/shm", program.shared_memory())
        new = {number: path for number, path in program.descriptors().items() if self.descriptors.get(number) != path}
        ours = [f"{number}: {path}" for number, path in new.items() if "cudatrace" in path]
        report.check(not ours, "no descriptor of ours is open in it", ours)
        if len(new) > len(ours):
            report.note(f"descriptors that it opened itself meanwhile: {sorted(set(new.values()))[:5]}")
        threads = len(os.listdir(f"/proc/{program.pid}/task"))
        hook, memory = program.mappings()
        report.note(f"threads {self.threads} before, {threads} now; {hook} mappings of the hook, {memory} of its shared memory")


def check_trace(report, work, has_names=True):
    """Checks the conditions that must hold for every workload's trace."""
    work.flush()
    with contextlib.closing(compare.open_database(work.db)) as database:
        compare.check_sums(report, database)
        launches, nameless, kernels, unknown = database.execute(
            "SELECT count(*), count(*) FILTER (WHERE kernel IS NULL), count(DISTINCT kernel), "
            "count(DISTINCT iif(kernel IS NULL, grid_x || ' ' || grid_y || ' ' || block_x, NULL)) FROM launches "
            "WHERE call_id NOT IN (SELECT call_id FROM calls WHERE status <> 0)").fetchone()
        # A probe cannot ask the driver for names of kernels that were loaded before it.
        report.check(not nameless or not has_names, f"{launches} launches of {kernels} named kernels; {nameless} without a name, in {unknown} shapes")
        failed = database.execute("SELECT name, sum(failed) FROM totals GROUP BY 1 HAVING sum(failed) > 0 ORDER BY 2 DESC").fetchall()
        report.note("calls that failed, as the program's own affair: " + (", ".join(f"{count} {name}" for name, count in failed[:8]) or "none"))
        report.note("processes: " + ", ".join(f"{pid} {state}" for pid, state in database.execute("SELECT pid, state FROM processes")))
    return {"launches": launches, "launches_without_name": nameless}


def check_results(report, program):
    result = program.ask("result")
    plain = [epoch for epoch in result["differing"] if epoch < PLAIN_EPOCHS]
    if plain:
        report.check(False, "two epochs that nobody traced have different results already: nothing can be told")
    report.check(not result["differing"] and result["epochs"] > PLAIN_EPOCHS,
                 f"the same result to the bit in each of {result['epochs'] - PLAIN_EPOCHS} epochs since, as in those that nobody traced; "
                 f"{result['steps']} steps", result["differing"][:compare.ROWS_SHOWN])
    return result


def end_programs(report, work):
    for program in work.programs:
        program.tell("quit")
    for program in work.programs:
        status = program.end()
        report.check(status == 0, f"process {program.pid} ends well", [f"status {status}", program.last_errors()])
        said = [line for line in program.last_errors().splitlines() if "cudatrace" in line]
        report.check(not said, "and says nothing of cudatrace", said)


# ---- the workloads ----


def exact(report, work):
    """Checks that all counts agree between two quiet moments while the program is attached to. Attaches and detaches while the program is
    working."""
    report.begin(f"{work.name}: counts")
    work.start(cupti=True)
    work.steps(PLAIN_EPOCHS * work.epoch_steps)
    before = [Before(program) for program in work.programs]
    plain = [program.snapshot() for program in work.programs]
    attach = work.recorded_at_work()
    begun = work.moment()
    work.steps(work.workload.steps)
    over = work.moment()
    for was, program in zip(before, work.programs):
        was.check_attached(report, program)
    work.interrupt_at_work(attach)
    left = work.moment()
    work.steps(work.workload.burst)
    end = work.moment()

    figures = {"attach": said_by(attach.said.text())}
    for i, program in enumerate(work.programs):
        who = f"process {program.pid}" if len(work.programs) > 1 else "driver calls"
        ours, theirs = between(begun.ours[i], over.ours[i]), between(begun.theirs[i], over.theirs[i])
        compare_calls(report, f"{who}, {work.workload.steps} steps", ours, theirs, before[i].slotless)
        check_part(report, f"{who}, around the attach", begun.ours[i], between(plain[i], begun.theirs[i]))
        check_part(report, f"{who}, around the detach", between(over.ours[i], left.ours[i]), between(over.theirs[i], left.theirs[i]))
        report.check(end.ours[i] == left.ours[i] and end.theirs[i] != left.theirs[i],
                     f"{who}, behind the detach: {sum(between(left.theirs[i], end.theirs[i]).values())} calls, none of which is recorded",
                     compare.table(compare.differences(end.ours[i], left.ours[i])))
        figures.update({"calls": sum(ours.values()), "functions": len(ours)})
        before[i].check_nothing_left(report, program)
        figures.update(epochs=check_results(report, program)["epochs"])
    report.check(not work.problems, "CUPTI lost nothing", sorted(work.problems))
    for line in attach.said.text().splitlines():
        report.note(line)
    end_programs(report, work)
    return figures | check_trace(report, work)


def said_by(text):
    """Parses the output of --verbose: milliseconds until calls are recorded, and the number and length of a thread's stops."""
    stops = re.findall(r"(\d+) stops of a thread, ([\d.]+) ms in all, the longest ([\d.]+) ms", text)
    recorded = re.findall(r"recorded after ([\d.]+) ms, ", text)
    return {"recorded_ms": [float(ms) for ms in recorded], "stops": [int(count) for count, _, _ in stops],
            "stopped_ms": [float(ms) for _, ms, _ in stops], "longest_stop_ms": [float(ms) for _, _, ms in stops]}


def hold(program):
    """Returns once the program has made LOAD_STEPS_HELD more steps."""
    begin = len(program.said.lines) - 1
    reached = int(program.said.find(r"^at (\d+)", begin)[1][1])
    program.said.await_line(f"^at {reached + LOAD_STEPS_HELD}$", 60, begin)


def one_visit(work, number, spans, waits, said):
    """Attaches and detaches once while the program works. Detaches by SIGINT or, every other time, by the `detach` command after `attach
    --stay`."""
    program = work.programs[0]
    stays = number % 2 == 1
    attach = work.attach(*(["--stay"] if stays else []))
    recorded_ns = attach.await_recorded(program.pid)
    if stays:
        attach.wait()
    hold(program)
    if stays:
        detach = Command(work, "detach", program.pid, "--verbose")
        left_ns = detach.begun_ns, detach.wait()
    else:
        left_ns = attach.end()
        for key, values in said_by(attach.said.text()).items():
            said[key] += values
    spans += [("attaching", attach.begun_ns, recorded_ns), ("recorded", recorded_ns, left_ns[0]), ("leaving", *left_ns)]
    waits.append((recorded_ns - attach.begun_ns) / 1e6)


def first_visit(report, work):
    """Attaches with a new daemon. Because this is the first attach, it loads the hook."""
    program = work.programs[0]
    attach = work.attach(other="first")
    recorded_ns = attach.await_recorded(program.pid)
    hold(program)
    attach.end()
    took_ms = (recorded_ns - attach.begun_ns) / 1e6
    report.note(f"the first attach, which starts a daemon and loads the hook: recorded after {took_ms:.1f} ms")
    for line in attach.said.text().splitlines():
        report.note(line)
    return took_ms


def load(report, work):
    """Attaches and detaches many times, without any cooperation by the program."""
    times = work.bench.times
    report.begin(f"load: {times} attaches and detaches")
    work.start(cupti=False)
    program = work.programs[0]
    work.steps(PLAIN_EPOCHS * work.epoch_steps)
    before = Before(program)
    spans, waits, said, fewest = [], [], collections.defaultdict(list), None
    program.tell("run")
    alone_steps = PLAIN_EPOCHS * work.epoch_steps + work.bench.alone_steps
    program.hear(f"^at {alone_steps}$", 60)
    alone_until_ns = time.monotonic_ns()
    first_ms = first_visit(report, work)
    for number in range(times):
        one_visit(work, number, spans, waits, said)
        if number == 1:
            fewest = program.mappings()
    most = program.mappings()
    program.tell("stop")
    program.hear()
    result = check_results(report, program)
    report.check(len(waits) == times, f"{times} times each command ended with 0")
    before.check_nothing_left(report, program)
    report.check(times < 3 or most <= fewest, f"what is mapped does not grow: {most} mappings, {fewest} after the second time")
    end_programs(report, work)
    figures = check_trace(report, work)
    figures.update(calls=work.rows("SELECT sum(calls) FROM totals")[0][0], attach=tell_waits(report, waits, said, work.bench.simulated),
                   first_attach_ms=first_ms, steps=tell_steps(report, result, [("first", alone_until_ns, spans[0][1]), *spans]))
    return figures


def spread(values, digits=3):
    """Returns the count, the median, the 99th percentile and the maximum."""
    values = sorted(values)
    if not values:
        return {"count": 0}
    return {"count": len(values), "median": round(statistics.median(values), digits),
            "p99": round(values[min(len(values) - 1, len(values) * 99 // 100)], digits), "max": round(values[-1], digits)}


def tell_waits(report, waits, said, simulated):
    named = {"from the command's start to recorded, ms": waits, "from its examination to recorded, ms": said["recorded_ms"],
             "stops of a thread in one attach and detach": said["stops"], "all of them together, ms": said["stopped_ms"],
             "the longest of them, ms": said["longest_stop_ms"]}
    found = {name: spread(values) for name, values in named.items()}
    for name, values in found.items():
        report.note(f"{name}: {values}")
    middle = statistics.median(waits)
    if simulated:
        report.note("how long it takes is not judged here")
    else:
        report.check(middle <= ATTACH_MOST_MS, f"attach takes {middle:.1f} ms, at most {ATTACH_MOST_MS}; the longest {max(waits):.1f} ms")
    return found


def tell_steps(report, result, spans):
    """Reports step times by phase. A step that overlaps several phases is counted in the phase that comes first in `order`."""
    order = ["attaching", "leaving", "recorded", "between", "first"]
    begins, phases = [span[1] for span in spans], collections.defaultdict(list)
    for i, (begun_ns, ended_ns) in enumerate(zip(result["began_ns"], result["ended_ns"])):
        if (result["first_of_run"] + i) % result["epoch_steps"] in (0, result["epoch_steps"] - 1):
            continue  # the step begins an epoch or computes its result
        last = bisect.bisect_right(begins, ended_ns)
        touched = [span[0] for span in spans[max(0, last - 4):last] if span[2] > begun_ns] or ["alone" if last == 0 else "between"]
        phases[min(touched, key=lambda name: order.index(name) if name in order else len(order))].append((ended_ns - begun_ns) / 1e6)
    found = {name: spread(phases[name]) for name in ("alone", *order)}
    for name, values in found.items():
        report.note(f"a step of the program, ms, {name}: {values}")
    return found


# ---- all of it ----


class Bench:
    """State that all workloads share. If there is a GPU, also builds the CUPTI library."""

    def __init__(self, options, scratch):
        self.options, self.scratch, self.out = options, scratch, options.out
        build = os.path.abspath(options.simulated or options.build)
        self.cudatrace, self.daemon, self.simulated = f"{build}/tools/cudatrace", f"{build}/collector/cudatraced", bool(options.simulated)
        self.times, self.truth_library, self.python = options.times, None, sys.executable
        self.alone_steps = 100 if self.simulated else 1000
        self.env = run.plain_environment(scratch)
        self.env.pop("CUDATRACE_WAY", None)
        self.tool_env = dict(self.env)
        if self.simulated:
            os.mkdir(f"{scratch}/counts")
            self.env.update(LD_LIBRARY_PATH=f"{build}/tests/simcuda/580:{build}/tests/simcuda", SIMCUDA_COUNTS=f"{scratch}/counts")
        self.env.update(PYTHONDONTWRITEBYTECODE="1", XLA_PYTHON_CLIENT_PREALLOCATE="false")

    def prepare(self, report, names):
        """Returns the names of the workloads that this machine can run."""
        if self.simulated:
            return names
        run.require_gpu()
        self.python = shutil.which("python3") or sys.executable
        self.build_truth(report)
        gpus = sum(re.fullmatch(r"nvidia\d+", name) is not None for name in os.listdir("/dev"))
        return [name for name in names if self.has(report, name, gpus)]

    def has(self, report, name, gpus):
        wants = {"triton": "triton", "jax": "jax"}.get(name, "torch")
        if WORKLOADS[name].processes > gpus:
            report.begin(name)
            report.warn(f"left out: it wants {WORKLOADS[name].processes} GPUs, and here are {gpus}")
            return False
        found = subprocess.run([self.python, "-c", f"import importlib.util as u, sys; sys.exit(not u.find_spec('{wants}'))"], timeout=60,
                               env=self.env, check=False)
        if found.returncode:
            report.begin(name)
            report.warn(f"left out: {self.python} has no {wants}")
        return found.returncode == 0

    def build_truth(self, report):
        report.begin("build")
        includes, library = run.find_cupti(run.find_nvcc())
        self.truth_library = f"{self.scratch}/libcupti_truth.so"
        failed = run.build_together({"cupti_truth.c": run.truth_command(includes, library, self.truth_library)}, 120)
        report.check(not failed, "cupti_truth.c compiles", failed.get("cupti_truth.c", ()))
        report.note(f"CUPTI: {library}; programs: {self.python}")
        if failed:
            raise Trouble("without CUPTI's counts there is nothing to compare with")

    def scene(self, name):
        return load if name == "load" else exact

    def run(self, report, name):
        begun, figures = time.monotonic(), None
        work = Work(self, name)
        try:
            with work:
                figures = self.scene(name)(report, work)
        except (Trouble, OSError, subprocess.SubprocessError, sqlite3.Error, ValueError, LookupError, TypeError) as trouble:
            report.check(False, f"{name} could be tried to its end: {type(trouble).__name__}: {trouble}", [
                f"process {program.pid} (ended with {work.ends.get(program.pid)}) said: {line}" for program in work.programs
                for line in program.last_errors().splitlines()[-compare.ROWS_SHOWN:] or ["nothing"]])
        took = round(time.monotonic() - begun, 1)
        report.note(f"took {took} s")
        return {"workload": name, "seconds": took} | (figures or {})


def parse_arguments(description, workloads, programs):
    parser = argparse.ArgumentParser(description=description)
    where = parser.add_mutually_exclusive_group(required=True)
    where.add_argument("--build", help="meson's build directory")
    where.add_argument("--simulated", metavar="BUILD", help="the same, and the simulated driver in place of a GPU's")
    parser.add_argument("--out", help="keep report.txt, figures.jsonl and the logs of all processes here")
    parser.add_argument("--only", action="append", choices=workloads, help="this workload alone (repeatable)")
    parser.add_argument("--times", type=int, default=100, help="attaches and detaches of the workload load (default: 100)")
    options = parser.parse_args()
    build = options.build or options.simulated
    if options.times < 1:
        parser.error("--times: once, at least")
    for program in programs:
        if not os.path.exists(f"{build}/{program}"):
            parser.error(f"{build} holds no {program}: build it first")
    return options


def main(bench_class=Bench, description="Attach to programs at work on this machine's GPU, and compare with CUPTI.", workloads=("torch", "triton", "jax", "nccl", "load"),
         programs=("tools/cudatrace", "collector/cudatraced", "hook/libcudatrace.so")):
    options = parse_arguments(description, workloads, programs)
    sys.stdout.reconfigure(errors="replace")
    begun = time.monotonic()
    if options.out:
        os.makedirs(options.out, exist_ok=True)
    try:
        with tempfile.TemporaryDirectory(prefix="cudatrace-attach-") as scratch:
            bench = bench_class(options, scratch)
            if not options.simulated:
                run.require_gpu()
            report = compare.Report(run.Tee(f"{options.out}/report.txt") if options.out else sys.stdout)
            try:
                names = bench.prepare(report, options.only or list(workloads))
            except Trouble as trouble:
                report.check(False, str(trouble))
                names = []
            figures = [bench.run(report, name) for name in names]
    except run.Skip as reason:
        print(f"skipped: {reason}")
        return run.SKIP
    if options.out:
        pathlib.Path(options.out, "figures.jsonl").write_text("".join(json.dumps(line) + "\n" for line in figures))
    for line in figures:
        report.note(json.dumps(line))
    report.note(f"all took {time.monotonic() - begun:.0f} s")
    return report.finish()


if __name__ == "__main__":
    sys.exit(main())
