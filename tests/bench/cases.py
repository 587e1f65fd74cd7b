"""Measures the hook in unfavourable cases: launches and copies, long calls, cold caches, several threads, rings that are not emptied, no
daemon. In each case, the bare call and other tracers are measured in the same rounds."""
import peers
from cudatrace_test import equal
from figures import emit, less, over
from program import Measured

WAYS = ("bare", "two_counter_reads", "clock_ring", "json_lines", "cudatrace")
SLOT_BYTES = 16
KERNELS = 1000

# Each case has a name and the arguments for hook_cost. The records of a round fit into a ring, so that the benchmark measures recording
# rather than a full ring.
CASES = (
    ("launch_of_one_kernel", ("-s", "launch", "-b", 50)),
    (f"launch_of_{KERNELS}_kernels", ("-s", f"launch:{KERNELS}", "-b", 50)),
    ("copy", ("-s", "copy", "-b", 50)),
    ("10us", ("-s", "spin:10000", "-b", 20, "-c", 20)),
    ("1ms", ("-s", "spin:1000000", "-r", 15, "-b", 5, "-c", 2)),
    ("cold", ("-m", "cold", "-r", 15, "-c", 5)),
    ("1_thread", ("-t", 1, "-b", 30)),
    ("2_threads", ("-t", 2, "-b", 30)),
    ("4_threads", ("-t", 4, "-b", 30)),
    ("8_threads", ("-t", 8, "-b", 30)),
)
# The other tracers that cudatrace is compared with.
OTHERS = ("two_counter_reads", "clock_ring", "json_lines", "lttng_clock_and_event")
# Cases with long calls. The tracers add so little time to a long call that the ratio between two tracers' added times would be noise.
LONG = ("10us", "1ms", "cold")


def show(case, rounds):
    bare = rounds["bare"]
    emit("cases", f"{case}_bare_call_ns", bare, "ns")
    added = {way: less(values, bare) for way, values in rounds.items() if way != "bare"}
    for way, values in added.items():
        emit("cases", f"{case}_{way}_added_ns", values, "ns")
    for way in filter(rounds.__contains__, OTHERS):
        if case in LONG:
            emit("cases", f"{case}_{way}_over_bare", over(rounds[way], bare), "ratio")
        else:
            emit("cases", f"{case}_added_over_{way}", over(added["cudatrace"], added[way]), "ratio")
    if case in LONG:
        emit("cases", f"{case}_cudatrace_over_bare", over(rounds["cudatrace"], bare), "ratio")


def with_daemon():
    for case, arguments in CASES:
        with Measured() as session:
            session.start_daemon()
            rounds = peers.measure("cases", session, WAYS, *arguments, peers=peers.WRAPPERS)
            if case.startswith("launch"):
                named = session.value("SELECT count(DISTINCT kernel) FROM launches WHERE kernel LIKE 'bench_kernel_%'")
                equal(named, KERNELS if str(KERNELS) in case else 1, "kernels that were launched")
        show(case, rounds)


def without_drain():
    """Pauses the daemon before each round, so that it does not empty the ring while calls are measured. In the case `ring_nearly_full`, the
    ring is first filled to just below three quarters, so that the measured calls are still recorded. In the case `ring_full`, it is filled
    to three quarters, so that each measured call, which has low priority, is counted as skipped. The first round also uses shorter rings,
    which have room for all calls."""
    ring, rounds, batches, calls = 256 * 1024, 25, 10, 100
    slots, measured = ring // SLOT_BYTES * 3 // 4, batches * calls
    for case, fill in {"ring_nearly_full": slots - measured - 64, "ring_full": slots}.items():
        with Measured() as session:
            session.start_daemon("--ring", f"{ring // 1024}K")

            def pause_drained():
                session.resume()
                session.flush()
                session.pause()

            show(case, session.measure("-o", session.dir, "-r", rounds, "-b", batches, "-c", calls, "-f", fill, *WAYS,
                                       between=pause_drained, lost=(rounds - 1) * max(0, fill + measured - slots)))


def without_daemon():
    with Measured() as session:
        show("no_daemon", session.measure("-o", session.dir, *WAYS, between=lambda: None))
    with Measured() as session:
        session.start_daemon()
        # During the first round, the program finds the daemon and begins to record. The daemon is stopped just before the second round.
        begun = []

        def stop_after_first():
            if begun and session.daemon:
                session.stop_daemon()
            begun.append(True)

        rounds = session.measure("-o", session.dir, "-r", 26, *WAYS, between=stop_after_first)
        show("daemon_gone", {way: values[1:] for way, values in rounds.items()})


def run(_build, _options):
    with_daemon()
    without_drain()
    without_daemon()
