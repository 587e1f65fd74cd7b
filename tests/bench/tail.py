"""Single calls, by the hook and by its peers: the middle and the tail, p50, p99 and p99.9. Each call stands between two
readings of the counter, which are in all figures alike; `bare` shows what they come to."""
import hook
import peers
from figures import emit, less, over
from program import Measured

PARTS = ("p50", "p99", "p999")


def run(_build):
    with Measured() as session:
        session.start_daemon()
        rounds = peers.measure("tail", session, hook.WAYS, "-m", "singles", "-c", 16000)
    for part in PARTS:
        of = {name.removesuffix(f".{part}"): values for name, values in rounds.items() if name.endswith(f".{part}")}
        for way, values in of.items():
            emit("tail", f"{way}_{part}_ns", values, "ns")
        emit("tail", f"cudatrace_{part}_added_ns", less(of["cudatrace"], of["bare"]), "ns")
        for way, values in of.items():
            if way not in ("bare", "wrapper", "cudatrace"):
                emit("tail", f"cudatrace_over_{way}_{part}", over(of["cudatrace"], values), "ratio")
