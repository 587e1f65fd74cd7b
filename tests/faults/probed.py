"""Tests segments that a probe writes, that is, a process that watches another process. Records may arrive long after their calls have
returned, and even after the watched process has exited. The watermark must wait for these records, and the segment ends when the probe
exits."""
import contextlib
import glob
import os
import pathlib
import signal
import struct
import subprocess

from fault_test import CUDATRACE, Session, WORKLOADS, at_point, check, cudatrace_test, equal, promise, wait_for
from played import COMPANION, EXITING, FOREVER, HOOK, LEFT, Probe, Watched, now

CALLS = 100
HOOK_MAKER = 0  # enum ct_maker


def late(s):
    return s.value("SELECT count(*) FROM late_call")


@contextlib.contextmanager
def flushing(s):
    """Starts a flush, runs the `with` block, and waits for the flush to finish. When the block begins, the daemon has already made a whole
    batch since the flush was started."""
    before = int(s.status()["batches"])
    flush = s.start(CUDATRACE, "flush", "--session", s.name, preload=False)
    wait_for("batches", lambda: int(s.status()["batches"]) > before + 1)
    yield flush
    equal(flush.wait(), 0, "the status of the flush")


def test_later_calls_wait(s):
    """Checks that if another process has published later calls before the probe publishes its calls, the later calls are stored only after
    the probe's calls."""
    watched = Watched(s)
    complete = now()
    watched.do("complete", complete)
    other = s.start(WORKLOADS / "calls", "--calls", CALLS, stdout=subprocess.DEVNULL)
    equal(other.wait(), 0, "the other's status")
    times = [(complete + 100 * n, 10 * n) for n in range(5)]
    with promise("probe-late"), flushing(s) as flush:
        equal((flush.poll(), s.value("SELECT count(*) FROM calls WHERE pid = ?", other.pid)), (None, 0), "later calls that are stored")
        for end, ticks in times[:3]:
            watched.do("call", end, ticks)
        watched.do("complete", times[3][0])
        wait_for("the calls up to the moment that the probe names", lambda: len(watched.times()) == 3)
        equal(s.value("SELECT count(*) FROM calls WHERE pid = ?", other.pid), 0, "later calls that are stored")
        for end, ticks in times[3:]:
            watched.do("call", end, ticks)
        watched.do("complete", FOREVER)
    equal(watched.times(), times, "the probe's calls")
    seen, truth = s.totals(), s.truth()
    equal({key: n for key, n in seen.items() if key[0] == other.pid},
          {key: n for key, n in truth.items() if key[0] == other.pid}, "the other's calls")
    equal(late(s), 0, "late rows")
    watched.exit()
    watched.do("flags", EXITING | LEFT)
    watched.await_state("exited")
    watched.probe.kill()


def test_new_segment(s):
    """Checks a probe that counts the segment of a new process, and then sets a later value of `complete`. A batch that uses the later value
    must also find the new segment."""
    first = Watched(s)
    complete = now()
    first.do("complete", complete)
    other = s.start(WORKLOADS / "calls", "--calls", CALLS, stdout=subprocess.DEVNULL)
    equal(other.wait(), 0, "the other's status")
    s.daemon.kill()
    s.daemon.wait()
    new = s.start("cat", preload=False, stdin=subprocess.PIPE)
    with promise("probe-new-segment"):
        s.daemon = subprocess.Popen(
            [s.daemon_program, "--foreground", "--db", s.db, "--session", s.name, "--clock", "counter"],
            env=s.env(preload=False, **at_point("source.completed", action="stop")), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        os.waitid(os.P_PID, s.daemon.pid, os.WSTOPPED | os.WNOWAIT)
        probe = Probe(s, new.pid, complete)
        probe.do("call", complete + 100, 10)
        probe.do("complete", FOREVER)
        first.do("complete", FOREVER)
        s.daemon.send_signal(signal.SIGCONT)
        s.flush_until("the calls of both", lambda: s.value(
            "SELECT count(DISTINCT pid) FROM calls WHERE pid IN (?, ?)", new.pid, other.pid) == 2)
        equal(late(s), 0, "late rows")
    for process, its_probe in (first.process, first.probe), (new, probe):
        process.stdin.close()
        process.wait()
        its_probe.do("flags", EXITING | LEFT)
        its_probe.kill()
    first.await_state("exited")


def test_process_ends_first(s):
    """Checks that calls that the probe writes after the process has exited are stored, and that the trace shows the process as ended only
    when the probe's segment ends."""
    watched = Watched(s)
    end = now()
    watched.do("complete", end)
    watched.kill()
    with promise("probe-process-ends"), flushing(s):
        equal((watched.state(), len(watched.segments())), ("running", 1), "its state and segments while the probe has more")
        watched.do("call", end, 10)
        watched.do("complete", FOREVER)
    equal(watched.times(), [(end, 10)], "its last call")
    equal((watched.state(), len(watched.segments())), ("running", 1), "its state and segments while the probe may have more")
    watched.do("call", end + 1, 10)
    watched.do("flags", LEFT)
    watched.await_state("killed")
    equal(watched.times(), [(end, 10), (end + 1, 10)], "its last calls")
    equal(late(s), 0, "late rows")
    watched.probe.kill()


def test_probe_ends_first(s):
    """Kills a probe while the watched process is still running. Checks that the calls are stored, and that the trace shows the process as
    detached."""
    watched = Watched(s)
    end = now()
    watched.do("call", end, 10)
    watched.probe.kill()
    with promise("probe-killed"):
        watched.await_state("detached")
        equal(watched.times(), [(end, 10)], "its calls")
        equal(watched.process.poll(), None, "its status")
    with promise("probe-killed"):
        # Let two probes watch the process. When the first is killed, the second still records the process.
        first, second = (Probe(s, watched.pid, watched.exec_ns) for _ in range(2))
        for probe in (first, second):
            probe.do("complete", FOREVER)
        s.flush_until("both segments", lambda: s.value(
            "SELECT count(*) FROM segment JOIN processes USING (process_id) WHERE pid = ?", watched.pid) == 3)
        # The trace shows the open call from the later of the two segments.
        for probe, start in (second, end + 2), (first, end + 1):
            probe.do("open", start)
            s.flush_until("the open call", lambda: s.rows(
                "SELECT start_ns FROM open_calls JOIN processes USING (process_id) WHERE pid = ?", watched.pid) == [(end + 2,)])
        first.kill()
        s.flush_until("one segment's end", lambda: len(watched.segments()) == 1)
        equal(watched.state(), "running", "its state while one probe is there")
        second.kill()
        watched.await_state("detached")
    equal(s.value("SELECT count(*) FROM processes WHERE pid = ?", watched.pid), 1, "rows of the process")
    watched.kill()


def test_losses(s):
    watched = Watched(s)
    watched.do("complete", FOREVER)
    s.flush()
    equal(s.status()["probed"], "1", "probed processes")
    said = s.run(CUDATRACE, "doctor", "--session", s.name, watched.pid, preload=False).stdout
    check("cudatrace-probe records its driver calls" in said and "No problems found" in said, "doctor", said)
    end = now()
    lost = s.value("SELECT ifnull(sum(lost), 0) FROM totals")
    for calls in (3, 7):
        watched.do("lose", calls, 1000 * calls, end)
        s.flush()
        equal(s.rows("SELECT tid, cause, calls, first_ns, last_ns FROM losses JOIN processes USING (process_id) WHERE pid = ?",
                     watched.pid), [(0, "probe", calls, end, end)], "losses")
        equal(s.rows("SELECT name, calls, stored, lost, total_ns FROM totals JOIN processes USING (process_id) WHERE pid = ?",
                     watched.pid), [("cuWatched", calls, 0, calls, 1000 * calls)], "totals")
    s.check_identity(lost=lost + 7)
    report = s.run(CUDATRACE, "report", "--db", s.db, "--format", "markdown", "losses", preload=False).stdout
    check("probe: the process's BPF ring" in report, "the report", report)
    done = s.run(CUDATRACE, "doctor", "--session", s.name, watched.pid, preload=False, status=1)
    check("7 calls were counted but not recorded, 7 of them of cuWatched: the BPF ring" in done.stdout, "doctor", done.stdout)
    # Lose another call while `cudatrace run` is running a command. `run` must report the losses in its session.
    run = s.start(CUDATRACE, "run", "--session", s.name, "--", "sh", "-c", "echo begun; exec cat", preload=False, stdin=subprocess.PIPE,
                  stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    equal(run.stdout.readline(), "begun\n", "the command's output")
    watched.do("lose", 8, 8000, now())
    _, said = run.communicate()
    check("run: 8 calls were counted but not recorded (probe); probe: the BPF ring" in said, "run", said)
    watched.kill()
    watched.do("flags", LEFT)
    watched.await_state("killed")
    watched.probe.kill()


def test_standing_still():
    """Tests a probe that never declares its calls as complete. A user's daemon must wait for such a probe for at most a second."""
    with cudatrace_test.Session() as s:
        s.start_daemon()
        watched = Watched(s)
        watched.do("complete", 0)
        with promise("probe-stands-still"):
            other = s.start(WORKLOADS / "calls", "--calls", CALLS, stdout=subprocess.DEVNULL)
            equal(other.wait(), 0, "the other's status")
            s.flush()
            check(s.value("SELECT count(*) FROM calls WHERE pid = ?", other.pid) >= CALLS, "the other's calls wait for ever")
            watched.do("call", 1, 0)
            s.flush()
            equal((watched.times(), late(s)), ([(1, 0)], 1), "its call, and late rows")
        watched.kill()
        watched.probe.kill()
        watched.await_state("killed")


def hooked_program(s):
    """Starts a program that the hook records. Returns the process, and a function that makes the program make calls."""
    hooked = s.start(WORKLOADS / "attached", "--do", "steps", 1, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    equal(hooked.stdout.readline(), "ready\n", "the program's output")

    def step():
        hooked.stdin.write("5\n")
        hooked.stdin.flush()
        equal(hooked.stdout.readline(), "made 5\n", "a step")

    step()
    s.flush_until("its row", lambda: s.value("SELECT count(*) FROM processes WHERE pid = ?", hooked.pid))
    return hooked, step


def waiting_lanes(s, pid):
    """Returns (position, wake) of each lane in the hook's segment that has calls which the daemon has not stored."""
    for path in glob.glob(f"/dev/shm/cudatrace.*.{s.name}.{pid}.*"):
        segment = pathlib.Path(path).read_bytes()[:1 << 23]
        if struct.unpack_from("<I", segment, 1420)[0] != HOOK_MAKER:
            continue
        offset, stride = struct.unpack_from("<QQ", segment, 24)
        at = [offset + stride * lane for lane in range(struct.unpack_from("<I", segment, 1408)[0])]
        lanes = [(*struct.unpack_from("<Q8xQ", segment, lane), *struct.unpack_from("<Q", segment, lane + 384)) for lane in at]
        return [(state >> 1, wake) for state, wake, tail in lanes if state >> 1 > tail]
    raise AssertionError("no segment of the hook")


def test_no_doorbell_while_calls_wait(s):
    """Checks that a batch that is empty because all calls wait for a probe does not make the hook ring the doorbell at each further call."""
    hooked, step = hooked_program(s)
    probe = Probe(s, hooked.pid, s.value("SELECT image_ns FROM process WHERE pid = ?", hooked.pid), COMPANION)
    probe.do("complete", now())
    with promise("probe-no-doorbell"):
        stored = s.value("SELECT count(*) FROM calls WHERE pid = ?", hooked.pid)
        step()
        before = int(s.status()["batches"])
        wait_for("batches", lambda: int(s.status()["batches"]) > before + 2)
        lanes = waiting_lanes(s, hooked.pid)
        equal(s.value("SELECT count(*) FROM calls WHERE pid = ?", hooked.pid), stored, "calls that are stored")
        check(lanes and all(wake > position for position, wake in lanes), "positions, and where the hook rings:", lanes)
    probe.do("complete", FOREVER)
    hooked.stdin.close()
    equal(hooked.wait(), 0, "the program's status")
    probe.do("flags", LEFT)
    s.flush_until("its end", lambda: s.value("SELECT state FROM processes WHERE pid = ?", hooked.pid) == "exited")
    probe.kill()


def test_companion(s):
    """Checks that a companion adds rows for functions with a hook to the thread that the hook records. If the companion records a driver
    call, the daemon must drop the companion, but keep reading the hook's segment."""
    hooked, step = hooked_program(s)
    probe = Probe(s, hooked.pid, s.value("SELECT image_ns FROM process WHERE pid = ?", hooked.pid), COMPANION)
    end = now()
    probe.do("function", HOOK, "inside")
    probe.do("fields", 2, end, 10)
    probe.do("complete", FOREVER)
    s.flush_until("the companion's row", lambda: s.rows("SELECT name, end_ns FROM calls WHERE pid = ? AND layer = 'hook'", hooked.pid) ==
                  [("inside", end)])
    equal(s.rows("SELECT comm, count(*) FROM threads JOIN processes USING (process_id) WHERE tid = ? AND pid = ?", hooked.pid, hooked.pid),
          [("attached", 1)], "rows of the thread")
    equal((s.status()["processes"], s.status()["probed"]), ("1", "0"), "processes, and probed ones")
    with promise("companion-of-hook"):
        probe.do("call", now(), 10)
        s.flush_until("the end of the companion", lambda: len(glob.glob(f"/dev/shm/cudatrace.*.{s.name}.{hooked.pid}.*")) == 1)
        step()
        hooked.stdin.close()
        equal(hooked.wait(), 0, "the program's status")
        s.flush_until("its end", lambda: s.value("SELECT state FROM processes WHERE pid = ?", hooked.pid) == "exited")
        equal({key: n for key, n in s.totals().items() if key[0] == hooked.pid},
              {key: n for key, n in s.truth().items() if key[0] == hooked.pid}, "the driver's calls")
    probe.kill()


with Session() as s:
    # Use the counter as the session's clock, which a probe's times are not on.
    s.start_daemon("--clock", "counter")
    test_later_calls_wait(s)
    test_new_segment(s)
    test_process_ends_first(s)
    test_probe_ends_first(s)
    test_losses(s)
with Session() as s:
    s.start_daemon()
    test_no_doorbell_while_calls_wait(s)
    test_companion(s)
test_standing_still()
