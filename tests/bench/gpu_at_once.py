"""Small PyTorch trainings at once on this machine's GPU, under one daemon at its defaults: how many of their calls are lost, what the
daemon's processor time is for a call, and what a step costs beside as many untraced ones, in turns. Each training's median step
counts; of several, the slowest's. What a step costs more is held against two reads of the processor's counter for each of its calls."""
import json
import os
import re
import statistics
import subprocess
import sys
import time

import gpu_training
import gpu_variants
import peers
from figures import emit, emit_missing, less, over
from gpu_variants import Failed
from program import Measured
from scene import Daemon

NAME = "gpu_at_once"
MODEL = "layers"
COUNTS = (1, 2, 4, 8)
ROUNDS = 2
LIMIT_S = 120


class AtOnce:
    def __init__(self, options, place, count):
        self.options, self.place, self.count = options, place, count
        self.session = f"gpuatonce{os.getpid()}"
        self.command = gpu_training.Training(options, place, set(), MODEL).command()

    def step_ms(self, env):
        """Runs them; the median step of the slowest."""
        programs = [subprocess.Popen(self.command, env=env, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) for _ in range(self.count)]
        steps = []
        for program in programs:
            try:
                said, complaint = program.communicate(timeout=LIMIT_S)
                steps.append(json.loads(gpu_variants.last_line(said))["p50_ms"])
            except (subprocess.TimeoutExpired, ValueError, KeyError) as error:
                for other in programs:
                    other.kill()
                raise Failed(f"a training gave no figures: {error}") from error
            if program.returncode != 0:
                raise Failed(f"a training ended with {program.returncode}: {gpu_variants.last_line(complaint)}")
        return max(steps)

    def traced(self, build, number):
        """(median step of the slowest, {calls, stored, lost, skipped}, the daemon's processor time of a call in nanoseconds)."""
        database = f"{self.place.scratch}/at_once.{self.count}.{number}.db"
        env = {**self.place.env, "CUDATRACE_SESSION": self.session, "LD_PRELOAD": str(build / "hook/libcudatrace.so")}
        where = ["--session", self.session]
        subprocess.run([build / "collector/cudatraced", "--db", database, *where], env=self.place.env, check=True)  # serves when it returns
        try:
            status = self.ask(build, "status", *where)
            step_ms = self.step_ms(env)
            self.ask(build, "flush", *where)
            used_s = Daemon(int(re.search(r"^daemon (\d+)$", status, re.M)[1])).cpu_s()
        finally:
            self.ask(build, "stop", *where)
        said = self.ask(build, "sql", "--db", database, "--format", "json",
                        "SELECT sum(calls) AS calls, sum(stored) AS stored, sum(lost) AS lost, sum(skipped) AS skipped FROM totals")
        os.remove(database)
        sums = json.loads(said)[0]
        return step_ms, sums, used_s * 1e9 / max(sums["stored"], 1)

    def ask(self, build, *command):
        """What `cudatrace` prints."""
        return subprocess.run([build / "tools/cudatrace", *command], env=self.place.env, check=True, capture_output=True, text=True).stdout


def two_counter_reads_ns():
    """What two reads add to a call that returns at once."""
    with Measured() as session:
        session.start_daemon()
        rounds = peers.measure(NAME, session, ("bare", "two_counter_reads", "cudatrace"), "-r", 25, "-b", 100, "-c", 200)
    return statistics.median(less(rounds["two_counter_reads"], rounds["bare"]))


def run(build, options):
    deadline = time.monotonic() + options.seconds
    reads_ns, all_steps = two_counter_reads_ns(), sum(gpu_training.MODELS[MODEL][:2])
    with gpu_variants.place(build, options) as place:
        for count in COUNTS:
            at_once = AtOnce(options, place, count)
            untraced, traced = [], []
            try:
                for number in range(ROUNDS):
                    if time.monotonic() > deadline:
                        break
                    untraced.append(at_once.step_ms(place.env))
                    traced.append(at_once.traced(build, number))
            except Failed as why:
                emit_missing(NAME, f"{count}_trainings", why)
                continue
            if not traced:
                print(f"{NAME}: no time for {count} trainings", file=sys.stderr)
                break
            more = {**place.label, "trainings": count, "processors": len(place.allowed)}
            for what in ("calls", "lost", "skipped"):
                emit(NAME, f"{count}_trainings_{what}", [sums[what] for _, sums, _ in traced], "calls",
                     ("<=", 0) if what != "calls" else None, **more)
            emit(NAME, f"{count}_trainings_daemon_cpu_per_call", [ns for _, _, ns in traced], "ns", **more)
            emit(NAME, f"{count}_trainings_step_over_untraced", over([step for step, _, _ in traced], untraced), "ratio", **more)
            added = [(step - plain) * 1e6 / (sums["calls"] / count / all_steps * reads_ns) for (step, sums, _), plain in zip(traced, untraced)]
            emit(NAME, f"{count}_trainings_added_over_two_counter_reads", added, "ratio", ("<=", 1.4), **more)
