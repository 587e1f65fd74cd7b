"""Measures how much time the hook and its alternatives (wrappers, JSON lines, LTTng-UST, uprobes) add to a call that returns at once. All
of them are measured in the same rounds of one program. Ratios compare the added times."""
import pathlib

import peers
from figures import emit, less, over
from program import Measured

# Ways of making a call that need no tool or library other than the program itself.
WAYS = ("bare", "wrapper", "two_counter_reads", "clock_ring", "json_lines", "json_lines_flushed", "cudatrace")
# On a machine with a GPU, a different target applies.
GPU = pathlib.Path("/dev/nvidiactl").exists()
TARGETS = {"added_over_two_counter_reads": ("<=", 1.1 if GPU else 1.05)}


def run(_build, _options):
    with Measured() as session:
        session.start_daemon()
        rounds = peers.measure("hook", session, WAYS, "-r", 25, "-b", 100, "-c", 200)
    for way, values in rounds.items():
        emit("hook", f"{way}_call_ns", values, "ns")
    added = {way: less(values, rounds["bare"]) for way, values in rounds.items() if way != "bare"}
    for way, values in added.items():
        emit("hook", f"{way}_added_ns", values, "ns", ("<=", 50) if GPU and way == "cudatrace" else None)
    for way, values in added.items():
        if way not in ("cudatrace", "wrapper"):
            figure = f"added_over_{way}"
            emit("hook", figure, over(added["cudatrace"], values), "ratio", TARGETS.get(figure))
