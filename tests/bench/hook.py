"""Measures how much time the hook and its alternatives (wrappers, JSON lines, LTTng-UST, uprobes) add to a call that returns at once. All
of them are measured in the same rounds of one program. Ratios compare the added times. A second program measures the hook in a session
whose clock is `monotonic`, as on a machine whose kernel distrusts the counter, next to two readings of that clock."""
import pathlib

import peers
from figures import emit, less, over
from program import Measured

# Ways of making a call that need no tool or library other than the program itself.
WAYS = ("bare", "wrapper", "two_counter_reads", "clock_ring", "json_lines", "json_lines_flushed", "cudatrace")
# On a machine with a GPU, a different target applies.
GPU = pathlib.Path("/dev/nvidiactl").exists()
TARGETS = {"added_over_two_counter_reads": ("<=", 1.1 if GPU else 1.05)}
ROUNDS = ("-r", 25, "-b", 100, "-c", 200)


def with_clock_reads():
    with Measured() as session:
        session.start_daemon(clock="monotonic")
        rounds = session.measure("-o", session.dir, *ROUNDS, "bare", "wrapper", "two_clock_reads", "cudatrace")
    added = {way: less(rounds[way], rounds["bare"]) for way in ("wrapper", "two_clock_reads", "cudatrace")}
    for way, values in added.items():
        emit("hook", f"monotonic_{way}_added_ns", values, "ns")
    emit("hook", "monotonic_added_over_two_clock_reads", over(added["cudatrace"], added["two_clock_reads"]), "ratio", ("<=", 1.2))


def run(_build, _options):
    with Measured() as session:
        session.start_daemon(clock="counter")
        rounds = peers.measure("hook", session, WAYS, *ROUNDS)
    for way, values in rounds.items():
        emit("hook", f"{way}_call_ns", values, "ns")
    added = {way: less(values, rounds["bare"]) for way, values in rounds.items() if way != "bare"}
    for way, values in added.items():
        emit("hook", f"{way}_added_ns", values, "ns", ("<=", 50) if GPU and way == "cudatrace" else None)
    for way, values in added.items():
        if way not in ("cudatrace", "wrapper"):
            figure = f"added_over_{way}"
            emit("hook", figure, over(added["cudatrace"], values), "ratio", TARGETS.get(figure))
    with_clock_reads()
