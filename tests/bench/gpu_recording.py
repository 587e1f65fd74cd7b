"""Measures how turning a recording on and off affects the steps of a PyTorch training run under the hook, on this machine's GPU. The
recording contains either GPU work (`cudatrace set --gpu`) or kernel events (`cudatrace probe --kernel`). One process runs blocks of steps
before, during and after each recording. The figures are the step time relative to the blocks around the recording, and the longest step
while a recording begins or ends. The program waits for the GPU after each step, because work that is still queued for the GPU would hide a
pause. Any slowdown that remains after the last recording is too small to be seen this way, because the host's speed varies. Therefore, the
first process also takes turns with an identical second process: before any recording, after its own recordings, and finally after the
second process has been recorded, too. A gradual change in the host's speed cancels out. With the `gpu_bound` model, the ratio of two turns
varies by 0.2 %, with the other models by 10 %."""
import contextlib
import os
import signal
import statistics
import subprocess
import time

import gpu_training
import gpu_variants
from figures import emit, emit_missing
from gpu_session import OwnSession
from gpu_variants import Failed

NAME = "gpu_recording"
RECORDINGS, STEPS_OF_BLOCK = 10, 40
STEPS_OF_PAIR, COLD_STEPS = 10, 2  # the first steps after a turn of the other process have cold caches
LIMIT_S = 30  # for `cudatrace set`
TARGETS = {"gpu": {"longest_pause": ("<=", 40), "after": ("<=", 1.001)}, "kernel": {"during": ("<=", 1.02)}}


class Recordings:
    """A training run under a session, whose GPU work is recorded from time to time."""

    def __init__(self, options, place, session, model, cpus):
        self.session, self.place, self.pairs = session, place, options.turns
        command = gpu_training.Training(options, place, cpus, model).command()
        command[command.index("--block") + 1] = "1"
        self.program = subprocess.Popen([*command, "--turns"], env=session.env(), stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, bufsize=1)
        self.answer()

    def answer(self):
        line = self.program.stdout.readline().strip()
        if not line:
            raise Failed("the program has ended")
        return line

    def step_ms(self):
        self.program.stdin.write("\n")
        return float(self.answer())

    def block(self, steps=STEPS_OF_BLOCK):
        return [self.step_ms() for _ in range(steps)]

    def over(self, other):
        """Returns this process's step time divided by the other process's, for each pair of turns. In every second pair, the other process
        runs first."""
        ratios = []
        for number in range(self.pairs):
            turns = {process: statistics.median(process.block(COLD_STEPS + STEPS_OF_PAIR)[COLD_STEPS:])
                     for process in ((self, other) if number % 2 == 0 else (other, self))}
            ratios.append(turns[self] / turns[other])
        return ratios

    def turn(self, state):
        """Turns the recording on or off. Returns the duration of each step until the recording has begun or ended."""
        setting = subprocess.Popen([self.place.cudatrace, "set", "--gpu", state, "--pid", str(self.program.pid), *self.session.where],
                                   env=self.place.env, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        steps = self.steps_until(lambda: setting.poll() is not None)
        said = setting.communicate(timeout=LIMIT_S)[0]
        if setting.returncode:
            raise Failed(gpu_variants.last_line(said))
        return steps

    def steps_until(self, is_done):
        steps, begun = [], time.monotonic()
        while not is_done() and time.monotonic() - begun < LIMIT_S:
            steps.append(self.step_ms())
        return steps + [self.step_ms()]

    def recorded(self):
        return "SELECT count(*) FROM gpu_work"

    def measure(self):
        """Returns {phase: [the durations of the steps, for each recording]}. The `around` phase has an additional list, because the series
        begins and ends with a block of that phase."""
        phases = {"around": [self.block()], "beginning": [], "during": [], "ending": []}
        for _ in range(RECORDINGS):
            phases["beginning"].append(self.turn("on"))
            phases["during"].append(self.block())
            phases["ending"].append(self.turn("off"))
            phases["around"].append(self.block())
        return phases

    def end(self):
        self.program.stdin.close()
        self.program.wait(LIMIT_S)


class KernelEvents(Recordings):
    """A training run that is recorded from time to time by a probe with kernel events."""

    probe = None

    def turn(self, state):
        if state == "off":
            self.probe.send_signal(signal.SIGINT)
            steps = self.steps_until(lambda: self.probe.poll() is not None)
            self.probe.stderr.close()
            return steps
        self.probe = subprocess.Popen([self.place.cudatrace, "probe", "--kernel", "--pid", str(self.program.pid), *self.session.where],
                                      env=self.place.env, stderr=subprocess.PIPE)
        os.set_blocking(self.probe.stderr.fileno(), False)
        said = bytearray()

        def is_ready():
            if self.probe.poll() is not None:
                raise Failed(gpu_variants.last_line(said.decode()))
            said.extend(self.probe.stderr.read() or b"")
            return b"functions are probed" in said

        return self.steps_until(is_ready)

    def recorded(self):
        return "SELECT count(*) FROM calls WHERE layer = 'kernel'"

    def end(self):
        if self.probe and self.probe.poll() is None:
            self.probe.send_signal(signal.SIGINT)
            self.probe.wait(LIMIT_S)
        super().end()


KINDS = {"gpu": Recordings, "kernel": KernelEvents}


def thirds(ratios):
    """Returns the medians of the first, second and last third of the pairs. They show how much a median varies, and how much it drifts."""
    bounds = [part * len(ratios) // 3 for part in range(4)]
    return [statistics.median(ratios[begin:end]) for begin, end in zip(bounds, bounds[1:])]


def over_never_recorded(before_any, after_own, after_both):
    return after_own / (before_any * after_both) ** 0.5


def show(name, phases, pairs, targets, more):
    medians = {phase: [statistics.median(steps) for steps in blocks] for phase, blocks in phases.items()}
    around = [(before + after) / 2 for before, after in zip(medians["around"], medians["around"][1:])]
    emit(NAME, f"{name}_around_step_ms", medians["around"], "ms", **more)
    emit(NAME, f"{name}_during_step_over_around", [during / base for during, base in zip(medians["during"], around)], "ratio",
         targets.get("during"), **more)
    before, between, after = (thirds(ratios) for ratios in pairs)
    emit(NAME, f"{name}_step_over_other_before_any", before, "ratio", **more)
    emit(NAME, f"{name}_step_over_other_after_both", after, "ratio", **more)
    emit(NAME, f"{name}_after_step_over_never_recorded", list(map(over_never_recorded, before, between, after)), "ratio", targets.get("after"),
         **more, of_all_pairs=round(over_never_recorded(*map(statistics.median, pairs)), 5))
    for phase in ("beginning", "ending"):
        emit(NAME, f"{name}_{phase}_longest_pause_ms", [max(steps) - base for steps, base in zip(phases[phase], around)], "ms",
             targets.get("longest_pause"), **more)
    emit(NAME, f"{name}_otherwise_longest_pause_ms", [max(steps) - statistics.median(steps) for steps in phases["during"] + phases["around"]],
         "ms", **more)


def measure(build, options, place, kind, model, cpus):
    with OwnSession(place, build, NAME) as session, contextlib.ExitStack() as stack:
        recordings, other = (KINDS[kind](options, place, session, model, cpus) for _ in range(2))
        for program in recordings, other:
            stack.callback(program.end)
        pairs = [recordings.over(other)]
        phases = recordings.measure()
        pairs.append(recordings.over(other))
        other.measure()
        pairs.append(recordings.over(other))
        stack.close()
        session.finish([recordings.program.pid, other.program.pid])
        recorded = int(session.ask("sql", "--db", session.database, "--format", "csv", recordings.recorded()).split()[-1])
    if recorded == 0:
        raise Failed("nothing was recorded")
    show(f"{kind}_{model}", phases, pairs, TARGETS[kind] if place.is_gpu else {}, {**place.label, "recorded": recorded})


def run(build, options):
    with gpu_variants.place(build, options) as place:
        cpus = gpu_training.own_processors(place)
        for kind in KINDS:
            for model in gpu_training.MODELS:
                if {kind, model} & set(options.without):
                    continue
                try:
                    measure(build, options, place, kind, model, cpus)
                except Failed as why:
                    emit_missing(NAME, f"{kind}_{model}", why)
