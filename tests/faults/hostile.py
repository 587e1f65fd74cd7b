"""Tests segments that no hook has made, and segments of live processes that another process overwrites. The daemon must survive, reject the
segment or detach the process, count this, and log the name of the offender. The calls of honest processes must be complete, without rows
from other processes. The daemon must not remove or write any file that is not a segment of the session.

CUDATRACE_SEED chooses the random data. The seed is printed.
"""
import contextlib
import fcntl
import glob
import mmap
import os
import pathlib
import re
import resource
import signal
import socket
import struct
import subprocess
import time

from fault_test import BUILD, LONG, SLOT, Session, WORKLOADS, can, check, equal, fifo, head, promise, seed, wait_for

MUTATOR = BUILD / "tests/faults/mutator"
SEED = seed()
MAGIC, VERSION = 0x3147455354445543, 16
RING, DIRECTORY, LANES_AT, LANE_HEADER = 65536, 4096, 4096 + 2048 * 128, 4096
# Offsets of members in a segment's header (proto/segment.h), and in a lane.
FIELDS = {"magic": (0, "Q"), "version": (8, "I"), "header_bytes": (12, "I"), "function_slots": (16, "I"), "lane_slots": (20, "I"),
          "lane_offset": (24, "Q"), "lane_stride": (32, "Q"), "ring_bytes": (40, "Q"), "pid": (48, "i"), "uid": (52, "I"),
          "process_start": (56, "Q"), "exec_ns": (64, "Q"), "clock": (72, "I"), "anchor_ticks": (96, "Q"),
          "anchor_ns": (104, "Q"), "exe": (120, "256s"), "cmdline": (376, "1024s"), "ready": (1400, "I"), "flags": (1404, "I"),
          "lanes": (1408, "I"), "functions": (1412, "I"), "maker": (1420, "I"), "complete": (1496, "Q")}
HEADER_BYTES = 1592
STATE, TAIL = 0, 384  # offsets in a lane
HAS_DROPS, LOST_CALLS = 1472, DIRECTORY + 128 + 80
LAUNCH, NAME = 2, 11
PROBE, MACHINE, LEFT = 1, 3, 4  # enum ct_maker, enum ct_segment_flags
IOCTL, CALL = 2, 1  # made-up segments contain ioctls: the simulated driver does not count them
NO_PID = 4000000  # greater than any pid of the kernel


def start_of(pid):
    return int(pathlib.Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[19])


class Segment:
    """A forged segment in /dev/shm."""

    count = 0

    def __init__(self, s, pid=None, name=None, path=None, calls=0, function=b"made up", **fields):
        Segment.count += 1
        pid = os.getpid() if pid is None else pid
        self.path = path or f"/dev/shm/cudatrace.{os.geteuid()}.{s.name}." + (name or f"{pid}.{Segment.count:x}")
        values = {"magic": MAGIC, "version": VERSION, "header_bytes": HEADER_BYTES, "function_slots": 2048, "lane_slots": 4096,
                  "lane_offset": LANES_AT, "lane_stride": LANE_HEADER + RING, "ring_bytes": RING, "pid": pid,
                  "process_start": 1, "exec_ns": Segment.count, "clock": 0, "anchor_ns": time.clock_gettime_ns(time.CLOCK_MONOTONIC),
                  "exe": b"/bin/hostile", "ready": 1,
                  "lanes": 1, "functions": 2}
        with contextlib.suppress(OSError):
            values["process_start"] = start_of(pid)
        values.update(fields)
        values["pid"] = values.pop("claimed_pid", pid)
        header = bytearray(HEADER_BYTES)
        for field, value in values.items():
            struct.pack_into("<" + FIELDS[field][1], header, FIELDS[field][0], value)
        # Create the file under another name and then rename it, because the daemon, which watches the folder, must not see an incomplete
        # file.
        making = f"/dev/shm/cudatrace-making.{os.getpid()}"
        with open(making, "xb") as file:
            file.truncate(LANES_AT + LANE_HEADER + RING)
            now = time.clock_gettime_ns(time.CLOCK_MONOTONIC) - 10**9
            self.put(file, 0, bytes(header))
            self.put(file, DIRECTORY + 128, struct.pack("<72sB", function, IOCTL))
            for i in range(calls):
                self.put(file, LANES_AT + LANE_HEADER + SLOT * i, struct.pack("<IIQ", head(1, CALL, 1), 500, now + i * 1000))
            self.put(file, LANES_AT + STATE, struct.pack("<Q", calls << 1))
        os.rename(making, self.path)

    def put(self, file, at, data):
        file.seek(at)
        file.write(data)

    def poke(self, at, value, form="Q"):
        with open(self.path, "r+b") as file:
            self.put(file, at, struct.pack("<" + form, value))
            if LOST_CALLS <= at < LOST_CALLS + 48:  # the daemon reads these only when this is set
                self.put(file, HAS_DROPS, struct.pack("<I", 1))

    def there(self):
        return os.path.lexists(self.path)

    def remove(self):
        with contextlib.suppress(FileNotFoundError):
            os.unlink(self.path)


def status(s, key):
    return int(s.status()[key].split()[0])


class Honest:
    """Programs whose calls must all be recorded under the programs' own pids. No other process's calls may be recorded under these pids."""

    def __init__(self, s):
        self.s, self.pids = s, set()

    def run(self, *arguments):
        child = self.s.start(WORKLOADS / "calls", *arguments, stdout=subprocess.DEVNULL)
        equal(child.wait(), 0, "an honest program's status")
        self.pids.add(child.pid)

    def check(self):
        seen, truth = self.s.totals(), self.s.truth()
        for key in {key for key in seen.keys() | truth.keys() if key[0] in self.pids}:
            equal(seen.get(key, 0), truth.get(key, 0), ("calls of", key))
        marks = ",".join(str(pid) for pid in self.pids)
        equal(self.s.rows("SELECT pid, totals.name, lost, skipped FROM totals JOIN processes USING (process_id) "
                          f"WHERE pid IN ({marks}) AND lost + skipped > 0"), [], "honest calls that were lost")
        equal(self.s.rows(f"SELECT pid, layer FROM calls WHERE pid IN ({marks}) AND layer <> 'driver'"), [], "rows of others")


def check_daemon(s):
    equal(s.daemon.poll(), None, "the daemon's status")
    for word in ("AddressSanitizer", "runtime error", "cannot write database"):
        check(word not in s.log(), "the daemon's log:", s.log()[-3000:])


# ---- files that are not segments ----

def lies():
    """Returns {description: header fields} of segments that the daemon must refuse."""
    return {
        "magic": {"magic": 1}, "version": {"version": VERSION + 1}, "header size": {"header_bytes": HEADER_BYTES + 8},
        "ring size not a power of two": {"ring_bytes": RING + 4096},
        "no ring": {"ring_bytes": 0}, "endless ring": {"ring_bytes": 1 << 40},
        "no lanes": {"lane_slots": 0}, "four billion lanes": {"lane_slots": 2**32 - 1},
        "functions without number": {"function_slots": 2**32 - 1}, "an offset that wraps": {"lane_offset": 2**64 - 4096},
        "a stride that wraps": {"lane_stride": 2**64 - 4096}, "a clock of its own": {"clock": 7}, "a maker of its own": {"maker": 7},
        "pid 0": {"claimed_pid": 0}, "pid -1": {"claimed_pid": -1}, "another pid than its name": {"claimed_pid": os.getppid()},
        "a negative start": {"process_start": 2**63}, "a negative image": {"exec_ns": 2**63},
    }


def refused(s, segment, what):
    before, listed = status(s, "refused"), status(s, "unrecorded")
    yield
    s.flush()
    equal(status(s, "refused"), before + 1, ("refused after", what))
    pid, cause, error = s.rows("SELECT pid, cause, error FROM unrecorded ORDER BY last_ns DESC LIMIT 1")[0]
    equal((pid, cause), (int(pathlib.Path(segment).name.split(".")[-2]), "refused"), ("the row after", what))
    check(error in s.log() and status(s, "unrecorded") in (listed, listed + 1), "the reason after", what, "is", error)
    check(pathlib.Path(segment).name in s.log(), what, "is not named:", s.log()[-1000:])
    check(os.path.lexists(segment), what, "was taken away")


refused = contextlib.contextmanager(refused)


def test_refused(s):
    for what, fields in lies().items():
        with promise("no-segment-refused"):
            path = f"/dev/shm/cudatrace.{os.geteuid()}.{s.name}.{os.getpid()}.{Segment.count + 1:x}"
            with refused(s, path, what):
                segment = Segment(s, calls=5, **fields)
            segment.remove()
    path = pathlib.Path(f"/dev/shm/cudatrace.{os.geteuid()}.{s.name}.{os.getpid()}.ffff")
    precious = pathlib.Path(f"/dev/shm/precious.{os.getpid()}")

    def named_socket():
        with socket.socket(socket.AF_UNIX) as listener:
            listener.bind(str(path))

    makers = {"symlink": lambda: path.symlink_to(precious), "fifo": lambda: os.mkfifo(path), "folder": path.mkdir,
              "socket": named_socket, "hard link": lambda: os.link(precious, path)}
    if can("several users", "devices in place of a segment"):
        makers["device"] = lambda: os.mknod(path, 0o20600, os.makedev(1, 3))
    for what, make in makers.items():
        with promise("no-segment-refused"):
            Segment(s, pid=NO_PID, calls=3)
            donor = Segment(s, pid=NO_PID, calls=3)
            s.flush()
            # Make some valid segments as well, which the daemon must read.
            precious.write_bytes(b"precious" * 100000)
            with refused(s, path, what):
                try:
                    make()
                except PermissionError:
                    path.mkdir()  # not permitted here: use the folder again
            equal(precious.read_bytes(), b"precious" * 100000, what)
            path.rmdir() if path.is_dir() and not path.is_symlink() else path.unlink()
            precious.unlink()
            check(not donor.there(), "a dead process's segment is read and gone")
            s.flush()
    print("refused:", status(s, "refused"))


def test_told(s):
    """Checks that `run` and `doctor` report a segment that the daemon has refused."""
    with promise("no-segment-refused"):
        made = Segment(s, path=f"/dev/shm/cudatrace-refused.{os.getpid()}", magic=1)
        copy = f'cp "$0" /dev/shm/cudatrace.{os.geteuid()}.{s.name}.$$.abc; echo $$'
        done = s.cudatrace("run", "--", "sh", "-c", copy, made.path)
        check("1 process could not be recorded (refused)" in done.stderr, done.stderr)
        check("miss  unrecorded" in s.cudatrace("doctor", status=1).stdout, "doctor")
        made.remove()
        for path in glob.glob(f"/dev/shm/cudatrace.*.{s.name}.*.abc"):
            os.unlink(path)
        done = s.cudatrace("run", "--", "true")
        check("refused" not in done.stderr, "a run without refused segments:", done.stderr)


def test_names(s):
    with promise("names-of-others"):
        before = s.log(), status(s, "refused"), status(s, "processes")
        names = ["x", "1.zz", "0.1", "-1.1", "99999999999.1", "1.", "1.1.1", "01.1", "1.ABC", "1", ".1", "1.1 ", "1.11111111111111111"]
        files = [Segment(s, pid=1, name=name, calls=3) for name in names]
        s.flush()
        s.flush()
        check(all(file.there() for file in files), "a file was taken away")
        equal((s.log(), status(s, "refused"), status(s, "processes")), before, "what was noticed")
        for file in files:
            file.remove()


def test_lease(s):
    """Tests a segment with a lease. A process that holds a lease on a file can block other processes that open the file for almost a
    minute. Therefore, the daemon must not wait, but read the segment later."""
    with promise("lease"):
        signal.signal(signal.SIGIO, signal.SIG_IGN)
        elsewhere = Segment(s, pid=NO_PID + 3, calls=3, path=f"/dev/shm/cudatrace-leased.{os.getpid()}")
        with open(elsewhere.path, "r+b") as file:
            fcntl.fcntl(file, fcntl.F_SETLEASE, fcntl.F_WRLCK)
            path = f"/dev/shm/cudatrace.{os.geteuid()}.{s.name}.{NO_PID + 3}.1"
            os.rename(elsewhere.path, path)
            s.flush()
            check(os.path.exists(path), "a file that could not be opened is gone")
            equal(s.value("SELECT count(*) FROM processes WHERE pid = ?", NO_PID + 3), 0, "processes behind the lease")
        s.flush()
        equal(s.value("SELECT count(*) FROM calls WHERE pid = ?", NO_PID + 3), 3, "calls behind the lease")


def test_descriptors():
    """Checks that if the daemon has no descriptor to open the segment of a dead process, it reads the segment later, and does not mistake
    it for a leftover."""
    with Session() as s, promise("out-of-descriptors"):
        segments = [Segment(s, pid=NO_PID + i, calls=3) for i in range(60)]
        for segment in segments:
            os.utime(segment.path, (1, 1))
        s.start_daemon(preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_NOFILE, (40, 40)))
        for _ in range(200):
            s.cudatrace("flush", status=None)
            if not any(segment.there() for segment in segments):
                break
        equal(s.value("SELECT count(*) FROM calls"), 3 * len(segments), "calls")


def test_crowds(s):
    """Creates thousands of files that are not segments. Checks that the daemon removes leftovers, and that it refuses invalid files with
    only a few lines in the log."""
    count = 3000 if LONG else 1000
    with promise("crowd-of-empty-files"):
        before = len(s.log().splitlines())
        prefix = f"/dev/shm/cudatrace.{os.geteuid()}.{s.name}"
        paths = [f"{prefix}.{NO_PID + i}.1" for i in range(count)]
        for path in paths:
            with open(path, "xb"):
                pass
            os.utime(path, (1, 1))
        mine = f"{prefix}.{os.getpid()}.abc"
        open(mine, "xb").close()
        os.utime(mine, (1, 1))
        s.flush()
        equal([path for path in paths if os.path.exists(path)], [], "empty files whose makers are gone")
        check(os.path.exists(mine), "a file in the making is gone")
        equal(len(s.log().splitlines()), before, "lines of the log")
        os.unlink(mine)
    with promise("crowd-of-refused-files"):
        refused_before = status(s, "refused")
        for path in paths:
            with open(path, "xb") as file:
                file.truncate(LANES_AT)
                file.write(b"no segment at all")
                file.seek(FIELDS["ready"][0])
                file.write(struct.pack("<I", 1))
        s.flush()
        check(status(s, "refused") >= refused_before + count * 9 // 10, "refused", status(s, "refused"))
        check(len(s.log().splitlines()) <= before + 55, "lines of the log", len(s.log().splitlines()) - before)
        for path in paths:
            with contextlib.suppress(FileNotFoundError):
                os.unlink(path)
        s.flush()


# ---- segments that break the rules ----

def test_let_go(s):
    """Changes a segment so that it breaks a rule after the daemon has begun to read it. Checks that the daemon detaches the process, and
    keeps the calls that it has already stored."""
    lane = LANES_AT
    ring = LANES_AT + LANE_HEADER
    breaks = {
        "four billion lanes": [(FIELDS["lanes"][0], 2**32 - 1, "I")], "lanes behind the end": [(FIELDS["lanes"][0], 9, "I")],
        "functions without number": [(FIELDS["functions"][0], 2**32 - 1, "I")],
        "a position out of the ring": [(lane + STATE, 2**64 - 1, "Q")], "a position that goes back": [(lane + STATE, 2, "Q")],
        "a record without length": [(ring + SLOT * 5, head(1, CALL, 0), "I"), (lane + STATE, 6 << 1, "Q")],
        "a record of no kind": [(ring + SLOT * 5, head(1, 63, 1), "I"), (lane + STATE, 6 << 1, "Q")],
        "a record shorter than its kind": [(ring + SLOT * 5, head(1, LAUNCH, 1), "I"), (lane + STATE, 6 << 1, "Q")],
        "a record longer than any": [(ring + SLOT * 5, head(1, NAME, 1023), "I"), (lane + STATE, 1100 << 1, "Q")],
        "a function that is none": [(ring + SLOT * 5, head(0xffff, CALL, 1), "I"), (lane + STATE, 6 << 1, "Q")],
        "a return in the future": [(ring + SLOT * 5 + 8, 2**62, "Q"), (ring + SLOT * 5, head(1, CALL, 1), "I"),
                                   (lane + STATE, 6 << 1, "Q")],
        "all calls lost": [(LOST_CALLS, 2**64 - 1, "Q")], "a number of calls lost that is negative": [(LOST_CALLS, 2**63, "Q")],
    }
    for what, pokes in breaks.items():
        with promise("rules-broken-let-go"):
            before = status(s, "detached")
            child = s.start("sleep", "1000", preload=False)
            segment = Segment(s, pid=child.pid, calls=5, exe=b"/bin/hostile\n\x1b[2J\xff")
            s.flush()
            equal(s.value("SELECT count(*) FROM calls WHERE pid = ?", child.pid), 5, ("rows before", what))
            for at, value, form in pokes:
                segment.poke(at, value, form)
            s.flush()
            equal(status(s, "detached"), before + 1, ("detached after", what))
            check(re.search(rf'stopped tracing process {child.pid} \("/bin/hostile\\x0a\\x1b\[2J\?"\): segment ', s.log()), what, "is not named:",
                  s.log()[-1000:])
            check(not segment.there(), "the segment is still there")
            equal(s.value("SELECT count(*) FROM calls WHERE pid = ?", child.pid), 5, ("rows after", what))
            s.flush_until("its state", lambda: s.value("SELECT state FROM processes WHERE pid = ?", child.pid) == "left")
            child.kill()
            child.wait()
            s.flush()
            equal(s.value("SELECT state FROM processes WHERE pid = ?", child.pid), "exited", "its state after its end")
    with promise("file-replaced"):
        segment = Segment(s, pid=os.getpid(), calls=5)
        s.flush()
        segment.poke(lane + STATE, 2**64 - 1)
        replacement = segment.path.replace("cudatrace.", "replacement.")
        pathlib.Path(replacement).write_text("precious")
        os.rename(replacement, segment.path)
        # The daemon still has the old file mapped, and must not remove the new one.
        s.flush()
        equal(pathlib.Path(segment.path).read_text(), "precious", "the file in its place")
        segment.remove()
    with promise("name-without-end"):
        segment = Segment(s, pid=NO_PID + 1, calls=4, function=b"x" * 72)
        s.flush()
        equal(s.rows("SELECT name, calls FROM totals JOIN processes USING (process_id) WHERE pid = ?", NO_PID + 1),
              [("x" * 71, 4)], "a name that fills its place")


def test_lies_about_counts(s):
    with promise("lies-about-counts"):
        segment = Segment(s, pid=NO_PID + 2, calls=3, flags=1)
        s.flush()
        child = s.start("sleep", "1000", preload=False)
        segment = Segment(s, pid=child.pid, calls=3, anchor_ns=2**64 - 1, anchor_ticks=2**64 - 1)
        for offset in (8, 16, 32, 40):  # lost and skipped ticks and bytes
            segment.poke(LOST_CALLS + offset, 2**64 - 1)
        segment.poke(LOST_CALLS, 2**48 - 1)
        segment.poke(LOST_CALLS + 24, 2**48 - 1)
        s.flush()
        calls, lost, total_ns = s.rows("SELECT calls, lost, total_ns FROM totals JOIN processes USING (process_id) "
                                       "WHERE pid = ?", child.pid)[0]
        check(calls == 3 + 2 * (2**48 - 1) and lost == 2**48 - 1 and total_ns > 0, "sums", calls, lost, total_ns)
        equal(s.value("SELECT count(*) FROM totals WHERE min(calls, lost, total_ns, bytes) < 0 OR "
                      "typeof(total_ns) <> 'integer' OR typeof(bytes) <> 'integer'"), 0, "sums that are none")
        check(s.value("SELECT started_ns FROM processes WHERE pid = ?", child.pid) > 0, "started before time")
        before = status(s, "detached")
        segment.poke(LOST_CALLS, 1)
        s.flush()
        equal(status(s, "detached"), before + 1, "detached for a count that shrinks")
        equal(s.value("SELECT lost FROM totals JOIN processes USING (process_id) WHERE pid = ?", child.pid), 2**48 - 1, "lost")
        child.kill()
        child.wait()


# ---- segments under another process's name ----

def header_of(path):
    with open(path, "rb") as file:
        data = file.read(HEADER_BYTES)
    return {field: struct.unpack_from("<" + form, data, at)[0] for field, (at, form) in FIELDS.items()}


def test_names_of_the_living(s, honest):
    with fifo(s.dir, "hold") as hold:
        child = s.start(WORKLOADS / "calls", "--calls", 300, "--hold", hold, stdout=subprocess.PIPE)
        child.stdout.readline()
        s.flush()
        genuine, = glob.glob(f"/dev/shm/cudatrace.*.{s.name}.{child.pid}.*")
        facts = header_of(genuine)
        honest_id = s.value("SELECT process_id FROM processes WHERE pid = ?", child.pid)
        claims = {"process_start": facts["process_start"], "exec_ns": facts["exec_ns"]}
        with promise("another-process-name"):
            path = genuine.rpartition(".")[0] + ".1"
            for what, fields in (("a segment", {}), ("a probe's segment", {"maker": PROBE}), ("a probe's own segment", {"maker": MACHINE}),
                                 ("a probe's segment that is left", {"maker": PROBE, "flags": LEFT})):
                with refused(s, path, f"{what} of the same process"):
                    twin = Segment(s, pid=child.pid, name=f"{child.pid}.1", calls=9, **claims, **fields)
                twin.remove()
                s.flush()
        with promise("another-process-name"):
            # Make segments that look as if the process had exec'd another program since it made its own segment.
            Segment(s, pid=child.pid, calls=9, **dict(claims, exec_ns=facts["exec_ns"] + 1))
            Segment(s, pid=child.pid, calls=9, maker=PROBE, flags=LEFT, **dict(claims, exec_ns=facts["exec_ns"] + 2))
            s.flush()
            equal(s.value("SELECT state FROM processes WHERE process_id = ?", honest_id), "running", "the honest one's state")
            check(os.path.exists(genuine), "the honest one's segment is gone")
        with promise("another-process-name"):
            Segment(s, pid=child.pid, calls=9, process_start=facts["process_start"] + 1)
            s.flush()
        with promise("the-daemon-s-name"):
            path = f"/dev/shm/cudatrace.{os.geteuid()}.{s.name}.{s.daemon.pid}.1"
            with refused(s, path, "the daemon's pid"):
                twin = Segment(s, pid=s.daemon.pid, name=f"{s.daemon.pid}.1", calls=3)
            twin.remove()
        equal(s.value("SELECT count(*) FROM calls WHERE process_id = ? AND layer <> 'driver'", honest_id), 0, "rows of others")
        with open(hold, "wb"):
            pass
        equal(child.wait(), 0, "its status")
    s.flush()
    # All calls of the honest process must be in the trace, including the calls that it made when it exited.
    seen = dict(s.rows("SELECT name, calls FROM totals WHERE process_id = ? AND lost + skipped = 0", honest_id))
    equal(seen, {name: calls for (pid, name), calls in s.truth().items() if pid == child.pid}, "the honest one's calls")
    equal(s.value("SELECT state FROM processes WHERE process_id = ?", honest_id), "exited", "the honest one's state")
    with promise("name-used-again"):
        before = s.rows("SELECT * FROM totals WHERE process_id = ?", honest_id), status(s, "detached")
        again = Segment(s, pid=child.pid, name=pathlib.Path(genuine).name.split(".", 3)[3], calls=9, process_start=77)
        s.flush()
        dead = Segment(s, pid=child.pid, calls=9, **claims)
        s.flush()
        equal((s.rows("SELECT * FROM totals WHERE process_id = ?", honest_id), status(s, "detached")),
              (before[0], before[1] + 2), "after a name was used again")
        check(not again.there() and not dead.there(), "still there")
        equal(s.value("SELECT state FROM processes WHERE process_id = ?", honest_id), "exited", "the honest one's state")


# ---- segments that change while they are read ----

def mutate(s, segment, begin, rounds, started=None):
    return s.start(MUTATOR, segment, begin, rounds, *([started] if started else []), preload=False, stderr=subprocess.PIPE)


def test_mutations(s, honest):
    before = status(s, "detached")
    for i in range(60 if LONG else 8):
        first = SEED + i
        with promise("written-under-its-hands"), fifo(s.dir, f"begun{i}") as begun:
            victim = s.start(WORKLOADS / "calls", "--calls", 1 << 40, "--threads", 2, "--rate", 20000, "--burst", 100,
                             stdout=subprocess.PIPE)
            own = s.start("sleep", "1000", preload=False)
            made = Segment(s, pid=own.pid, calls=1000)
            segment, = s.flush_until("the victim's segment", lambda: glob.glob(
                f"/dev/shm/cudatrace.*.{s.name}.{victim.pid}.*"))
            wait_for("its first lane", lambda: os.path.getsize(segment) >= LANES_AT + LANE_HEADER)
            mutators = [mutate(s, segment, first, 300000, begun), mutate(s, made.path, first + 1, 300000)]
            with open(begun, "rb") as file:
                file.read(1)
            honest.run("--calls", 2000, "--threads", 2)
            s.flush()
            for mutator in mutators:
                mutator.wait()
            for process in (victim, own):
                process.kill()
                process.wait()
            s.flush()
            check_daemon(s)
            honest.check()
            s.cudatrace("sql", "--db", s.db, "SELECT * FROM totals")
            s.cudatrace("sql", "--db", s.db, "SELECT * FROM losses")
            equal(s.value("SELECT count(*) FROM calls WHERE duration_ns < 0 OR end_ns <= 0 OR start_ns < 0"), 0, "negative times")
            equal(s.value("SELECT count(*) FROM processes WHERE pid IN (?, ?) AND state = 'running'", victim.pid, own.pid), 0,
                  "dead processes that run")
            for name in glob.glob(f"/dev/shm/cudatrace.*.{s.name}.{own.pid}.*") + glob.glob(
                    f"/dev/shm/cudatrace.*.{s.name}.{victim.pid}.*"):
                os.unlink(name)
    detached = status(s, "detached") - before
    print("detached by mutations:", detached)
    check(detached > 0, "no mutation was noticed")
    # The log contains at most fifty messages of this kind per minute. It also contains the number of suppressed messages.
    check(min(status(s, "detached"), 50) <= s.log().count("stopped tracing process") <= status(s, "detached"), "detached and not named")


def test_control_segment():
    """Writes garbage into the session's control segment, which all hooks can write to. No program is running at that time, because it, too,
    would have mapped the control segment."""
    with Session() as s:
        s.start_daemon()
        control = f"/dev/shm/cudatrace.{os.geteuid()}.{s.name}"
        honest = Honest(s)
        honest.run("--calls", 500)
        s.flush()
        with promise("control-segment"), open(control, "r+b") as file:
            size = os.fstat(file.fileno()).st_size
            shared = mmap.mmap(file.fileno(), size)
            shared[size - 1024:] = b"a" * 1024  # patterns without a terminator
            shared[68:72] = struct.pack("<I", 99)  # segments that no hook made
            check("state ok" in s.cudatrace("status").stdout, "status")
            shared[128:160] = b"\xff" * 32  # the doorbell
            s.flush()
            check_daemon(s)
            honest.check()
            shared.close()
        with promise("control-segment"):
            os.truncate(control, 0)
            s.flush()
            check("state ok" in s.cudatrace("status").stdout, "status")
            check_daemon(s)
            honest.check()


with Session() as s:
    s.start_daemon()
    honest = Honest(s)
    honest.run("--calls", 300)
    test_refused(s)
    test_told(s)
    test_names(s)
    test_lease(s)
    test_let_go(s)
    test_lies_about_counts(s)
    test_names_of_the_living(s, honest)
    test_crowds(s)
    honest.run("--calls", 300, "--threads", 2)
    test_mutations(s, honest)
    s.flush()
    check_daemon(s)
    honest.check()
    s.check_identity(lost=None, killed=None)
test_control_segment()
test_descriptors()
