"""Simulates a power cut at each operation on the database's files. Synced data survives. Of the data that was not synced, only some pages
survive, and some of them only in part. The result must be a consistent database as it was at some earlier time, with stored positions that
match its rows. After the next boot, the trace must continue in a new file.

If only the daemon dies, the page cache and the calls in shared memory survive. Other tests cover that case (killed.py, restart.py).
"""
import contextlib
import glob
import os
import sqlite3
import struct
import subprocess
import sys

from disk_test import NEVER, Disk
from fault_test import DEADLINE_S, FAULT_DAEMON, LONG, SANITIZED, SLOT, WORKLOADS, Session, by_tier, check, equal, kind_and_slots, promise

PROGRAMS = 3  # in the first life, and one in the second
CUTS = by_tier(30, 50 if SANITIZED else 90)


class PowerIsOff(Exception):
    pass


def ask(s, command):
    done = s.cudatrace(command, status=None)
    if done.returncode != 0:
        check("closed the connection" in done.stderr or "no cudatraced" in done.stderr, command, "said", done.stderr)
        s.daemon.wait(DEADLINE_S)
        raise PowerIsOff


def start_daemon(s, disk):
    s.daemon = s.start(FAULT_DAEMON, "--foreground", "--db", s.db, "--session", s.name, preload=False, env=disk.env,
                       stderr=subprocess.DEVNULL)
    if not s.wait_until_served(may_end=True):
        raise PowerIsOff


class Life:
    """Programs that make calls and then keep running. Their segments, which the test keeps open, show how many calls precede a position."""

    def __init__(self, s):
        self.s, self.segments, self.flushed, self.closed = s, {}, 0, 0

    def run(self, number):
        s = self.s
        hold = s.dir / f"hold{number}"
        os.mkfifo(hold)
        program = s.start(WORKLOADS / "calls", "--threads", 2, "--calls", 400, "--hold", hold, stdout=subprocess.PIPE)
        check(program.stdout.readline().endswith(b"ok\n"), "the program's line")
        program.stdout.close()
        for path in glob.glob(f"/dev/shm/cudatrace.{os.geteuid()}.{s.name}.[0-9]*"):
            if path not in self.segments:
                self.segments[path] = open(path, "rb")
        ask(s, "flush")
        self.flushed += 1

    def live(self, disk):
        for daemon in range(2):
            start_daemon(self.s, disk)
            for number in range(PROGRAMS if daemon == 0 else 1):
                self.run(10 * daemon + number)
            ask(self.s, "stop")
            equal(self.s.daemon.wait(DEADLINE_S), 0, "the daemon's status")
            self.closed = self.flushed

    def calls_before(self, segment, lane, position):
        """Returns the number of calls before a position in a ring. The ring must not have wrapped around."""
        file = self.segments[f"/dev/shm/{segment}"]
        file.seek(0)
        offset, stride = struct.unpack_from("<24xQQ", file.read(40))
        check(position * SLOT <= stride - 4096, "the ring came around")
        file.seek(offset + lane * stride + 4096)
        slots, calls, at = file.read(position * SLOT), 0, 0
        while at < position:
            kind, length = kind_and_slots(*struct.unpack_from("<I", slots, at * SLOT))
            calls += kind not in (0, 6, 7)
            at += length
        equal(at, position, "the end of the last record before the position")
        return calls

    def end(self):
        for child in self.s.children:
            child.kill()
            child.wait()
        for file in self.segments.values():
            file.close()
        for path in glob.glob(f"/dev/shm/cudatrace.{os.geteuid()}.{self.s.name}*"):
            os.unlink(path)


def check_database(s, life, survival):
    """Checks that the database is consistent, and that it contains all calls that must have survived. Returns False if there is no
    database."""
    if (s.dir / "trace.db-journal").exists():
        check(life.flushed == 0, "a journal beside a database that was in use")
        return False
    try:
        tables = s.value("SELECT count(*) FROM sqlite_master") if s.db.exists() and s.db.stat().st_size else 0
    except sqlite3.OperationalError as error:
        raise AssertionError(f"it does not open: {error}") from error
    if tables == 0:
        check(life.closed == 0 and (survival != 1 or life.flushed == 0), "there is no database")
        return False
    equal(s.value("PRAGMA integrity_check"), "ok", "integrity_check")
    equal(s.rows("PRAGMA foreign_key_check"), [], "foreign_key_check")
    s.check_identity(lost=0)
    equal(s.cudatrace("sql", "--db", s.db, "SELECT count(*) FROM calls").stdout.split()[-1],
          str(s.value("SELECT count(*) FROM calls")), "what the tool counts")
    lanes = s.rows("SELECT name, lane, position, thread_id, (SELECT count(*) FROM call JOIN site USING (site_id) "
                   "WHERE site.thread_id = lane.thread_id) FROM lane JOIN segment USING (segment_id)")
    for segment, lane, position, thread, rows in lanes:
        equal(life.calls_before(segment, lane, position), rows, f"calls of lane {lane} of {segment} before {position}")
    equal(s.value("SELECT count(*) FROM call"), sum(rows for *_, rows in lanes), "rows of all lanes")
    whole = s.value("SELECT count(*) FROM (SELECT process_id FROM totals GROUP BY process_id HAVING sum(stored) >= 800)")
    check(whole >= (life.flushed if survival == 1 else life.closed), "of", life.flushed, "flushed programs and", life.closed,
          "of a closed file there are", whole)
    return True


def check_next_boot(s, there):
    """Tests that after the next boot, the daemon leaves the file unchanged and begins the next file."""
    if there:
        with contextlib.closing(sqlite3.connect(s.db)) as connection:
            connection.execute("UPDATE meta SET value = 'another boot' WHERE key = 'boot_id'")
            connection.commit()
        rows = s.value("SELECT count(*) FROM calls")
    done = s.trace(WORKLOADS / "calls", "--calls", 100)
    check("incomplete" not in done.stderr, done.stderr)
    next_db = s.dir / "trace.2.db" if there else s.db
    check(s.value("SELECT count(*) FROM calls", db=next_db) >= 100, "calls of the next boot")
    if there:
        equal(s.value("SELECT count(*) FROM calls"), rows, "calls of the boot before")
        s.check_identity()


def cut(at, survival, next_boot=False):
    """Cuts the power at operation `at`, if this operation is reached. Returns (the number of operations, whether a database was left after
    the cut)."""
    with Session() as s:
        disk, life = Disk(s.dir), Life(s)
        disk["cut_at"], disk["survival"] = at, survival
        try:
            life.live(disk)
        except PowerIsOff:
            check(disk["changes"] >= at, "the daemon ended after", disk["changes"], "operations")
            equal(s.daemon.returncode, -9, "how the daemon ended")
        s.daemon = None
        try:
            there = check_database(s, life, survival)
        finally:
            life.end()
        if next_boot or not there and at < 40:
            check_next_boot(s, there)
        return disk["changes"], there and disk["changes"] >= at


with promise("power-whole"):
    changes, _ = cut(NEVER, 1, next_boot=True)
    check(changes > 200, changes, "operations")
# The number of batches varies between runs, and so does the number of operations. Therefore, a run may not reach the last operations. At
# the first operations, there is no database yet.
step = 1 if LONG else max(1, changes // CUTS)
left = 0
for index, at in enumerate(range(1, changes, step)):
    for survival in ([index % 2, index + 2] if LONG else [index % 4 if index % 4 < 2 else index]):
        try:
            with promise("power-whole"):
                left += cut(at, survival, next_boot=index % 10 == 0)[1]
        except BaseException:
            print(f"power cut at operation {at} of {changes}, survival {survival}", file=sys.stderr)
            raise
check(left > by_tier(CUTS // 3, 20), left, "databases were left")
print(changes, "operations, the power was cut at each" if step == 1 else f"operations, the power was cut at each {step}th;",
      left, "databases were left")
