"""Measures the cost of an ioctl on the driver's device, bare, under `strace -e trace=ioctl` and under the hook's layer ioctl. The three
programs run concurrently and take turns, one round each. The device rejects every request immediately."""
import shutil
import subprocess

from cudatrace_test import equal
from figures import emit, emit_missing, less, over
from program import PROGRAMS, Measured

ROUNDS = 15
CALLS_A_ROUND = 40 * 25  # ioctl_cost.c
ROW = "RM_CONTROL NV2080_CTRL_CMD_GPU_GET_INFO_V2"


class Program:
    """A process that runs ioctl_cost, and answers each line with the nanoseconds per call."""

    def __init__(self, session, *words, **options):
        self.process = session.start(*words, PROGRAMS / "ioctl_cost", stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                     stderr=subprocess.PIPE, text=True, **options)
        self.line()

    def line(self):
        line = self.process.stdout.readline()
        if not line:
            said = self.process.communicate()[1]
            raise RuntimeError(f"it ended with {self.process.returncode}: {' '.join(said.split())}")
        return line

    def round(self):
        self.process.stdin.write("\n")
        self.process.stdin.flush()
        return float(self.line())


def start(session, listing):
    devices = session.dir / "dev"
    devices.mkdir()
    (devices / "nvidiactl").symlink_to("/dev/null")
    env = {"CUDATRACE_DEVICES": devices}
    programs = {
        "bare": Program(session, preload=False, env=env),
        "cudatrace": Program(session, env=env),
    }
    if shutil.which("strace"):
        try:
            programs["strace"] = Program(session, "strace", "-o", listing, "-e", "trace=ioctl", preload=False, env=env)
        except RuntimeError as error:
            emit_missing("ioctls", "strace", error)
    else:
        emit_missing("ioctls", "strace", "no strace command (Debian: strace)")
    return programs


def run(build, _options):
    with Measured() as session:
        session.start_daemon()
        listing = session.dir / "strace.txt"
        programs = start(session, listing)
        rounds = {way: [] for way in programs}
        for _ in range(ROUNDS):
            session.flush()
            for way, program in programs.items():
                rounds[way].append(program.round())
        for program in programs.values():
            program.process.communicate()
        session.flush()
        made = ROUNDS * CALLS_A_ROUND
        equal(session.value("SELECT sum(stored) FROM totals WHERE name = ?", ROW), made, "ioctls in the trace")
        if "strace" in programs:
            # The number includes ioctls that the C library makes.
            seen = listing.read_text().count("ioctl(")
            if seen < made:
                emit_missing("ioctls", "strace", f"{seen} of {made} ioctls were seen")
                del rounds["strace"]
    for way, values in rounds.items():
        emit("ioctls", f"{way}_ioctl_ns", values, "ns")
    added = {way: less(values, rounds["bare"]) for way, values in rounds.items() if way != "bare"}
    for way, values in added.items():
        emit("ioctls", f"{way}_added_ns", values, "ns")
    if "strace" in added:
        emit("ioctls", "added_over_strace", over(added["cudatrace"], added["strace"]), "ratio")
