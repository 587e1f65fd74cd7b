"""What a call of a small PyTorch training costs more in its place, beside what two reads of the processor's counter cost there: for
each training that runs at once there is one untraced, one with the hook that only reads the counter twice (reads_entry.c), and one that
is traced by a daemon at its defaults. They live side by side on the same processors, and make blocks of ten steps in turns, so that what
the machine does to one block it does to the next. What differs between two processes by itself, sets of processes show."""
import contextlib
import statistics
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
WAYS = ("untraced", "reads", "traced")
BLOCKS, STEPS_BEFORE, STEPS_OF_BLOCK = 120, 200, 10
LIMIT_S = 240  # of a set
LIBRARIES = {"reads": "tests/bench/libcudatrace-reads.so", "traced": "hook/libcudatrace.so"}


def share(allowed, count, number):
    """The processors of the training of that number: two where half of all suffice for it, or one."""
    each = 2 if 4 * count <= len(allowed) else 1
    return set(sorted(allowed, reverse=True)[each * number:each * (number + 1)]) if 2 * each * count <= len(allowed) else set()


class Set:
    """The processes that take turns, `count` of each way."""

    def __init__(self, options, place, count):
        self.options, self.place, self.count = options, place, count
        self.programs = {}

    def command(self, number):
        cpus = share(self.place.allowed, self.count, number)
        return [*gpu_training.Training(self.options, self.place, cpus, MODEL).command(), "--turns"]

    def start(self, session):
        for way in WAYS:
            env = session.env(LIBRARIES[way]) if way in LIBRARIES else self.place.env
            self.programs[way] = [subprocess.Popen(self.command(number), env=env, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
                                                   bufsize=1) for number in range(self.count)]
        for way in WAYS:
            self.answers(way)

    def answers(self, way):
        said = [program.stdout.readline().strip() for program in self.programs[way]]
        if not all(said):
            raise Failed(f"a program that is {way} ended")
        return said

    def block_ms(self, way):
        """The mean of the programs' steps, which all make a block at once."""
        for program in self.programs[way]:
            with contextlib.suppress(BrokenPipeError):
                program.stdin.write("\n")
        return statistics.mean(float(said) for said in self.answers(way))

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
        """Ends a set whose programs do not answer: who reads them gets an end of file."""
        for program in sum(self.programs.values(), []):
            program.kill()

    def measure(self, build):
        """(nanoseconds that a call costs more with two reads, the same traced, calls of a step, lost and skipped ones)."""
        with OwnSession(self.place, build, NAME) as session:
            watchdog = threading.Timer(LIMIT_S, self.kill)
            watchdog.start()
            try:
                self.start(session)
                rounds = []
                for block in range(BLOCKS):
                    first = block % len(WAYS)
                    rounds.append({way: self.block_ms(way) for way in WAYS[first:] + WAYS[:first]})
            finally:
                watchdog.cancel()
                self.end()
            sums, _ = session.finish([program.pid for program in self.programs["traced"]])
        calls_of_step = sums["calls"] / self.count / (STEPS_BEFORE + BLOCKS * STEPS_OF_BLOCK)
        reads, hook = ([(ms[way] - ms["untraced"]) * 1e6 / calls_of_step for ms in rounds] for way in ("reads", "traced"))
        return statistics.median(reads), statistics.median(hook), calls_of_step, sums["lost"] + sums["skipped"]


def show(count, sets, more):
    reads, hook, calls, missed = zip(*sets)
    emit(NAME, f"{count}_trainings_calls_of_a_step", calls, "calls", **more)
    emit(NAME, f"{count}_trainings_lost_or_skipped", missed, "calls", ("<=", 0), **more)
    emit(NAME, f"{count}_trainings_two_counter_reads_added_ns", reads, "ns", **more)
    emit(NAME, f"{count}_trainings_cudatrace_added_ns", hook, "ns", **more)
    ratios = [a / b for a, b in zip(hook, reads)]
    low, high, confidence = gpu_training.median_interval(ratios)
    emit(NAME, f"{count}_trainings_added_over_two_counter_reads", ratios, "ratio", ("<=", 1.4), **more, low=round(low, 4),
         high=round(high, 4), confidence=round(confidence, 4))


def run(build, options):
    deadline = time.monotonic() + options.seconds
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
