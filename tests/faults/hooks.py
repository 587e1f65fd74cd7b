"""Tests calls with fields, as a probe records them. The views must contain the fields as the probe has written them, even if the trace
consists of several files or was replayed from a recording. A call with an invalid payload must be stored and counted, but have no
fields."""
import collections
import contextlib
import json
import re
import shutil
import sqlite3
import struct
import subprocess

from fault_test import CUDATRACE, DAEMON, DEADLINE_S, Session, check, equal, of_command
from played import EXITING, FOREVER, HOOK, LEFT, Watched, now

ALLOC, FREE, FIELDS, ODD = 2, 3, 4, 5
KIND_FIELDS = 12  # enum ct_kind
TICKS, STEP = 10, 100  # a call does not overlap the next one


def field(name, value, type=None):
    """Returns a field in the form of an argument for the command `fields` of played_probe."""
    if type:
        return f"{name}={type}{value}"
    return f"{name}=x{value.hex()}" if value else f"{name}=x"


def payload(values=(5, 3), types=(0, 2), count=2, texts=b"n\0t\0ab\0", text_bytes=None):
    """Returns the payload of a record with fields, in hexadecimal. By default, its fields are the number n = 5 and the text t = 'ab'."""
    head = struct.pack("<8Q8sB5xH", *values, *[0] * (8 - len(values)), bytes(types), count, len(texts) if text_bytes is None else text_bytes)
    return (head + texts).hex()


BAD = {
    "a count of 9": payload(count=9), "fewer fields than names": payload(count=1), "no such type": payload(types=(0, 3)),
    "a text longer than the payload": payload(values=(5, 4)), "a text without an end": payload(texts=b"n\0t\0abc"),
    "an endless text": payload(values=(5, 2**64 - 1)), "more texts than slots": payload(text_bytes=60000), "an empty name": payload(texts=b"n\0\0ab\0"),
    "a name that is no name": payload(texts=b"n\0'\0ab\0"), "equal names": payload(texts=b"n\0N\0ab\0"), "too short": "00" * 16, "nothing": "",
}
# (function, fields as the player's words, fields in the trace)
GOOD = [
    (ALLOC, [field("bytes", 4096, "u"), field("name", b"weights"), field("result", 2**64 - 12, "s")],
     {"bytes": 4096, "name": "weights", "result": -12}),
    (ALLOC, [field("bytes", 2**63 + 5, "u"), field("name", "\u00e9\"\\\n\x01'".encode()), field("result", 0, "s")],
     {"bytes": 5 - 2**63, "name": "\u00e9\"\\\n\x01'", "result": 0}),
    (FREE, [field("name", b"a\xff\xc3"), field("flags", 2**63 - 1, "u")], {"name": "a??", "flags": 2**63 - 1}),
    (FREE, [field("Name", b"b"), field("Status", 7, "u")], {"Name": "b", "Status": 7}),
    (ALLOC, [field("name", b""), field("bytes", 1, "u")], {"name": None, "bytes": 1}),
    (FREE, [], {}),
    (FIELDS, [field("a", 1, "u")], {"a": 1}),
    (ODD, [field("a", 1, "u")], {"a": 1}),
    (FREE, [field(f"f{n}_{'x' * 20}", b"y" * 256) for n in range(8)], {f"f{n}_{'x' * 20}": "y" * 256 for n in range(8)}),
]
NAMES = {ALLOC: "alloc", FREE: "free", FIELDS: "fields", ODD: "odd\"';--"}  # the last two have no view of their own


def watch(s):
    watched = Watched(s)
    for name in NAMES.values():
        watched.do("function", HOOK, name)
    return watched


def publish(watched, good, end):
    function, words, _ = good
    watched.do("fields", function, end, TICKS, *words)


def expected(good, first_end):
    return [(first_end + STEP * n, NAMES[function], fields) for n, (function, _, fields) in enumerate(good)]


def check_views(rows, wanted):
    """Checks the views `hooks` and `hook_fields`. `rows` is a function that runs a query, and `wanted` is a list of (call_id, name,
    fields)."""
    seen = rows("SELECT call_id, name, fields FROM hooks ORDER BY call_id")
    equal([(call_id, name, list(json.loads(fields).items())) for call_id, name, fields in seen],
          [(call_id, name, list(fields.items())) for call_id, name, fields in wanted], "the view hooks")
    equal(rows("SELECT call_id, name, field, value FROM hook_fields ORDER BY call_id, place"),
          [(call_id, name, key, value) for call_id, name, fields in wanted for key, value in fields.items()], "the view hook_fields")


def end(s, watched):
    watched.do("complete", FOREVER)
    watched.exit()
    watched.do("flags", EXITING | LEFT)
    watched.await_state("exited")
    watched.probe.kill()


def of_file(path):
    def rows(sql):
        with contextlib.closing(sqlite3.connect(f"file:{path}?mode=ro", uri=True)) as trace:
            return trace.execute(sql).fetchall()

    return rows


def test_fields(s):
    """Checks that the views contain the fields, that replaying the recording gives the same rows, and that all calls are counted, even if
    their payloads are invalid."""
    recording, again = s.dir / "recording", s.dir / "again.db"
    s.start_daemon("--record", recording)
    watched = watch(s)
    first = now()
    for n, good in enumerate(GOOD):
        publish(watched, good, first + STEP * n)
    for n, bad in enumerate(BAD.values()):
        watched.do("record", KIND_FIELDS, ALLOC, first + STEP * (len(GOOD) + n), TICKS, 0, bad)
    last = first + STEP * (len(GOOD) + len(BAD))
    watched.do("record", KIND_FIELDS, FREE, last, TICKS, 0, payload())
    end(s, watched)
    wanted = [*expected(GOOD, first), (last, "free", {"n": 5, "t": "ab"})]
    check_views(s.rows, wanted)
    counts = collections.Counter([name for _, name, _ in wanted] + [NAMES[ALLOC]] * len(BAD))
    equal(s.rows("SELECT layer, name, calls, stored, lost, skipped FROM totals ORDER BY name"),
          [("hook", name, count, count, 0, 0) for name, count in sorted(counts.items())], "totals")
    equal(s.value("SELECT count(*) FROM calls WHERE layer = 'hook'"), len(GOOD) + len(BAD) + 1, "calls")
    equal(s.rows("SELECT DISTINCT pid, tid, thread, depth, status, end_ns - start_ns, duration_ns FROM hooks"),
          [(watched.pid, watched.pid, "watched", 0, 0, TICKS, TICKS)], "the other columns")
    s.stop_daemon()
    done = subprocess.run([DAEMON, "--replay", recording, "--db", again], capture_output=True, text=True, timeout=DEADLINE_S)
    equal(done.returncode, 0, f"status of the replay: {done.stderr}")
    everything = "SELECT call_id, name, fields, status, duration_ns, tid FROM hooks"
    equal(of_file(again)(everything), of_file(s.db)(everything), "the replay")
    equal(of_file(again)("SELECT layer, name, calls, stored FROM totals ORDER BY name"),
          of_file(s.db)("SELECT layer, name, calls, stored FROM totals ORDER BY name"), "its totals")


def check_hook_views(path, wanted):
    """Checks the views of single hooks, which have the hook's fields as columns."""
    rows = of_command(path)
    equal(rows("SELECT call_id, bytes, result FROM hook_alloc ORDER BY call_id"),
          [(call_id, fields["bytes"], fields.get("result")) for call_id, name, fields in wanted if name == "alloc"], "the view hook_alloc")
    equal(rows("SELECT call_id, name, flags, field_status FROM HOOK_FREE ORDER BY call_id"),
          [(call_id, fields.get("name", fields.get("Name")), fields.get("flags"), fields.get("Status")) for call_id, name, fields in wanted if name == "free"],
          "the view hook_free")
    equal(rows("SELECT name FROM sqlite_temp_master WHERE name GLOB 'hook_*' AND name <> 'hook_fields' ORDER BY name"),
          [("hook_alloc",), ("hook_free",)], "views of hooks")
    done = subprocess.run([CUDATRACE, "sql", "--db", path, "CREATE TEMP VIEW x AS SELECT 1"], capture_output=True, text=True, timeout=DEADLINE_S)
    check(done.returncode == 1 and "a query may only read" in done.stderr, "a query that writes:", done.stderr)


def said(*command):
    done = subprocess.run([CUDATRACE, *command], capture_output=True, text=True, timeout=DEADLINE_S)
    equal(done.returncode, 0, f"status of {command}: {done.stderr}")
    return done.stdout


def check_series(s, wanted):
    """Distributes the calls of a finished trace over two files, and checks the views again."""
    second = s.dir / "trace.2.db"
    shutil.copy(s.db, second)
    border = wanted[2][0]
    for path, gone in ((s.db, f"> {border}"), (second, f"<= {border}")):
        with contextlib.closing(sqlite3.connect(path)) as trace:
            trace.executescript(f"DELETE FROM call WHERE end_ns {gone}; DELETE FROM hook_call WHERE call_id {gone};")
    check_views(of_file(second), wanted[3:])
    check_views(of_command(s.db), wanted)
    check_hook_views(s.db, wanted)


def check_exports(s, wanted):
    """Checks that export formats with details contain the fields of a call as an object, and that importing the exported lines gives the
    same fields."""
    events = json.loads(said("export", "--db", s.db, "--format", "chrome"))["traceEvents"]
    shown = [(event["args"]["call_id"], event["name"], event["args"].get("fields", {})) for event in events if event["ph"] == "X"]
    equal(sorted(shown, key=lambda call: call[0]), wanted, "the export to chrome")
    lines, imported = s.dir / "lines.jsonl", s.dir / "imported.db"
    lines.write_text(said("export", "--db", s.db, "--format", "jsonl"))
    said("import", "--db", imported, lines)
    fields = "SELECT name, fields FROM hooks ORDER BY call_id"
    equal(of_file(imported)(fields), of_file(s.db)(fields), "the import of the lines")
    packets = subprocess.run([CUDATRACE, "export", "--db", s.db, "--format", "perfetto"], capture_output=True, check=True, timeout=DEADLINE_S).stdout
    check(b"fields.bytes" in packets and b"weights" in packets, "the export to perfetto lacks a field")
    page = s.dir / "page.html"
    said("html", "--db", s.db, "--output", page)
    names = json.loads(re.search(r'<script id="trace" type="application/json">(.*?)</script>', page.read_text(), re.S)[1])["names"]
    check('{"bytes":4096,"name":"weights","result":-12}' in names, "html lacks the fields", names)


def check_tail(s):
    text = said("tail", "--db", s.db, "--from", "@0", "--all")
    check('alloc(bytes=4096, name="weights", result=-12) = 0 <10ns>\n' in text, "tail", text)
    check(f"alloc(bytes={5 - 2**63}, name=\"" in text and "alloc(name=NULL, bytes=1)" in text and "free() = 0" in text, "tail", text)
    lines = [json.loads(line) for line in said("tail", "--db", s.db, "--from", "@0", "--all", "--format", "json").splitlines()]
    equal(lines[0]["fields"], GOOD[0][2], "the fields in JSON")


def test_tools(s):
    """Checks that the commands show the fields, even if the trace consists of several files."""
    s.start_daemon()
    watched = watch(s)
    first = now()
    for n, good in enumerate(GOOD):
        publish(watched, good, first + STEP * n)
    end(s, watched)
    s.stop_daemon()
    wanted = expected(GOOD, first)
    check_views(of_command(s.db), wanted)
    check_hook_views(s.db, wanted)
    check_exports(s, wanted)
    check_tail(s)
    check_series(s, wanted)


for test in (test_fields, test_tools):
    with Session() as session:
        print(test.__name__, flush=True)
        test(session)
