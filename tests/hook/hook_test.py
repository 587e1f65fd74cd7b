"""Code shared by the hook's tests. If the test programs are for another architecture, CUDATRACE_EMULATOR runs them, and all other programs
run natively."""
import contextlib
import os
import pathlib
import shlex
import subprocess
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "e2e"))
from cudatrace_test import BUILD, CLOCK, DEADLINE_S, HOOK, SIMCUDA, equal  # noqa: E402

EMULATOR = shlex.split(os.environ.get("CUDATRACE_EMULATOR", ""))


def run(session, name, *arguments, preload=True, env=None):
    """Runs tests/hook/NAME and returns its lines. LD_PRELOAD and LD_LIBRARY_PATH are passed as options of the emulator, because the
    emulator itself cannot load libraries for another architecture."""
    program = BUILD / "tests/hook" / name
    if not EMULATOR:
        return session.run(program, *arguments, preload=preload, env=env).stdout.splitlines()
    command = [*EMULATOR, "-E", f"LD_LIBRARY_PATH={SIMCUDA}"]
    if preload:
        command += ["-E", f"LD_PRELOAD={HOOK}"]
    return session.run(*command, program, *arguments, preload=False, env=env).stdout.splitlines()


@contextlib.contextmanager
def recorder(session, clock=CLOCK):
    """Runs the recorder, which serves the session with the counter as the clock, or with the clock "monotonic", whose ticks are nanoseconds.
    Yields a list, and adds the recorded calls to it when the `with` block ends. The recorder replaces the daemon, which may not be built
    for the other architecture, and which would read a different counter."""
    child = subprocess.Popen([*EMULATOR, BUILD / "tests/hook/recorder", session.name, *filter(None, [clock])], stdin=subprocess.PIPE,
                             stdout=subprocess.PIPE, text=True)
    session.children.append(child)
    equal(child.stdout.readline(), "ready\n", "the recorder's first line")
    recorded = []
    yield recorded
    recorded += child.communicate(timeout=DEADLINE_S)[0].splitlines()
    equal(child.returncode, 0, "the recorder's exit status")
