"""Measures the time that tracing adds to a call in a small PyTorch training run, compared with two reads of the processor's counter.
Several training runs are concurrent. Each consists of an untraced and a hooked process. The hooked process handles its calls in three ways,
and switches between them after each block of ten steps (turns.c). It only passes the calls on, or times them with two reads of the counter,
or records them for a daemon with default settings. The ways take turns within one process, because even two equal processes differ by 50 ns
per call or more. Only the cost of entering the hook, which all three ways share, is measured by comparing two processes. Several sets of
processes show the spread of that cost. The first block after a block of the other process has cold caches, and is therefore not counted."""
import contextlib
import mmap
import random
import statistics
import struct
import subprocess
import sys
import threading
import time

import gpu_training
import gpu_variants
from figures import emit, emit_missing
from gpu_session import OwnSession
from gpu_variants import Failed

NAME = "gpu_turns"
MODEL = "layers"
COUNTS = (1, 2, 4, 8)
PROCESSES = {"untraced": None, "hooked": "tests/bench/libcudatrace-turns.so"}
TURNS = {"passed": 0, "reads": 1, "traced": 2}  # as in turns.h
ROUNDS, STEPS_BEFORE, STEPS_OF_BLOCK = 100, 200, 10
LIMIT_S = 240  # limit for one set


def share(allowed, count, number):
    """Returns the processors for training run `number`. All runs together take at most half of the processors. Within that limit, each run
    gets two processors, or else one, or else none."""
    each = 2 if 4 * count <= len(allowed) else 1
    return set(sorted(allowed, reverse=True)[each * number:each * (number + 1)]) if 2 * each * count <= len(allowed) else set()


class Turn:
    """The file that gives the hooked programs the number of the current turn."""

    def __init__(self, place):
        self.path = f"{place.scratch}/turn"
        with open(self.path, "wb") as file:
            file.write(bytes(mmap.PAGESIZE))
        self.blocks = dict.fromkeys(TURNS, 0)

    def take(self, turn):
        with open(self.path, "r+b") as file:
            file.write(struct.pack("=I", TURNS[turn]))


class Set:
    """A set of processes that take turns: `count` untraced and `count` hooked ones."""

    def __init__(self, options, place, count):
        self.options, self.place, self.count = options, place, count
        self.programs, self.turn = {}, Turn(place)

    def command(self, number):
        cpus = share(self.place.allowed, self.count, number)
        return [*gpu_training.Training(self.options, self.place, cpus, MODEL).command(), "--turns"]

    def start(self, session):
        self.turn.take("traced")
        for which, library in PROCESSES.items():
            env = {**session.env(library), "CUDATRACE_BENCH_TURN": self.turn.path} if library else self.place.env
            self.programs[which] = [subprocess.Popen(self.command(number), env=env, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
                                                     bufsize=1) for number in range(self.count)]
        for which in PROCESSES:
            self.answers(which)

    def answers(self, which):
        said = [program.stdout.readline().strip() for program in self.programs[which]]
        if not all(said):
            raise Failed(f"a program that is {which} ended")
        return said

    def block_ms(self, which):
        """Makes all programs of one kind run a block at the same time. Returns the mean time of their steps."""
        for program in self.programs[which]:
            with contextlib.suppress(BrokenPipeError):
                program.stdin.write("\n")
        return statistics.mean(float(said) for said in self.answers(which))

    def turn_ms(self, turn):
        self.turn.take(turn)
        self.turn.blocks[turn] += 1
        return self.block_ms("hooked")

    def round(self, order):
        """Runs a block of the untraced processes, and then the turns in the given order. Returns {way: milliseconds per step}."""
        self.block_ms("untraced")
        ms = {"untraced": self.block_ms("untraced")}
        self.turn_ms(order[0])
        return {**ms, **{turn: self.turn_ms(turn) for turn in order}}

    def end(self):
        for program in sum(self.programs.values(), []):
            with contextlib.suppress(BrokenPipeError):
                program.stdin.close()
        for program in sum(self.programs.values(), []):
            try:
                program.wait(30)
            except subprocess.TimeoutExpired:
                program.kill()
                program.wait()

    def kill(self):
        """Kills the set's programs, which have not responded. Reading their output then yields end-of-file."""
        for program in sum(self.programs.values(), []):
            program.kill()

    def measure(self, build):
        """Returns {figure: value} for this set: the added costs per call in nanoseconds, the calls in a step, and the calls that were not
        stored."""
        with OwnSession(self.place, build, NAME) as session:
            watchdog = threading.Timer(LIMIT_S, self.kill)
            watchdog.start()
            try:
                self.start(session)
                rounds = [self.round(random.sample(list(TURNS), len(TURNS))) for _ in range(ROUNDS)]
            finally:
                watchdog.cancel()
                self.end()
            sums, _ = session.finish([program.pid for program in self.programs["hooked"]])
        calls_of_step = sums["calls"] / self.count / (STEPS_BEFORE + self.turn.blocks["traced"] * STEPS_OF_BLOCK)

        def added_ns(way, without):
            return statistics.median(ms[way] - ms[without] for ms in rounds) * 1e6 / calls_of_step

        return {"calls_of_a_step": calls_of_step, "lost_or_skipped": sums["lost"] + sums["skipped"],
                "passed_over_untraced_ns": added_ns("passed", "untraced"), "two_counter_reads_over_passed_ns": added_ns("reads", "passed"),
                "cudatrace_over_passed_ns": added_ns("traced", "passed"),
                "cudatrace_over_two_counter_reads_ns": added_ns("traced", "reads")}


def show(count, sets, more):
    figures = {name: [of_set[name] for of_set in sets] for name in sets[0]}
    for name, values in figures.items():
        unit, target = ("ns", None) if name.endswith("_ns") else ("calls", ("<=", 0) if name == "lost_or_skipped" else None)
        emit(NAME, f"{count}_trainings_{name}", values, unit, target, **more)
    # The measured cost of entering the hook varies from set to set as much as between two equal processes, so use the median cost for every
    # set.
    way_in = statistics.median(figures["passed_over_untraced_ns"])
    for name, more_ns, target in (("added_over_two_counter_reads", way_in, ("<=", 1.4)), ("added_over_two_counter_reads_without_the_way_in", 0, None)):
        ratios = [(more_ns + of_set["cudatrace_over_passed_ns"]) / (more_ns + of_set["two_counter_reads_over_passed_ns"]) for of_set in sets]
        low, high, confidence = gpu_training.median_interval(ratios)
        emit(NAME, f"{count}_trainings_{name}", ratios, "ratio", target, **more, low=round(low, 4), high=round(high, 4),
             confidence=round(confidence, 4))


def run(build, options):
    deadline = time.monotonic() + options.seconds
    if not (build / PROCESSES["hooked"]).exists():
        emit_missing(NAME, "trainings", f"the build has no {PROCESSES['hooked']}, which is x86-64's")
        return
    with gpu_variants.place(build, options) as place:
        counts = options.programs or list(COUNTS)
        seen, failures, longest = {count: [] for count in counts}, {}, 0
        for number in range(options.pairs):
            begun = time.monotonic()
            for count in [count for count in counts if count not in failures]:
                try:
                    seen[count].append(Set(options, place, count).measure(build))
                except Failed as why:
                    failures[count] = why
            longest = max(longest, time.monotonic() - begun)
            print(f"{NAME}: set {number + 1} of {options.pairs}, {longest:.1f} s: {seen}", file=sys.stderr, flush=True)
            if time.monotonic() + longest > deadline:
                break
        for count in counts:
            if seen[count]:
                show(count, seen[count], {**place.label, "programs": count, "processors": len(place.allowed)})
            if count in failures:
                emit_missing(NAME, f"{count}_trainings", failures[count])
