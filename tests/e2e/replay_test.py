"""Code shared by the tests of recordings (cudatraced --record, --replay)."""
import contextlib
import sqlite3
import subprocess

from cudatrace_test import DAEMON, DEADLINE_S, check, equal

OWN_META = ("created_unix_s", "series", "cudatrace_version")  # these belong to the file, not to the session


def tables(path):
    """Returns {table: rows} of a trace, without the rows about the trace's file itself."""
    with contextlib.closing(sqlite3.connect(f"file:{path}?mode=ro", uri=True)) as trace:
        names = [name for (name,) in trace.execute("SELECT name FROM sqlite_master WHERE type = 'table' ORDER BY name")]
        rows = {name: sorted(trace.execute(f"SELECT * FROM {name}"), key=repr) for name in names}
    rows["run"] = [(run_id,) for run_id, _ in rows["run"]]  # a replay is a run of its own time
    rows["meta"] = [row for row in rows["meta"] if row[0] not in OWN_META]
    return rows


def check_same(seen, wanted, what):
    equal(sorted(seen), sorted(wanted), f"tables of {what}")
    for name, rows in wanted.items():
        missing, more = sorted(set(rows) - set(seen[name]), key=repr)[:3], sorted(set(seen[name]) - set(rows), key=repr)[:3]
        check(seen[name] == rows, what, "table", name, len(seen[name]), "and not", len(rows), "rows; missing", missing, "more", more)


def replay(*arguments, status=0):
    done = subprocess.run([DAEMON, *arguments], capture_output=True, text=True, timeout=DEADLINE_S)
    equal(done.returncode, status, f"status of {arguments}: {done.stderr}")
    return done.stderr
