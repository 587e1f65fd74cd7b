"""Measures queries on a large trace: sums, one second of the trace (by return time and by start time), and one process's launches. Each
query is run once with no part of the file in memory, and then several times more. CUDATRACE_BENCH_CALLS sets the number of calls (default:
five million). CUDATRACE_BENCH_DATABASE names an existing trace, made by make_database, to use instead."""
import os
import pathlib
import sqlite3
import subprocess
import tempfile
import time

from figures import emit

MIX = pathlib.Path(__file__).with_name("training.calls.tsv")
ROUNDS = 5

# One second of the trace, as in docs/sql.md. `launches` has no end_ns.
WINDOWS = {
    "window": "call_id BETWEEN :from AND :to",
    "end_window": "end_ns BETWEEN :from AND :to",
    "start_window": "start_ns BETWEEN :from AND :to AND (call_id BETWEEN :from AND :to + 100000000 OR "
                    "call_id IN (SELECT call_id FROM long_calls WHERE start_ns BETWEEN :from AND :to))",
}
ASKED_OF_WINDOWS = {
    "count": "SELECT count(*) FROM calls WHERE {}",
    "by_function": "SELECT name, count(*), sum(duration_ns) FROM calls WHERE {} GROUP BY name ORDER BY 3 DESC",
    # Reads each column of each row, but does nothing with the values, because processing them would be the client's own cost.
    "columns": "SELECT sum(pid), sum(tid), count(name), sum(start_ns), sum(duration_ns), count(status_name), sum(bytes) "
               "FROM calls WHERE {}",
    "launches": "SELECT kernel, count(*), sum(duration_ns) FROM launches WHERE {} GROUP BY kernel",
}
QUERIES = {
    "summary_by_function":
        "SELECT layer, name, sum(calls), sum(total_ns), sum(bytes) FROM totals GROUP BY layer, name ORDER BY 4 DESC",
    **{f"{window}_{asked}": sql.format(where) for window, where in WINDOWS.items()
       for asked, sql in ASKED_OF_WINDOWS.items() if (window, asked) != ("end_window", "launches")},
    "window_rows_to_python":
        "SELECT pid, tid, name, start_ns, duration_ns, status_name, bytes FROM calls WHERE call_id BETWEEN :from AND :to",
    "process_launches":
        "SELECT kernel, count(*), sum(duration_ns) FROM launches WHERE process_id = :process AND call_id BETWEEN "
        "(SELECT started_ns FROM processes WHERE process_id = :process) AND "
        "(SELECT max(call_id) FROM calls) GROUP BY kernel",
}


def forget_pages(path):
    with open(path, "rb") as file:
        os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)


def ask(path, sql, values):
    connection = sqlite3.connect(f"file:{path}?immutable=1", uri=True)
    start = time.perf_counter()
    rows = connection.execute(sql, values).fetchall()
    ms = (time.perf_counter() - start) * 1e3
    connection.close()
    return ms, len(rows)



def make(build, path, benchmark="queries"):
    """Makes a trace with CUDATRACE_BENCH_CALLS calls."""
    calls = int(os.environ.get("CUDATRACE_BENCH_CALLS", "5000000"))
    done = subprocess.run([build / "tests/bench/make_database", MIX, path, str(calls)], capture_output=True, text=True,
                          check=True)
    seconds, _, late = done.stdout.split()
    emit(benchmark, "make_database", [float(seconds)], "s")
    if int(late):
        raise SystemExit(f"{benchmark}: {late} calls were stored late")


def target_of(name):
    if name == "summary_by_function":
        return "<=", 50
    if name == "process_launches":
        return "<=", 1000
    return ("<=", 100) if "window" in name and "python" not in name else None


def measure(build, path):
    connection = sqlite3.connect(f"file:{path}?immutable=1", uri=True)
    first, last = connection.execute("SELECT (SELECT min(end_ns) FROM call), (SELECT max(end_ns) FROM call)").fetchone()
    process = connection.execute("SELECT process_id FROM processes ORDER BY process_id LIMIT 1 OFFSET "
                                 "(SELECT count(*) / 2 FROM processes)").fetchone()[0]
    stored = connection.execute("SELECT sum(stored) FROM totals").fetchone()[0]
    values = {"from": (first + last) // 2, "to": (first + last) // 2 + 10**9, "process": process}
    inside = connection.execute(QUERIES["window_count"], values).fetchone()[0]
    connection.close()
    emit("queries", "calls", [stored], "calls")
    emit("queries", "calls_in_the_window", [inside], "calls")
    emit("queries", "bytes_per_call", [path.stat().st_size / stored], "bytes", target=("<=", 22))
    for name, sql in QUERIES.items():
        forget_pages(path)
        cold, count = ask(path, sql, values)
        emit("queries", f"{name}_first", [cold], "ms")
        emit("queries", f"{name}_again", [ask(path, sql, values)[0] for _ in range(ROUNDS)], "ms", target=target_of(name))
        emit("queries", f"{name}_rows", [count], "rows")


def run(build, _options):
    given = os.environ.get("CUDATRACE_BENCH_DATABASE")
    if given:
        measure(build, pathlib.Path(given))
        return
    with tempfile.TemporaryDirectory() as folder:
        path = pathlib.Path(folder) / "trace.db"
        make(build, path)
        measure(build, path)
