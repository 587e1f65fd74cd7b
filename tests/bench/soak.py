"""Measures a long run of two programs that make two million calls per second in total. The daemon keeps only the latest calls (--keep 10m
--max-db 4G). Observers run at the same time: `cudatrace top`, `cudatrace report`, a sqlite3 shell, and a reader that holds a transaction
open for minutes. At the end, the daemon must not use more memory, descriptors or disk space than at the beginning. Lost and skipped calls
are reported."""
import contextlib
import json
import pathlib
import shutil
import sqlite3
import statistics
import subprocess
import sys
import threading
import time

from cudatrace_test import CUDATRACE, Session
from figures import emit, emit_missing, over
from scene import Daemon, calls

PROGRAMS, RATE, BURSTS = 2, 1_000_000, 1000
KEEP, MAX_DB, MAX_DB_BYTES = "10m", "4G", 4 << 30
SAMPLE_S, SHELL_S, REPORT_S, TRANSACTION_S = 5, 10, 120, 300
FILLED = 1 / 6  # part of the run after which the trace has its full size
PARTS = 10


class Looks:
    """Runs the observers, each in its own thread, until `end` is set. Counts how many times each observer has read the trace, and collects
    failures."""

    def __init__(self, s):
        self.s, self.end = s, threading.Event()
        self.looked = {"shell": 0, "report": 0, "reader": 0, "top": 0}
        self.complaints = []
        self.threads = [threading.Thread(target=look) for look in (self.shell, self.report, self.reader, self.top)]

    def __enter__(self):
        for thread in self.threads:
            thread.start()
        return self

    def __exit__(self, *_):
        self.end.set()
        for thread in self.threads:
            thread.join()

    def ask(self, what, command):
        done = subprocess.run([str(word) for word in command], env=self.s.env(False), capture_output=True, text=True, check=False)
        if done.returncode == 0:
            self.looked[what] += 1
        else:
            self.complaints.append(f"{what}: {done.stderr.strip()[:200]}")

    def newest(self):
        return max((path for path in self.s.dir.glob("trace*.db")), key=lambda path: int(path.name.split(".")[1].replace("db", "1")))

    def shell(self):
        while not self.end.wait(SHELL_S):
            self.ask("shell", ["sqlite3", "-readonly", "-cmd", ".timeout 5000", self.newest(),
                               "SELECT name, count(*) FROM calls WHERE call_id > (SELECT max(rowid) - 1000000000 FROM call) GROUP BY name"])

    def report(self):
        while not self.end.wait(REPORT_S):
            self.ask("report", [CUDATRACE, "report", "--db", self.s.db, "--from", "-2s"])

    def reader(self):
        while not self.end.is_set():
            try:
                with contextlib.closing(sqlite3.connect(f"file:{self.newest()}?mode=ro", uri=True, timeout=30, isolation_level=None)) as db:
                    db.execute("BEGIN")
                    first = db.execute("SELECT count(*) FROM call WHERE rowid > (SELECT max(rowid) - 1000000000 FROM call)").fetchone()
                    self.end.wait(TRANSACTION_S)
                    again = db.execute("SELECT count(*) FROM call WHERE rowid > (SELECT max(rowid) - 1000000000 FROM call)").fetchone()
                    if first != again:
                        self.complaints.append(f"reader: {first} rows, and later {again} in the same transaction")
                    self.looked["reader"] += 1
            except sqlite3.Error as why:
                self.complaints.append(f"reader: {why}")
                self.end.wait(1)

    def top(self):
        with subprocess.Popen([CUDATRACE, "top", "--db", self.s.db, "--json", "--interval", "2"], env=self.s.env(False), text=True,
                              stdout=subprocess.PIPE, stderr=subprocess.PIPE) as top:
            threading.Thread(target=lambda: (self.end.wait(), top.terminate())).start()
            for line in top.stdout:
                self.looked["top"] += line.startswith("{")
            if not self.end.is_set():
                self.complaints.append(f"top: {top.stderr.read().strip()[:200]}")


def used(folder):
    """Returns how many bytes the folder's files occupy on disk."""
    total = 0
    for path in folder.iterdir():
        with contextlib.suppress(FileNotFoundError):
            total += path.stat().st_blocks * 512
    return total


def sample(s, daemon):
    own_kib, shared_kib = daemon.memory()
    return {"memory": own_kib / 1024, "mapped_rings": shared_kib / 1024, "descriptors": daemon.files(), "mappings": daemon.maps(),
            "disk": used(s.dir) / (1 << 20)}


def watch(s, daemon, programs, seconds):
    samples, start = [], time.monotonic()
    while any(program.poll() is None for program in programs):
        samples.append(sample(s, daemon))
        if len(samples) % (600 // SAMPLE_S) == 1:
            print(f"soak: {time.monotonic() - start:.0f} s of {seconds:.0f}: {samples[-1]}", file=sys.stderr, flush=True)
        time.sleep(SAMPLE_S)
    return samples


UNITS = {"memory": "MiB", "mapped_rings": "MiB", "descriptors": "files", "mappings": "mappings", "disk": "MiB"}


def run(_build, options):
    seconds = options.hours * 3600
    if not shutil.which("sqlite3"):
        emit_missing("soak", "all", "no sqlite3 shell here")
        return
    with Session() as s:
        daemon = Daemon(s.start_daemon("--keep", KEEP, "--max-db", MAX_DB).pid)
        before_s, before_bytes, start = daemon.cpu_s(), daemon.written_bytes(), time.monotonic()
        programs = [s.start(*calls("--rate", RATE, "--burst", RATE // BURSTS, "--calls", int(RATE * seconds), "--seed", number + 1),
                            stdout=subprocess.DEVNULL) for number in range(PROGRAMS)]
        with Looks(s) as looks:
            samples = watch(s, daemon, programs, seconds)
        took_s = time.monotonic() - start
        if any(program.returncode for program in programs):
            sys.exit("soak: a program failed")
        s.flush()
        used_s, written = daemon.cpu_s() - before_s, daemon.written_bytes() - before_bytes
        sums = json.loads(s.run(CUDATRACE, "sql", "--db", s.db, "--format", "json", "SELECT sum(calls) AS calls, sum(stored) AS stored, "
                                "sum(lost) AS lost, sum(skipped) AS skipped, sum(calls <> stored + lost + skipped) AS wrong FROM totals",
                                preload=False).stdout)[0]
        causes = json.loads(s.run(CUDATRACE, "sql", "--db", s.db, "--format", "json", "SELECT cause, sum(calls) AS calls FROM losses "
                                  "GROUP BY cause", preload=False).stdout or "[]")
        truth = sum(s.truth().values())
        log = pathlib.Path(s.dir / "daemon.log").read_text(encoding="utf-8")
    filled = samples[int(len(samples) * FILLED):]
    parts = [filled[len(filled) * part // PARTS:len(filled) * (part + 1) // PARTS] for part in range(PARTS)]
    for what, unit in UNITS.items():
        medians = [statistics.median(one[what] for one in part) for part in parts if part]
        halves = [max(1, statistics.median(one[what] for one in half)) for half in (filled[:len(filled) // 2], filled[len(filled) // 2:])]
        emit("soak", what, [one[what] for one in filled], unit, ("<=", MAX_DB_BYTES >> 20) if what == "disk" else None,
             by_tenth=[round(median, 1) for median in medians])
        emit("soak", f"{what}_second_half_over_first", over(halves[1:], halves[:1]), "ratio", ("<=", 1.1))
    emit("soak", "calls_per_s", [truth / took_s], "calls/s")
    emit("soak", "calls_that_no_sum_has", [abs(truth - sums["calls"]) + sums["wrong"]], "calls", ("<=", 0))
    for what in ("lost", "skipped"):
        emit("soak", what, [sums[what]], "calls", ("<=", 0), causes=causes)
    emit("soak", "daemon_cpu_per_call", [used_s * 1e9 / sums["stored"]], "ns")
    emit("soak", "bytes_written_per_call", [written / sums["stored"]], "bytes")
    for what, looked in looks.looked.items():
        emit("soak", f"looks_by_{what}", [looked], "looks", (">=", 1))
    emit("soak", "looks_that_failed", [len(looks.complaints)], "looks", ("<=", 0))
    for line in looks.complaints[:20]:
        print(f"soak: a look that failed: {line}", file=sys.stderr)
    for line in [line for line in log.splitlines() if "removed " not in line and "continues in" not in line][-20:]:
        print(f"soak: the daemon's log: {line}", file=sys.stderr)
