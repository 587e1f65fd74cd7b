"""Tests the views of GPU work on records with given timestamps: kernels, copies, sets and graphs, and the calls that caused them. A piece
of work may arrive before or after its correlation, and in a different batch. The test also kills the daemon between batches, lets rows
expire, continues the trace in the next file, and replays a recording."""
import collections
import os
import signal
import struct
import subprocess

from fault_test import CUDATRACE, DAEMON, DEADLINE_S, Session, check, equal, of_command
from played import EXITING, FOREVER, LEFT, Watched, now

DRIVER = 0  # enum ct_layer
CALL, STRING, GPU_WORK, CORRELATION, DEVICE = 1, 6, 13, 14, 15  # enum ct_kind
KERNEL, COPY, SET, GRAPH, DROPPED = 0, 1, 2, 3, 255  # enum ct_gpu_work_kind
HTOD, DTOH = 1, 2  # enum ct_transfer_kind
COPY_KINDS = {0: "unknown", HTOD: "HtoD", DTOH: "DtoH"}
LAUNCH, SYNC = 2, 3  # functions
NAMES = {LAUNCH: "cuLaunchKernel", SYNC: "cuStreamSynchronize"}
S = 10**9
Work = collections.namedtuple("Work", "kind start end correlation kernel device context stream graph node bytes queued copy",
                              defaults=(0, 0, 0, 1, 7, 0, 0, 0, 0, 0))
COLUMNS = ("call_id, kind, kernel, device, context, stream, gpu_start_ns, gpu_end_ns, duration_ns, queued_ns, graph, node, bytes, copy_kind, "
           "mangled")
MANGLED = {1: "_Z3addPfi", 2: "_Z5scalePf"}
DEMANGLED = {1: "add(float*, int)", 2: "scale(float*)"}


def correlation(epoch, number):
    return epoch << 32 | number


class Program(Watched):
    """A process whose GPU work is recorded. A simulated probe publishes the process's records, with given timestamps."""

    def __init__(self, s):
        super().__init__(s)
        for name in NAMES.values():
            self.do("function", DRIVER, name)
        for device in range(2):  # the GPU with this address
            self.do("record", DEVICE, 0, 0, 0, device, struct.pack("<16B16BIBB10x", *[device] * 32, 0, device, 0).hex())
        self.do("complete", FOREVER)

    def process_id(self):
        return self.s.value("SELECT process_id FROM processes WHERE pid = ?", self.pid)

    def call(self, function, start, end):
        self.do("record", CALL, function, end, end - start, 0)

    def correlate(self, value):
        self.do("record", CORRELATION, 0, 0, 0, value)

    def launch(self, start, end, value):
        self.call(LAUNCH, start, end)
        self.correlate(value)

    def name(self, number):
        self.do("record", STRING, 0, 0, 0, number, MANGLED[number].encode().hex() + "00")

    def work(self, work):
        payload = struct.pack("<QQQIIIIIBB2x", work.bytes, work.queued, work.node, work.kernel, work.device, work.context, work.stream,
                              work.graph, work.kind, work.copy)
        self.do("record", GPU_WORK, 0, work.end, work.end - work.start, work.correlation, payload.hex())

    def drop(self, records, end):
        self.work(Work(DROPPED, end, end, bytes=records))


def row(work, call_id, named=True):
    """Returns the row that the `gpu_work` view must contain for a piece of work."""
    kind = {KERNEL: "kernel", COPY: "copy", SET: "set", GRAPH: "graph"}[work.kind]
    return (call_id, kind, DEMANGLED.get(work.kernel) if named else None, work.device, work.context, work.stream, work.start, work.end,
            work.end - work.start, work.queued or None, work.graph or None, work.node or None, work.bytes if work.kind in (COPY, SET) else None,
            COPY_KINDS[work.copy] if work.kind == COPY else None, MANGLED.get(work.kernel) if named else None)


def check_work(rows, wanted, what):
    """`rows` makes a query. `wanted` has (work, call_id)."""
    seen = rows(f"SELECT {COLUMNS} FROM gpu_work ORDER BY gpu_start_ns, gpu_end_ns, stream")
    equal(seen, sorted((row(*each) for each in wanted), key=lambda row: (row[6], row[7], row[5])), what)


def test_views(s):
    """Checks that the views contain every piece of work with its call, and the gaps between pieces, and that a replay gives the same
    rows."""
    recording, again = s.dir / "recording", s.dir / "again.db"
    s.start_daemon("--record", recording)
    program = Program(s)
    at = now() - S
    c = [correlation(1, n) for n in range(10)]
    program.name(1)
    program.launch(at + 100, at + 110, c[1])
    program.launch(at + 120, at + 130, c[2])
    works = [
        (Work(KERNEL, at + 200, at + 300, c[1], kernel=1, queued=90), at + 110),
        (Work(KERNEL, at + 250, at + 400, c[2], kernel=2, stream=8), at + 130),  # its name comes later
        (Work(COPY, at + 400, at + 450, c[3], bytes=4096, copy=HTOD, context=2), at + 610),  # before its call
        (Work(COPY, at + 460, at + 470, c[3], bytes=1, copy=DTOH), at + 610),  # two pieces of work by one call
        (Work(COPY, at + 470, at + 480, 0, bytes=0, copy=9), None),  # an unknown direction, an unknown call
        (Work(SET, at + 1000, at + 1001, c[4], bytes=2**40, copy=HTOD), None),  # the correlation never comes
        (Work(GRAPH, at + 1000, at + 1300, c[5], graph=77, stream=9), at + 910),
        (Work(KERNEL, at + 1010, at + 1020, c[5], kernel=3, graph=77, node=2**40, stream=9), at + 910),  # its name never comes
        (Work(KERNEL, at + 500, at + 500, c[5], device=1), at + 910),
        (Work(KERNEL, at + 510, at + 520, c[5], device=1), at + 910),
    ]
    for work, _ in works[:3]:
        program.work(work)
    s.flush()
    equal(s.value("SELECT call_id FROM gpu_work WHERE kind = 'copy'"), None, "the call of early work")
    program.name(2)
    program.launch(at + 600, at + 610, c[3])
    program.call(SYNC, at + 620, at + 900)
    program.launch(at + 905, at + 910, c[5])
    for work, _ in works[3:]:
        program.work(work)
    s.flush()
    works = [(work._replace(copy=0) if work.copy == 9 else work, call_id) for work, call_id in works]
    check_work(s.rows, works, "the view gpu_work")
    gaps = "SELECT device, from_ns, to_ns, duration_ns, ended, begun, call_id, host_call FROM gpu_idle ORDER BY device, from_ns"
    equal(s.rows(gaps), [
        (0, at + 450, at + 460, 10, "HtoD", "DtoH", at + 610, None),
        (0, at + 480, at + 1000, 520, "unknown", "set", None, None),
        (1, at + 500, at + 510, 10, "kernel", "kernel", at + 910, None),
    ], "the view gpu_idle")
    equal(s.rows("SELECT DISTINCT process_id FROM gpu_idle UNION SELECT process_id FROM gpu_work"), [(program.process_id(),)], "its process")
    streams = "SELECT device, context, stream, kernels, copies, sets, graphs, busy_ns, first_ns, last_ns FROM streams ORDER BY 1, 2, 3"
    equal(s.rows(streams), [
        (0, 1, 7, 1, 2, 1, 0, 100 + 10 + 10 + 1, at + 200, at + 1001),
        (0, 1, 8, 1, 0, 0, 0, 150, at + 250, at + 400),
        (0, 1, 9, 1, 0, 0, 1, 300, at + 1000, at + 1300),
        (0, 2, 7, 0, 1, 0, 0, 50, at + 400, at + 450),
        (1, 1, 7, 2, 0, 0, 0, 10, at + 500, at + 520),
    ], "the view streams")
    s.check_identity()
    s.stop_daemon()
    done = subprocess.run([DAEMON, "--replay", recording, "--db", again], capture_output=True, text=True, timeout=DEADLINE_S)
    equal(done.returncode, 0, f"status of the replay: {done.stderr}")

    def replayed(sql):
        return s.rows(sql, db=again)

    check_work(replayed, works, "the replay")
    for view in gaps, streams:
        equal(replayed(view), s.rows(view), "a view of the replay")


def test_times(s):
    """Publishes impossible times. Work that seems to end in the future must be stored as if it had just ended. Work that seems to begin
    before time 0 must be stored as if it began at time 0."""
    s.start_daemon()
    program = Program(s)
    program.work(Work(KERNEL, 2**62 - 1000, 2**62, queued=2**64 - 1))
    program.do("record", GPU_WORK, 0, 5, 2**56 - 1, 0, bytes(48).hex())
    s.flush()
    rows = s.rows("SELECT gpu_start_ns, gpu_end_ns, duration_ns, queued_ns FROM gpu_work ORDER BY gpu_end_ns")
    equal(rows[0], (0, 5, 5, None), "work before time 0")
    start, end, duration, queued = rows[1]
    check(0 <= start <= end <= now() and end - start == duration and queued == 2**56 - 1, "work in the future:", *rows[1])


def bad(payload):
    def test_bad(s):
        """Publishes a record with an unknown kind of work, or with a payload that is too short. Checks that the daemon reads nothing more
        from the segment, and that the earlier rows stay."""
        s.start_daemon()
        program = Program(s)
        at = now() - S
        program.launch(at, at + 10, correlation(1, 1))
        program.work(Work(KERNEL, at + 10, at + 20, correlation(1, 1)))
        program.do("record", GPU_WORK, 0, at + 30, 1, 0, payload.hex())
        program.work(Work(KERNEL, at + 40, at + 50))
        s.flush_until("the log", lambda: "a record of GPU work is too short, or of an unknown kind" in s.log())
        equal(s.rows("SELECT call_id, gpu_end_ns FROM gpu_work"), [(at + 10, at + 20)], "work")
        s.check_identity()

    return test_bad


def test_epochs(s):
    """Checks that the work of a process's second recording, which uses the same correlation IDs again, has the right calls. A correlation
    without a call must be ignored, and must not be assigned to a call of another thread."""
    s.start_daemon()
    program = Program(s)
    at = now() - S
    program.correlate(correlation(1, 5))
    program.launch(at, at + 10, correlation(1, 7))
    program.launch(at + 20, at + 30, correlation(2, 7))
    program.do("record", 7, 0, 0, 0, 4711, b"other".ljust(32, b"\0").hex())  # another thread takes the lane
    program.correlate(correlation(2, 8))
    works = [(Work(KERNEL, at + 40 + 10 * n, at + 45 + 10 * n, value), call_id) for n, (value, call_id) in enumerate(
        [(correlation(2, 7), at + 30), (correlation(1, 7), at + 10), (correlation(1, 5), None), (correlation(2, 8), None)])]
    for work, _ in works:
        program.work(work)
    s.flush()
    check_work(s.rows, works, "work of two recordings")


def test_drops(s):
    """Checks that the `losses` view contains the number of records that CUPTI has dropped, and that they do not change the sums of
    calls."""
    s.start_daemon()
    program = Program(s)
    at = now() - S
    program.launch(at, at + 10, correlation(1, 1))
    for records, end in ((5, at + 20), (0, at + 25), (7, at + 30)):
        program.drop(records, end)
    s.flush()
    program.drop(2**64 - 1, at + 40)
    losses = "SELECT tid, cause, calls, first_ns, last_ns FROM losses"
    s.flush_until("the third report", lambda: s.value("SELECT last_ns FROM losses") == at + 40)
    equal(s.rows(losses), [(0, "cupti", 12 + 2**48, at + 20, at + 40)], "the view losses")
    equal(s.rows("SELECT * FROM gpu_work"), [], "work")
    s.check_identity()
    equal(s.rows("SELECT name, calls, lost, skipped FROM totals"), [(NAMES[LAUNCH], 1, 0, 0)], "totals")
    report = s.run(CUDATRACE, "report", "--db", s.db, "--format", "markdown", "losses", preload=False).stdout
    check("| cupti |" in report, "the report", report)


def test_killed(s):
    """Kills the daemon after each batch. Checks that each record is stored exactly once, and that a correlation is assigned to its call
    even if the call was in the previous batch."""
    s.start_daemon()
    program = Program(s)
    at, works = now() - S, []
    program.name(1)
    for n in range(4):
        begin = at + 100 * n
        works.append((Work(KERNEL, begin + 20, begin + 30, correlation(1, n), kernel=1), begin + 10))
        for step in (lambda: program.call(LAUNCH, begin, begin + 10), lambda: program.correlate(correlation(1, n)),
                     lambda: program.work(works[-1][0])):
            step()
            s.flush()
            s.daemon.kill()
            s.daemon.wait()
            s.start_daemon()
    s.flush()
    check_work(s.rows, works, "work of five daemons")
    equal(s.value("SELECT count(*) FROM correlation"), 4, "correlations")
    s.check_identity()


def test_many(s):
    """Checks that a large batch of work, which the daemon stores one page at a time, is stored completely. The ring has room for about 800
    pieces of work."""
    s.start_daemon()
    program = Program(s)
    at, works = now() - S, []
    for n in range(700):
        works.append((Work(KERNEL, at + 100 * n, at + 100 * n + 50, correlation(1, n), stream=n % 3, queued=n % 2 * n), None))
    program.work(works[0][0])
    s.flush()
    s.daemon.send_signal(signal.SIGSTOP)
    for work, _ in works[1:]:
        program.work(work)
    s.daemon.send_signal(signal.SIGCONT)
    s.flush()
    check_work(s.rows, works, "work")
    equal(s.value("PRAGMA integrity_check"), "ok", "the file")


def test_two(s):
    """Checks the gaps of a device that two processes share. A gap belongs to the process whose work ends the gap, and shows a call of this
    process."""
    s.start_daemon()
    one, other = Program(s), Program(s)
    at = now() - S
    one.work(Work(KERNEL, at + 100, at + 200))
    other.work(Work(KERNEL, at + 150, at + 300))
    other.work(Work(KERNEL, at + 400, at + 500, correlation(1, 1)))
    one.work(Work(SET, at + 700, at + 800, correlation(1, 1)))
    one.call(SYNC, at + 210, at + 390)
    other.launch(at + 310, at + 395, correlation(1, 1))
    other.call(SYNC, at + 505, at + 695)
    one.launch(at + 690, at + 695, correlation(1, 1))
    s.flush()
    equal(s.rows("SELECT device, from_ns, to_ns, process_id, ended, begun, host_call FROM gpu_idle ORDER BY from_ns"), [
        (0, at + 300, at + 400, other.process_id(), "kernel", "kernel", NAMES[LAUNCH]),
        (0, at + 500, at + 700, one.process_id(), "kernel", "set", None)], "gaps")


def report(s, *options):
    sections = s.report(*options, "gpu", "work", "idle")
    return [[tuple(row.values()) for row in sections[name]] for name in ("gpu", "work", "idle")]


def test_report(s):
    """Checks that the report's `gpu`, `work` and `idle` sections show the right sums for the whole trace, a window and a process, and that
    the sections are empty if there is no work."""
    s.start_daemon()
    program, other = Program(s), Program(s)
    equal(report(s), [[], [], []], "a report without work")
    at, ms = now() - S, 10**6
    program.name(1)
    program.name(2)

    def work(kind, start_ms, end_ms, **more):
        program.work(Work(kind, at + start_ms * ms, at + end_ms * ms, **more))

    work(KERNEL, 0, 30, kernel=1)
    work(COPY, 20, 50, bytes=30 * ms, copy=HTOD, stream=8)
    work(KERNEL, 40, 60, kernel=1, device=1)
    work(KERNEL, 60, 70, kernel=2, queued=2 * ms, correlation=1)
    work(SET, 90, 100, bytes=20 * ms, correlation=2)
    work(KERNEL, 110, 120, kernel=2, correlation=3)
    work(KERNEL, 125, 126, kernel=1, correlation=4)
    program.call(SYNC, at + 51 * ms, at + 59 * ms)
    for number, begin_ms, end_ms in (1, 59, 60), (2, 71, 89), (3, 109, 110), (4, 124, 125):
        program.launch(at + begin_ms * ms, at + end_ms * ms, number)
    program.exit()
    program.do("flags", EXITING | LEFT)
    program.await_state("exited")  # from now on, the trace has an end, which windows need
    started_ns = s.value("SELECT min(started_ns) FROM processes")
    add, scale = DEMANGLED[1], DEMANGLED[2]

    def at_s(start_ms):
        return round((at + start_ms * ms - started_ns) / 1e9, 6)

    gpu = [(0, 64.3, 81, 51, 30, 10, 0, 4, 1, 1, 0), (1, 15.9, 20, 20, 0, 0, 0, 1, 0, 0, 0)]
    kernels = [(add, 3, 51, 45.9, 17000, 30000, None, None), ("HtoD", 1, 30, 27.0, 30000, 30000, None, 1.0),
               (scale, 2, 20, 18.0, 10000, 10000, 2000, None), ("set", 1, 10, 9.0, 10000, 10000, None, 2.0)]
    idle = [(0, NAMES[LAUNCH], 4, 21, 46.7, 20, at_s(70), scale, "set"), (0, "(outside of the driver)", 4, 15, 33.3, 20, at_s(70), scale, "set"),
            (0, NAMES[SYNC], 1, 8, 17.8, 10, at_s(50), "HtoD", scale), (0, "(the next work was queued)", 1, 1, 2.2, 20, at_s(70), scale, "set")]
    equal(report(s), [gpu, kernels, idle], "the report")
    equal(report(s, "--pid", program.pid), [gpu, kernels, idle], "the report on the process")
    equal(report(s, "--pid", other.pid), [[], [], []], "the report on the other process")
    gpu, _, idle = report(s, "--from", f"@{at + 40 * ms}", "--to", f"@{at + 61 * ms}")
    equal(gpu, [(0, 52.4, 11, 1, 10, 0, 0, 1, 1, 0, 0), (1, 95.2, 20, 20, 0, 0, 0, 1, 0, 0, 0)], "the devices in a window")
    equal(idle, [(0, NAMES[SYNC], 1, 8, 80, 10, at_s(50), "HtoD", scale), (0, "(outside of the driver)", 1, 1, 10, 10, at_s(50), "HtoD", scale),
                 (0, NAMES[LAUNCH], 1, 1, 10, 10, at_s(50), "HtoD", scale)], "the gaps in a window")


def test_expired(s):
    """Checks that work is kept if only its call has expired, but no longer refers to the call. Work that has itself expired must be
    removed, together with everything that belongs to it."""
    s.start_daemon("--keep", "60s")
    program = Program(s)
    old, young = now() - 120 * S, now() - S
    program.name(1)
    program.launch(old, old + 10, correlation(1, 1))
    program.work(Work(KERNEL, old + 20, old + 30, correlation(1, 1), kernel=1))
    late = Work(KERNEL, young + 20, young + 30, correlation(1, 1), kernel=1)
    program.work(late)
    program.launch(young, young + 10, correlation(1, 2))
    last = Work(KERNEL, young + 40, young + 50, correlation(1, 2), kernel=1)
    program.work(last)
    s.flush_until("old work to go", lambda: s.value("SELECT count(*) FROM gpu_run") == 2 and s.value("SELECT count(*) FROM correlation") == 1)
    check_work(s.rows, [(late, None), (last, young + 10)], "the work that is left")
    s.check_identity()


def test_files(s):
    """Checks that work in the next file of a trace refers to its call in the previous file."""
    s.start_daemon()
    program = Program(s)
    at = now() - S
    program.name(1)
    program.launch(at, at + 10, correlation(1, 1))
    program.launch(at + 20, at + 30, correlation(1, 2))
    works = [(Work(KERNEL, at + 100 * n, at + 100 * n + 10, correlation(1, n), kernel=1), at + 20 * n - 10) for n in (1, 2)]
    program.work(works[0][0])
    s.flush()
    s.daemon.send_signal(signal.SIGHUP)
    s.flush_until("the next file", lambda: os.path.exists(s.dir / "trace.2.db"))
    program.work(works[1][0])
    s.flush()
    equal(s.value("SELECT count(*) FROM gpu_work", db=s.dir / "trace.2.db"), 1, "work in the next file")
    check_work(of_command(s.db), works, "work in two files")


bad_payloads = (bytes(44) + b"\4" + bytes(3), bytes(32), b"")
for test in (test_views, test_times, *map(bad, bad_payloads), test_epochs, test_drops, test_killed, test_many, test_two, test_report, test_expired, test_files):
    with Session() as session:
        print(test.__name__, flush=True)
        test(session)
