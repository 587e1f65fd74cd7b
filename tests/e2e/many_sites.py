"""Tests a trace with a very large number of sites (combinations of thread, function, depth and status). A program that constantly starts
short-lived threads can accumulate that many. The commands that read calls must stay within a memory limit, and agree with the views. In the
long tier, there are more than 4,194,304 sites."""
import base64
import collections
import csv
import contextlib
import io
import json
import re
import resource
import sqlite3
import struct
import zlib

from cudatrace_test import CUDATRACE, LONG, SANITIZED, Session, WORKLOADS, by_tier, check, equal

THREADS = by_tier(18_000, 30_000, 300_000)
FUNCTIONS = 15 if LONG else 5  # each thread calls each of them once
FAR = 1 << 33  # distance between site_ids, which may be far apart
MEGABYTES = 160  # limit for the memory of a command; the sites of the long run would take 300

# The test inserts the rows itself, because starting so many threads would take minutes. It adds threads to process 1. Each thread has its
# own sites and calls.
MADE = """
CREATE TEMP TABLE used AS SELECT row_number() OVER () - 1 AS n, function_id FROM (SELECT function_id FROM function WHERE layer = 'driver' AND
    name LIKE 'cu%' ORDER BY function_id LIMIT :functions);
CREATE TEMP TABLE first AS SELECT ifnull((SELECT max(end_ns) FROM call), 0) AS ns, (SELECT max(thread_id) FROM thread) AS thread_id;
CREATE TEMP TABLE number AS WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < :threads) SELECT i FROM n;
INSERT INTO thread (thread_id, process_id, tid, name, calls, driver_ns)
    SELECT first.thread_id + i, 1, 5000000 + i, 'made', :functions, :functions * 700 FROM number, first;
INSERT INTO site (site_id, thread_id, function_id, depth, status)
    SELECT iif(i % 2, 0, :far) + 1000000 + i * :functions + n, first.thread_id + i, function_id, 0, 0 FROM number, used, first;
INSERT INTO call (end_ns, duration_ns, site_id, bytes)
    SELECT first.ns + 1000 * (i * :functions + n), 700, iif(i % 2, 0, :far) + 1000000 + i * :functions + n, NULL
      FROM number, used, first ORDER BY i, n;
UPDATE total SET calls = calls + :threads, total_ns = total_ns + 700 * :threads WHERE process_id = 1 AND
    function_id IN (SELECT function_id FROM used);
"""


def make(db):
    with contextlib.closing(sqlite3.connect(db)) as connection:
        for statement in MADE.split(";\n")[:-1]:
            for name, value in (("threads", THREADS), ("functions", FUNCTIONS), ("far", FAR)):
                statement = statement.replace(f":{name}", str(value))
            connection.execute(statement)
        connection.commit()


def ask(s, *command):
    """Runs a command under a memory limit, and returns the command's output."""
    def bound():
        resource.setrlimit(resource.RLIMIT_DATA, (MEGABYTES << 20, MEGABYTES << 20))

    return s.run(CUDATRACE, *command, "--db", s.db, preload=False, preexec_fn=None if SANITIZED else bound).stdout


def check_export(s):
    form = {"csv": lambda line: line.split(",")[4], "jsonl": lambda line: json.loads(line)["name"] if '"phase":"B"' in line else None}
    wanted = dict(s.rows("SELECT name, count(*) FROM calls GROUP BY name"))
    for name, function in form.items():
        lines = ask(s, "export", "--format", name).splitlines()[name == "csv":]
        equal(collections.Counter(filter(None, map(function, lines))), wanted, f"functions in {name}")
    some = [row for row in csv.DictReader(io.StringIO(ask(s, "export", "--format", "csv", "--from", "-0.00001s")))]
    equal([(int(r["call_id"]), int(r["tid"]), r["name"], int(r["duration_ns"])) for r in some],
          s.rows("SELECT call_id, tid, name, duration_ns FROM calls WHERE call_id >= ? ORDER BY call_id", int(some[0]["call_id"])), "csv")
    check(len(some) > 5, "the last calls are", len(some))
    for name in ("chrome", "perfetto", "nsys"):
        ask(s, "export", "--format", name, "--output", s.dir / f"trace.{name}")
    slices = re.findall(rb'"ph":"X","name":"(\w+)"', (s.dir / "trace.chrome").read_bytes())
    equal(collections.Counter(name.decode() for name in slices), wanted, "slices")
    equal(s.value("SELECT count(*) FROM CUPTI_ACTIVITY_KIND_RUNTIME", db=s.dir / "trace.nsys"), sum(wanted.values()), "rows of nsys")


def check_page(s):
    """Checks that the page contains all calls, in a bounded number of thread lanes."""
    text = ask(s, "html", "--output", "-")
    trace = json.loads(re.search(r'<script id="trace" type="application/json">(.*?)</script>', text, re.S)[1])
    packed = re.search(r'<script id="calls" type="text/plain">(.*?)</script>', text, re.S)[1]
    columns = zlib.decompress(base64.b64decode(packed))
    count = trace["records"]
    sites = struct.unpack_from(f"<{count}I", columns, 16 * count)
    calls = struct.unpack_from(f"<{count}I", columns, 20 * count)
    equal(sum(calls), s.value("SELECT count(*) FROM calls"), "calls in the page")
    equal(set(sites), set(range(len(trace["sites"]))), "sites of the page, each of which is used")
    check(len(trace["threads"]) <= (1 << 14) + 1, "threads of the page:", len(trace["threads"]))
    equal(collections.Counter(thread["name"] for thread in trace["threads"])["further threads"], 1, "the thread of further ones")
    names = {trace["names"][site[2]] for site in trace["sites"]}
    check(names and names <= {row[0] for row in s.rows("SELECT DISTINCT name FROM calls")}, "functions in the page:", names)


with Session() as s:
    s.trace(WORKLOADS / "calls", "--calls", 500, "--mix", "training")
    make(s.db)
    sites = s.value("SELECT count(*) FROM site")
    check(sites > THREADS * FUNCTIONS, "sites:", sites)
    check_export(s)
    check_page(s)
    lines = ask(s, "timeline", "--width", "40").splitlines()
    rows = [line for line in lines if re.match(r"  \d+ ", line)]
    equal(len(rows), s.value("SELECT count(DISTINCT tid) FROM calls WHERE layer = 'driver'"), "rows of the timeline")
    equal([line for line in rows if not re.search(r"[A-Za-z]", line.split(" ", 4)[-1])], [], "rows without a letter")
    for command in (["report"], ["top", "--once"], ["top", "--once", "--pid", str(s.value("SELECT pid FROM processes"))]):
        check(ask(s, *command), command, "said nothing")
