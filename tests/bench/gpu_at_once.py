"""Measures groups of small PyTorch training runs that share this machine's GPU and one daemon with default settings, and also measures one
run of Triton's autotuner. The figures are the lost calls, the daemon's CPU time per call, and the time of a training step relative to
untraced runs. Traced runs alternate with the same number of untraced runs. The step time of one run is its median step, and the step time
of several runs is the mean of their medians. The benchmark gpu_turns measures the cost added per call with less noise. If there are enough
processors, each run has two processors to itself, and the daemon uses the remaining ones."""
import json
import pathlib
import statistics
import subprocess
import sys
import time

import gpu_training
import gpu_variants
from figures import emit, emit_missing, over
from gpu_session import OwnSession
from gpu_variants import Failed

NAME = "gpu_at_once"
MODEL = "layers"
COUNTS = (1, 2, 4, 8)
LIMIT_S = 120
AUTOTUNE = pathlib.Path(__file__).with_name("gpu_autotune.py")


class AtOnce:
    """Runs several programs at the same time, one for each given command."""

    def __init__(self, place, commands):
        self.place, self.commands, self.count = place, commands, len(commands)

    def step_ms(self, env):
        """Runs the programs. Returns the mean of the programs' median steps."""
        programs = [subprocess.Popen(command, env=env, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) for command in self.commands]
        steps = []
        for program in programs:
            try:
                said, complaint = program.communicate(timeout=LIMIT_S)
                steps.append(json.loads(gpu_variants.last_line(said))["p50_ms"])
            except (subprocess.TimeoutExpired, ValueError, KeyError) as error:
                for other in programs:
                    other.kill()
                raise Failed(f"a program gave no figures: {error}") from error
            if program.returncode != 0:
                raise Failed(f"a program ended with {program.returncode}: {gpu_variants.last_line(complaint)}")
        return statistics.mean(steps)

    def traced(self, build):
        """Returns (mean of the median steps, {calls, stored, lost, skipped}, the daemon's CPU time per call in nanoseconds)."""
        with OwnSession(self.place, build, NAME) as session:
            step_ms = self.step_ms(session.env())
            sums, used_s = session.finish()
        return step_ms, sums, used_s * 1e9 / max(sums["stored"], 1)


class Case:
    """Programs that run concurrently, with the results of each round."""

    def __init__(self, name, at_once):
        self.name, self.at_once = name, at_once
        self.untraced, self.traced, self.failure = [], [], None

    def round(self, build, number):
        """Runs the programs once untraced and once traced. Which of the two runs is first alternates from round to round."""
        def traced():
            return self.at_once.traced(build)

        def untraced():
            return self.at_once.step_ms(self.at_once.place.env)

        try:
            first, second = [run() for run in ((untraced, traced) if number % 2 == 0 else (traced, untraced))]
        except Failed as why:
            self.failure = why
            return
        self.untraced.append(first if number % 2 == 0 else second)
        self.traced.append(second if number % 2 == 0 else first)

    def show(self, more):
        if self.failure or not self.traced:
            emit_missing(NAME, self.name, self.failure or "no time was left")
            return
        for what in ("calls", "lost", "skipped"):
            emit(NAME, f"{self.name}_{what}", [sums[what] for _, sums, _ in self.traced], "calls",
                 ("<=", 0) if what != "calls" else None, **more)
        emit(NAME, f"{self.name}_daemon_cpu_per_call", [ns for _, _, ns in self.traced], "ns", **more)
        ratios = over([step for step, _, _ in self.traced], self.untraced)
        low, high, confidence = gpu_training.median_interval(ratios)
        emit(NAME, f"{self.name}_step_over_untraced", ratios, "ratio", **more, low=round(low, 4), high=round(high, 4),
             confidence=round(confidence, 4))


def trainings(options, place, count):
    """Returns the commands that start the training runs."""
    processors = sorted(place.allowed, reverse=True)
    shares = [set(processors[2 * number:2 * number + 2]) if 4 * count <= len(processors) else set() for number in range(count)]
    return [gpu_training.Training(options, place, share, MODEL).command() for share in shares]


def run(build, options):
    deadline = time.monotonic() + options.seconds
    with gpu_variants.place(build, options) as place:
        cases = [Case(f"{count}_trainings", AtOnce(place, trainings(options, place, count))) for count in options.programs or COUNTS]
        if place.is_gpu and "autotune" not in options.without:
            cases.append(Case("1_autotune", AtOnce(place, [[options.python, AUTOTUNE]])))
        longest = 0
        for number in range(options.pairs):
            begun = time.monotonic()
            for case in [case for case in cases if not case.failure]:
                case.round(build, number)
            longest = max(longest, time.monotonic() - begun)
            print(f"{NAME}: round {number + 1} of {options.pairs}, {longest:.1f} s", file=sys.stderr, flush=True)
            if time.monotonic() + longest > deadline:
                break
        for case in cases:
            case.show({**place.label, "programs": case.at_once.count, "processors": len(place.allowed)})
