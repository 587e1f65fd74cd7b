"""Measures how long the collector takes to turn full rings into committed rows, compared with a bare INSERT … SELECT of the same rows."""
import pathlib
import subprocess
import tempfile

from figures import emit, over, rounds_of


MIX = pathlib.Path(__file__).with_name("training.calls.tsv")


def measure(build):
    with tempfile.TemporaryDirectory() as folder, \
            subprocess.Popen([build / "tests/bench/collector_rate", folder, MIX], stdout=subprocess.PIPE, text=True) as program:
        try:
            said = program.communicate()[0]
        finally:
            program.kill()
            pathlib.Path(f"/dev/shm/cudatrace-bench.{program.pid}").unlink(missing_ok=True)  # left by an interrupted run
    if program.returncode != 0:
        raise RuntimeError(f"collector_rate ended with {program.returncode}")
    return rounds_of(said)


def run(build, _options):
    rounds = measure(build)
    collector, bare, bare_calls = (rounds[way] for way in ("collector", "bare", "bare_calls"))
    emit("collector", "rows_per_s", collector, "rows/s", (">=", 2_500_000))
    emit("collector", "rows_per_s_by_two_threads", rounds["by_two"], "rows/s")
    emit("collector", "two_threads_over_one", over(rounds["by_two"], collector), "ratio")
    emit("collector", "bare_insert_select_rows_per_s", bare, "rows/s")
    emit("collector", "bare_insert_select_of_call_alone_rows_per_s", bare_calls, "rows/s")
    emit("collector", "collector_over_bare", over(collector, bare), "ratio", (">=", 1.5))
    emit("collector", "collector_over_bare_call_alone", over(collector, bare_calls), "ratio")
    emit("collector", "bytes_per_call", rounds["bytes_per_call"], "bytes", ("<=", 22))
