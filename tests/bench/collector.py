"""From full rings to committed rows, against the bare INSERT … SELECT of the same rows."""
import pathlib
import subprocess
import tempfile

from figures import emit, rounds_of

MIX = pathlib.Path(__file__).with_name("training.calls.tsv")


def run(build):
    with tempfile.TemporaryDirectory() as folder:
        done = subprocess.run([build / "tests/bench/collector_rate", folder, MIX], capture_output=True, text=True,
                              check=True)
    rounds = rounds_of(done.stdout)
    emit("collector", "rows_per_s", rounds["collector"], "rows/s")
    emit("collector", "bare_insert_select_rows_per_s", rounds["bare"], "rows/s")
    emit("collector", "bare_insert_select_of_call_alone_rows_per_s", rounds["bare_calls"], "rows/s")
    emit("collector", "collector_over_bare", [c / b for c, b in zip(rounds["collector"], rounds["bare"])], "ratio")
    emit("collector", "collector_over_bare_call_alone", [c / b for c, b in zip(rounds["collector"], rounds["bare_calls"])],
         "ratio")
    emit("collector", "bytes_per_call", rounds["bytes_per_call"], "bytes")
