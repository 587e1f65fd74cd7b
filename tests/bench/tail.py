"""Measures single calls, made through the hook and through its peers. The figures are p50, p99, p99.9 and the maximum. Each call is timed
with two reads of the counter, whose cost is part of every figure; the figures of `bare` show how large it is. The benchmark also measures
calls while the daemon is running and while it is paused, both with room in the ring and with a full ring."""
import hook
import peers
from figures import emit, less, over
from program import Measured

PARTS = ("p50", "p99", "p999", "max")
CALLS, ROUNDS = 16000, 15
SLOTS = 2 * 1024 * 1024 // 16 * 3 // 4  # slots before the last quarter of a ring; a low-priority call takes one, and is dropped in that quarter


def by_daemon():
    for state, fill in {"daemon_running": 0, "daemon_stopped_with_room": 0, "daemon_stopped_ring_full": SLOTS}.items():
        with Measured() as session:
            session.start_daemon("--ring", "2M")

            def between_rounds():
                session.resume()
                session.flush()
                if state != "daemon_running":
                    session.pause()

            rounds = session.measure("-o", session.dir, "-m", "singles", "-r", ROUNDS, "-c", CALLS, "-f", fill, "bare", "cudatrace",
                                     between=between_rounds, lost=(ROUNDS - 1) * max(0, fill + CALLS - SLOTS))
        for part in PARTS:
            emit("tail", f"{state}_{part}_ns", rounds[f"cudatrace.{part}"], "ns")
            emit("tail", f"{state}_bare_{part}_ns", rounds[f"bare.{part}"], "ns")


def run(_build, _options):
    by_daemon()
    with Measured() as session:
        session.start_daemon()
        rounds = peers.measure("tail", session, hook.WAYS, "-m", "singles", "-c", CALLS)
    for part in PARTS:
        of = {name.removesuffix(f".{part}"): values for name, values in rounds.items() if name.endswith(f".{part}")}
        for way, values in of.items():
            emit("tail", f"{way}_{part}_ns", values, "ns")
        emit("tail", f"cudatrace_{part}_added_ns", less(of["cudatrace"], of["bare"]), "ns")
        for way, values in of.items():
            if way not in ("bare", "wrapper", "cudatrace"):
                emit("tail", f"cudatrace_over_{way}_{part}", over(of["cudatrace"], values), "ratio")
