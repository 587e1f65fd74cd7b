"""Measures the cost of an ioctl on the driver's device, bare, under `strace -e trace=ioctl` and under the hook's `ioctl` layer. The three
programs run at the same time, and take turns running a round. The device rejects every request immediately.

Then `cudatrace probe --ioctls` is started and stopped repeatedly. Each time, before and during the probe, a probed program and an unprobed
one run a round of ioctls and a round of another system call."""
import shutil
from functools import partial

from cudatrace_test import BUILD, equal
from figures import emit, emit_missing, less, over
from probed_programs import Probe, Program, added_by
from program import PROGRAMS, Measured

ROUNDS, PROBES = 15, 9
CALLS_A_ROUND = 40 * 25  # ioctl_cost.c
ROW = "RM_CONTROL NV2080_CTRL_CMD_GPU_GET_INFO_V2"


def start(session, listing):
    devices = session.dir / "dev"
    devices.mkdir()
    (devices / "nvidiactl").symlink_to("/dev/null")
    env = {"CUDATRACE_DEVICES": devices}
    programs = {
        "bare": Program(session, PROGRAMS / "ioctl_cost", preload=False, env=env),
        "cudatrace": Program(session, PROGRAMS / "ioctl_cost", env=env),
    }
    if shutil.which("strace"):
        try:
            programs["strace"] = Program(session, "strace", "-o", listing, "-e", "trace=ioctl", PROGRAMS / "ioctl_cost", preload=False, env=env)
        except RuntimeError as error:
            emit_missing("ioctls", "strace", error)
    else:
        emit_missing("ioctls", "strace", "no strace command (Debian: strace)")
    return programs


CALLS = {"ioctl": "", "other_call": "other"}


def run_probe(session):
    """Emits the time that the probe adds to an ioctl and to another system call, both in the probed process and in an unprobed process."""
    env = {"CUDATRACE_DEVICES": session.dir / "dev"}
    # The probe recognizes CUDA processes by the libcuda that they have loaded.
    programs = {"probed": Program(session, PROGRAMS / "ioctl_cost", preload=False, env={**env, "LD_PRELOAD": PROGRAMS / "libcuda.so.1"}),
                "unprobed": Program(session, PROGRAMS / "ioctl_cost", preload=False, env=env)}
    probe = partial(Probe, session, programs["probed"].process.pid, "--ioctls", "--calls", "cuInit", env=env)
    added = added_by(programs, CALLS, {"probe": probe}, PROBES)
    for program in programs.values():
        program.process.communicate()
    session.flush()
    equal(session.value("SELECT sum(calls) FROM totals JOIN processes USING (process_id) WHERE pid = ? AND layer = 'ioctl'",
                        programs["probed"].process.pid), PROBES * CALLS_A_ROUND, "ioctls in the trace of the probe")
    for (probe, name, call), values in added.items():
        emit("ioctls", f"{probe}_{name}_{call}_added_ns", values, "ns")


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
            # The number of ioctls seen by strace includes those made by the C library.
            seen = listing.read_text().count("ioctl(")
            if seen < made:
                emit_missing("ioctls", "strace", f"{seen} of {made} ioctls were seen")
                del rounds["strace"]
        if (BUILD / "probe/cudatrace-probe").exists():
            try:
                run_probe(session)
            except RuntimeError as error:
                emit_missing("ioctls", "probe", error)
        else:
            emit_missing("ioctls", "probe", "this build has no probe")
    for way, values in rounds.items():
        emit("ioctls", f"{way}_ioctl_ns", values, "ns")
    added = {way: less(values, rounds["bare"]) for way, values in rounds.items() if way != "bare"}
    for way, values in added.items():
        emit("ioctls", f"{way}_added_ns", values, "ns")
    if "strace" in added:
        emit("ioctls", "added_over_strace", over(added["cudatrace"], added["strace"]), "ratio")
