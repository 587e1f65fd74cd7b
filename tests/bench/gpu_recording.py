"""Measures how turning the recording of the GPU's work on and off affects the steps of a PyTorch training run, on this machine's GPU. One
process takes blocks of steps before, during and after each recording (`cudatrace set --gpu`). The figures are the time of a step relative to
the steps before the first recording, and the longest step while a recording begins or ends. The program waits for the GPU after each step,
so that a pause cannot hide."""
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
LIMIT_S = 30  # for `cudatrace set`
TARGETS = {"after": ("<=", 1.001), "longest_pause": ("<=", 40)}


class Recordings:
    """A training run under a session, whose GPU work is recorded from time to time."""

    def __init__(self, options, place, session, model):
        self.session, self.place = session, place
        command = gpu_training.Training(options, place, set(), model).command()
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

    def block(self):
        return [self.step_ms() for _ in range(STEPS_OF_BLOCK)]

    def turn(self, state):
        """Turns the recording on or off. Returns the times of the steps until that has happened."""
        steps, begun = [], time.monotonic()
        setting = subprocess.Popen([self.place.cudatrace, "set", "--gpu", state, *self.session.where], env=self.place.env,
                                   stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        while setting.poll() is None and time.monotonic() - begun < LIMIT_S:
            steps.append(self.step_ms())
        said = setting.communicate(timeout=LIMIT_S)[0]
        if setting.returncode:
            raise Failed(gpu_variants.last_line(said))
        return steps + [self.step_ms()]

    def measure(self):
        """Returns {phase: [times of steps, for each recording]}. The phase `before` has only one list."""
        phases = {"before": [self.block()], "beginning": [], "during": [], "ending": [], "after": []}
        for _ in range(RECORDINGS):
            phases["beginning"].append(self.turn("on"))
            phases["during"].append(self.block())
            phases["ending"].append(self.turn("off"))
            phases["after"].append(self.block())
        return phases

    def end(self):
        self.program.stdin.close()
        self.program.wait(LIMIT_S)


def show(model, phases, more):
    before = statistics.median(phases["before"][0])
    emit(NAME, f"{model}_before_step_ms", phases["before"][0], "ms", **more)
    for phase in ("during", "after"):
        target = TARGETS.get(phase) if model == "transformer" else None
        emit(NAME, f"{model}_{phase}_step_over_before", [statistics.median(steps) / before for steps in phases[phase]], "ratio", target, **more)
    for phase in ("beginning", "ending"):
        emit(NAME, f"{model}_{phase}_longest_pause_ms", [max(steps) - before for steps in phases[phase]], "ms", TARGETS["longest_pause"], **more)
    emit(NAME, f"{model}_otherwise_longest_pause_ms", [max(steps) - before for phase in ("during", "after") for steps in phases[phase]], "ms", **more)


def run(build, options):
    with gpu_variants.place(build, options) as place:
        for model in gpu_training.MODELS:
            if model in options.without:
                continue
            try:
                with OwnSession(place, build, NAME) as session:
                    recordings = Recordings(options, place, session, model)
                    try:
                        phases = recordings.measure()
                    finally:
                        recordings.end()
                    session.finish([recordings.program.pid])
                    recorded = int(session.ask("sql", "--db", session.database, "--format", "csv", "SELECT count(*) FROM gpu_work").split()[-1])
            except Failed as why:
                emit_missing(NAME, model, why)
                continue
            if recorded == 0:
                emit_missing(NAME, model, "no work of the GPU was recorded")
                continue
            show(model, phases, {**place.label, "work": recorded})
