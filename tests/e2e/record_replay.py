"""Tests that replaying a recorded session gives the same trace: the same rows in all tables, the same reports, and the same exports. For a
truncated or damaged recording, a replay must store the complete frames and print a message."""
import os
import stat
import struct
import subprocess

from cudatrace_test import CUDATRACE, DEADLINE_S, HOOK, HungCall, Session, WORKLOADS, check, equal, fifo
from replay_test import check_same, replay, tables

HEADER_BYTES, FRAME_BYTES = 400, 32


def said(path, *command):
    """Returns a command's output for a trace. Replaces the trace's path, as it is or as Markdown, with a fixed word."""
    done = subprocess.run([CUDATRACE, *command, "--db", path], capture_output=True, timeout=DEADLINE_S)
    equal(done.returncode, 0, f"status of {command}: {done.stderr}")
    return done.stdout.replace(bytes(path).replace(b"_", b"\\_"), b"TRACE").replace(bytes(path), b"TRACE")


def frames(data):
    """Yields the offset of each frame in a recording, and finally the offset of the recording's end."""
    at = HEADER_BYTES
    while at < len(data):
        yield at
        at += FRAME_BYTES + struct.unpack_from("<Q", data, at + 8)[0]
    yield at


def record(s, recording):
    s.start_daemon("--record", recording)
    equal(stat.S_IMODE(os.stat(recording).st_mode), 0o600, "mode of the recording")
    nvtx = {"NVTX_INJECTION64_PATH": HOOK}
    for command in (["demo"], ["calls", "--calls", "20000"], ["threads"], ["ranges"], ["named"], ["objects"], ["graph"], ["forks"],
                    ["bottlenecks"]):
        s.run(WORKLOADS / command[0], *command[1:], stdout=subprocess.DEVNULL, status=None, env=nvtx)
    refused = f"/dev/shm/cudatrace.{os.geteuid()}.{s.name}.{os.getpid()}.abc"
    os.mkdir(refused)
    s.flush()
    os.rmdir(refused)
    equal(s.rows("SELECT pid, cause, calls FROM unrecorded"), [(os.getpid(), "refused", None)], "refused segments")
    s.cudatrace("set", "--sample", "3")
    s.run(WORKLOADS / "calls", "--calls", "1000", stdout=subprocess.DEVNULL)
    with HungCall(s) as hung:
        s.flush_until("the open call", lambda: s.value("SELECT count(*) FROM open_calls"))
        s.start(WORKLOADS / "calls", "--calls", "3000000", stdout=subprocess.DEVNULL).kill()
        hung.kill()
    s.flush()
    with HungCall(s) as last:
        s.flush_until("the open call", lambda: s.value(
            "SELECT count(*) FROM open_calls JOIN processes USING (process_id) WHERE processes.pid = ?", last.pid))
        s.stop_daemon()


def check_sameness(s, recording, again):
    replay("--replay", recording, "--db", again)
    check_same(tables(again), tables(s.db), "the replay")
    for command in (["report"], ["report", "--format", "markdown"], ["export", "--format", "jsonl"], ["export", "--format", "csv"],
                    ["export", "--format", "chrome"]):
        check(said(again, *command) == said(s.db, *command), "what", *command, "says differs")
    equal(replay("--replay", recording, "--db", again, status=1).count("already exists"), 1, "sentences")
    imported = s.dir / "imported.db"
    s.run(CUDATRACE, "import", "--db", imported, recording, preload=False)
    check_same(tables(imported), tables(s.db), "the import")


def check_cut_short(s, data):
    """Tests that all complete frames of a truncated recording are stored, no matter where it is truncated."""
    part, db = s.dir / "part.rec", s.dir / "part.db"
    starts = list(frames(data))
    check(len(starts) > 6, "a recording of", len(starts), "batches")
    third, fourth = (f"is truncated in the batch at byte {starts[n]};" for n in (2, 3))
    cuts = {starts[1]: "", starts[2] + 5: third, starts[3] - 1: third, starts[3] + FRAME_BYTES + 1: fourth}
    last = 0
    for cut, sentence in sorted(cuts.items()):
        part.write_bytes(data[:cut])
        problem = replay("--replay", part, "--db", db, status=1 if sentence else 0)
        check(sentence in problem and bool(sentence) == bool(problem), cut, "says", problem)
        calls = s.value("SELECT count(*) FROM calls", db=db)
        check(calls >= last, cut, "bytes have", calls, "calls, and fewer have", last)
        last = calls
        for path in s.dir.glob("part.db*"):
            path.unlink()


def check_bad_input(s, data):
    part, db = s.dir / "bad.rec", s.dir / "bad.db"
    starts = list(frames(data))
    middle = starts[2] + FRAME_BYTES + 40
    version = bytearray(data[:HEADER_BYTES])
    version[8] ^= 0x40
    for bad, sentence in ((b"", "is empty"), (b"SQLite format 3\0", "is an SQLite database"), (data[:20], "is truncated after 20 of the"),
                          (bytes(version), "another version"),
                          (data[:middle] + b"\xff" + data[middle + 1:], f"the batch at byte {starts[2]} does not match its checksum"),
                          (data[:starts[2]] + bytes(4) + data[starts[2] + 4:], f"expected the beginning of a batch at byte {starts[2]}")):
        part.write_bytes(bad)
        problem = replay("--replay", part, "--db", db, status=1)
        check(sentence in problem and problem.count("\n") == 1, repr(bad[:8]), "says", problem)
        for path in s.dir.glob("bad.db*"):
            path.unlink()
    with fifo(s.dir, "a.fifo") as path:
        check("not a regular file" in replay("--replay", path, "--db", db, status=1), "a FIFO is read")
    check("cannot read" in replay("--replay", s.dir / "nothing", "--db", db, status=1), "a file that is not there is read")
    equal(replay("--replay", status=2).count("requires a file"), 1, "sentences")


def check_outputs(s):
    """Tests that the daemon overwrites no file other than a recording, and that it does not start if it cannot create its recording."""
    precious = s.dir / "precious"
    precious.write_text("mine\n")
    link = s.dir / "link.rec"
    link.symlink_to(precious)
    for path, sentence in ((precious, "is not a recording"), (link, "cannot record"), (s.dir, "cannot record"),
                           (s.dir / "nowhere" / "a.rec", "cannot record")):
        problem = replay("--foreground", "--session", s.name, "--db", s.dir / "other.db", "--record", path, status=1)
        check(sentence in problem, path, "says", problem)
    equal(precious.read_text(), "mine\n", "a file that is no recording")


with Session() as s:
    recording, again = s.dir / "session.rec", s.dir / "again.db"
    record(s, recording)
    s.check_identity(lost=None, killed=None)
    check_sameness(s, recording, again)
    data = recording.read_bytes()
    equal(list(frames(data))[-1], len(data), "the end of the last frame")
    check_cut_short(s, data)
    check_bad_input(s, data)
    check_outputs(s)
