"""Tests a single daemon that serves all users. Each user's calls must be recorded under the user ID that the kernel reports. No user may be
able to read or modify another user's data, or to stop or delay another user's processes."""
import contextlib
import fcntl
import glob
import os
import pathlib
import signal
import socket
import struct
import subprocess
import sys
import time

from daemon_test import Deadly
from fault_test import DEADLINE_S, Session, WORKLOADS, at_point, by_tier, can, check, equal, fifo, promise, wait_for
from users import ALICE, BOB, DENIED, Users, attempt, become, intrusions

GROUP, MEMBER = 12003, 12004
LANE_OFFSET = 4096 + 2048 * 128
JUNK = by_tier(500, 2000, 20000)


def shm(s, uid, rest=""):
    return f"/dev/shm/cudatrace.{uid}.{s.name}{rest}"


def segment_of(s, uid, pid):
    return glob.glob(shm(s, uid, f".system.{pid}.*"))[0]


def ask(s, line, connections=1):
    """Sends a line to the system daemon's socket from each of `connections` clients at the same time, and returns the answers."""
    clients = []
    for _ in range(connections):
        clients.append(socket.socket(socket.AF_UNIX))
        clients[-1].connect(shm(s, 0, ".sock"))
        with contextlib.suppress(BrokenPipeError):
            clients[-1].sendall(line + b"\n")
    answers = []
    for client in clients:
        try:
            answers.append(client.recv(4096))
        except ConnectionError:
            answers.append(b"")
    return answers


def forge(s, source, path, **fields):
    """Copies the attacker's own segment, and writes the identity of another process into the copy."""
    places = {"pid": ("<i", 48), "uid": ("<I", 52), "start": ("<Q", 56), "image": ("<Q", 64), "clock": ("<I", 72), "held": ("<I", 76),
              "maker": ("<I", 1420), "complete": ("<Q", 1464)}
    with open(source, "rb") as file:
        data = bytearray(file.read(LANE_OFFSET + 65536 + 4096))
    for name, value in fields.items():
        struct.pack_into(places[name][0], data, places[name][1], value)
    with open(path, "xb") as file:
        file.write(data)


def identity(path):
    with open(path, "rb") as file:
        data = file.read(72)
    return {"pid": struct.unpack_from("<i", data, 48)[0], "start": struct.unpack_from("<Q", data, 56)[0],
            "image": struct.unpack_from("<Q", data, 64)[0]}


def set_state(path, change):
    with open(path, "r+b") as file:
        file.seek(LANE_OFFSET)
        state = struct.unpack("<Q", file.read(8))[0]
        file.seek(LANE_OFFSET)
        file.write(struct.pack("<Q", change(state)))


def check_calls_of(s, uid, pid):
    """Checks that all calls of the process are recorded under the user ID `uid`."""
    equal(s.rows("SELECT uid FROM processes WHERE pid = ?", pid), [(uid,)], f"the user of process {pid}")
    seen, truth = ({name: calls for (of, name), calls in table.items() if of == pid} for table in (s.totals(), s.truth()))
    check(truth, "no call was made")
    equal(seen, truth, f"calls of process {pid}")


def everybody_is_recorded(u):
    s = u.s
    u.run(ALICE, u.cudatrace, "run", "--session", s.name, "--", u.calls, "--calls", 2000, "--threads", 2)
    u.run(BOB, u.calls, "--calls", 1000, "--processes", 3, preload=True)
    u.run(0, u.calls, "--calls", 700, preload=True)
    u.run(BOB, u.cudatrace, "flush", "--session", s.name)
    with promise("all_users"):
        s.check_identity(lost=0)
        s.check_truth()
        made = dict(s.rows("SELECT uid, count(*) FROM processes WHERE process_id IN (SELECT process_id FROM totals WHERE "
                           "name = 'cuInit') GROUP BY uid"))
        check(made.keys() == {0, ALICE, BOB} and made[BOB] >= 3, "processes of users:", made)
        equal(glob.glob(shm(s, "*", ".system.*")), [], "segments that are left")


def a_long_name_of_the_folder(u):
    """Uses a link to the folder as the daemon's folder for shared memory. The path is so long that the name of the daemon's bell does not
    fit. Hooks cannot ring the bell then, but `flush` still works, because it sends a request."""
    s = u.s
    link = s.dir / ("d" * (139 - len(str(s.dir))))
    link.symlink_to("/dev/shm")
    equal(len(str(link)), 140, "the length of the name")
    with promise("all_users"):
        child = u.start(ALICE, u.calls, "--calls", 5000, "--threads", 2, env={"CUDATRACE_SHM_DIR": link}, stdout=subprocess.DEVNULL)
        equal(child.wait(DEADLINE_S), 0, "its status")
        u.run(ALICE, u.cudatrace, "flush", "--session", s.name)
        check_calls_of(s, ALICE, child.pid)
        s.check_identity(lost=0)


def attacks(u, mine, hers, dead):
    """Yields (name of an attack, Bob's action). `mine` is a segment of Bob's live process, and `hers` of Alice's. `dead` identifies a
    process of Alice's that has exited."""
    s = u.s
    victim, own = identity(hers), identity(mine)
    probe = {"maker": 1, "clock": 0, "held": 0, "complete": time.clock_gettime_ns(time.CLOCK_MONOTONIC)}
    root_file = u.s.dir / "daemon.log"

    def flood_bell():
        bell = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        sent = 0
        for _ in range(20000):
            try:
                bell.sendto(b"x" * 100, socket.MSG_DONTWAIT, shm(s, 0, ".bell"))
                sent += 1
            except BlockingIOError:
                pass
        return sent > 0

    def junk():
        for i in range(JUNK):
            with open(shm(s, BOB, f".system.{i + 1}.abc"), "xb") as file:
                if i % 2:
                    file.truncate(LANE_OFFSET + 70000)
                    file.write(b"\x01" * 4096 if i % 4 == 1 else b"")

    def link(target, number):
        os.symlink(target, shm(s, BOB, f".system.{number}.def"))

    yield "name of another user", lambda: forge(s, mine, shm(s, ALICE, f".system.{victim['pid']}.1"), uid=ALICE)
    yield "pid of another user", lambda: forge(s, mine, shm(s, BOB, f".system.{victim['pid']}.2"), **victim)
    yield "pid of root", lambda: forge(s, mine, shm(s, BOB, ".system.1.3"), pid=1, start=0)
    yield "one who has died", lambda: forge(s, mine, shm(s, BOB, f".system.{dead['pid']}.4"), **dead)
    yield "a probe of her process", lambda: forge(s, mine, shm(s, BOB, f".system.{victim['pid']}.9"), **dict(victim, **probe))
    yield "a probe that stands still", lambda: forge(s, mine, shm(s, BOB, f".system.{own['pid']}.a"),
                                                     **dict(own, **probe, image=own["image"] + 1))
    yield "link to her segment", lambda: link(hers, 5)
    yield "link to a file of root's", lambda: link(root_file, 6)
    yield "FIFO", lambda: os.mkfifo(shm(s, BOB, ".system.7.def"))
    yield "folder", lambda: os.mkdir(shm(s, BOB, ".system.8.def"))
    yield "junk", junk
    yield "bell without end", flood_bell
    yield "connections without end", lambda: len(ask(s, b"flush", 300))
    yield "lines without end", lambda: len(ask(s, b"x" * 9000, 3))
    yield "announces for ever", lambda: set_state(mine, lambda state: state | 1)
    yield "positions out of its ring", lambda: set_state(mine, lambda state: 1 << 60)
    yield "cut short", lambda: os.truncate(mine, 5000)


def nobody_else_suffers(u):
    s = u.s
    # Run a process of Alice's that exits and is then in the trace.
    with u.held(ALICE, "--calls", 100) as child:
        dead = identity(segment_of(s, ALICE, child.pid))
    u.run(ALICE, u.cudatrace, "flush", "--session", s.name)
    gone = s.rows("SELECT * FROM processes WHERE pid = ?", dead["pid"])
    for index in range(100):
        with u.held(ALICE, "--calls", 300) as hers, u.held(BOB, "--calls", 300) as his:
            mine, theirs = segment_of(s, BOB, his.pid), segment_of(s, ALICE, hers.pid)
            table = list(attacks(u, mine, theirs, dead))
            if index == len(table):
                break
            name, act = table[index]
            before = int(s.status()["batches"])
            with promise("attacks"):
                seen = attempt(BOB, act)
                equal(seen, {"bell without end": "True", "connections without end": "300", "lines without end": "3"}.get(name, "None"),
                      f"what Bob had of: {name}")
                u.run(ALICE, u.calls, "--calls", 1000, "--threads", 2, preload=True)
                u.run(ALICE, u.cudatrace, "flush", "--session", s.name)
                after = int(s.status()["batches"])
                check(after - before < 2000, name, "made", after - before, "batches")
                equal(s.daemon.poll(), None, f"the daemon after: {name}")
                equal(s.rows("SELECT uid, state FROM processes WHERE pid = ?", hers.pid), [(ALICE, "running")],
                      f"her process after: {name}")
                equal(s.rows("SELECT * FROM processes WHERE pid = ? AND uid = ?", dead["pid"], ALICE), gone,
                      f"her dead process after: {name}")
                check(os.path.exists(theirs), "her segment after:", name)
        for path in glob.glob(shm(s, "*", ".system.*")):
            subprocess.run(["rm", "-rf", path], check=True)
    s.flush()
    with promise("attacks"):
        seen, truth = {}, s.truth()
        for pid, name, calls in s.rows("SELECT pid, totals.name, calls FROM totals JOIN processes USING (process_id) "
                                       "WHERE layer = 'driver' AND uid <> ?", BOB):
            seen[pid, name] = seen.get((pid, name), 0) + calls
        users = dict(s.rows("SELECT pid, uid FROM processes WHERE uid <> ?", BOB))
        wrong = {key: (seen.get(key), calls) for key, calls in truth.items() if key[0] in users and seen.get(key) != calls}
        equal(wrong, {}, "calls of users other than Bob that differ")
        check(sum(calls for (pid, _), calls in truth.items() if pid in users) > 20000, "there were such calls")
        equal(s.value("SELECT ifnull(sum(lost), 0) FROM totals JOIN processes USING (process_id) WHERE uid = ?", ALICE), 0, "lost")
        s.check_identity(lost=None)
        reasons = s.rows("SELECT error FROM unrecorded WHERE uid = ? AND cause = 'refused'", BOB)
        check(("it names a process of another user",) in reasons, "reasons:", reasons)
        equal(s.value("SELECT count(*) FROM unrecorded WHERE uid <> ?", BOB), 0, "refused segments of others")
    log = s.log()
    check(log.count(f"user {BOB}") < 60 and "is not read" in log, "the log has", log.count(f"user {BOB}"), "lines about him")


def nothing_is_given_away(u):
    s = u.s
    with u.held(ALICE, "--calls", 100) as child:
        segment = segment_of(s, ALICE, child.pid)
        equal(os.lstat(segment).st_mode & 0o7777, 0o600, "her segment's mode")
        for path in (segment, s.db, f"{s.db}-wal", f"{s.db}-shm"):
            for what, act in intrusions(path).items():
                with promise("nothing_given"):
                    check(attempt(BOB, act) in DENIED, "Bob:", what, path)
        sockets = {"read", "write", "truncate"}  # a socket cannot be opened by its name
        for path, may in ((shm(s, 0), {"read"}), (shm(s, 0, ".sock"), sockets), (shm(s, 0, ".bell"), sockets)):
            for what, act in intrusions(path).items():
                with promise("nothing_given"):
                    check(what in may or attempt(BOB, act) in DENIED, "Bob:", what, path)
        with promise("nothing_given"):
            equal(attempt(BOB, lambda: os.kill(s.daemon.pid, signal.SIGTERM)), "EPERM", "Bob kills the daemon")
        for line in (b"stop", b"set layers=driver", b"gpu on", b"database"):
            with promise("nothing_given"):
                check("only from root" in attempt(BOB, lambda: ask(s, line)), line)
        with promise("nothing_given"):
            equal(attempt(BOB, lambda: ask(s, b"hold")), str([b"ok \n"]), "where the trace lies")
            check("whose trace only root" in u.run(BOB, u.cudatrace, "sql", "--session", s.name, "SELECT 1", status=1).stderr)
            if can("terminals", "what run says on a terminal"):
                check("into the trace of the system daemon" in on_terminal(u, BOB), "where Bob's calls went")
                check(f"into {s.db}" in on_terminal(u, 0), "where root's calls went")
        with promise("nothing_given"), socket.socket(socket.AF_UNIX) as client:
            os.seteuid(BOB)
            client.connect(shm(s, 0, ".sock"))
            os.seteuid(0)
            client.sendall(b"hold\n")
            equal(client.recv(100), b"ok \n", "the answer to Bob's hold")
            before = s.value("SELECT count(*) FROM runs")
            for _ in range(2):
                u.run(0, u.cudatrace, "run", "--session", s.name, "--", u.calls, "--calls", 5)
            equal(s.value("SELECT count(*) FROM runs") - before, 2, "runs of root's while Bob holds the daemon")
        with promise("nothing_given"):
            status = u.run(BOB, u.cudatrace, "status", "--session", s.name).stdout
            equal(sorted(line.split()[0] for line in status.splitlines() if line), ["daemon", "serves", "session", "state"], status)
        with promise("nothing_given"):
            doctor = u.run(BOB, u.cudatrace, "doctor", "--session", s.name, status=None).stdout
            check("the system daemon, serves it for all users" in " ".join(doctor.split()), doctor)
        for command, says in ((["stop"], "only from root"), (["set", "--sample", "2"], "only from root"),
                              (["set", "--gpu", "on"], "only from root"), (["flush", "--db", s.db], "omit --db")):
            with promise("nothing_given"):
                done = u.run(BOB, u.cudatrace, command[0], "--session", s.name, *command[1:], status=1)
                check(says in done.stderr, command, done.stderr)
        equal(s.daemon.poll(), None, "the daemon")
    # Other kinds of misuse.
    check("--system requires root" in u.run(BOB, u.daemon, "--system", "--session", s.name + "b", status=1).stderr, "--system by a user")
    u.run(0, u.daemon, "--system", "--auto", "--session", s.name + "b", status=2)
    u.run(0, u.daemon, "--group", "no-such-group", "--session", s.name + "b", status=2)


def on_terminal(u, uid):
    """Returns the message about the trace that `cudatrace run` prints on a terminal."""
    ours, theirs = os.openpty()
    subprocess.run([u.cudatrace, "run", "--session", u.s.name, "--", u.calls, "--calls", "5"], stdout=subprocess.DEVNULL,
                   stderr=theirs, env=u.env(preload=False), check=True, timeout=100, **u.options(uid, 0o022))
    os.close(theirs)
    said = os.read(ours, 4096).decode()
    os.close(ours)
    return said


def own_daemons_come_first(u):
    s, home = u.s, u.folder("alice", ALICE, 0o700)
    own = home / "own.db"
    with promise("own_first"):
        with u.held(ALICE, "--calls", 100) as child:  # the system's daemon records it, and continues to do so
            u.run(ALICE, u.daemon, "--db", own, "--session", s.name)
            u.run(ALICE, u.calls, "--calls", 321, preload=True)
            u.run(ALICE, u.cudatrace, "flush", "--session", s.name)
            s.cudatrace("flush")
            equal(s.rows("SELECT pid FROM processes WHERE cmdline LIKE '%--calls 321'"), [], "in the system's trace")
            equal(s.value("SELECT count(*) FROM processes WHERE cmdline LIKE '%--calls 321'", db=own), 1, "in her own")
            equal(s.rows("SELECT pid FROM processes WHERE pid = ?", child.pid, db=own), [], "of the system's processes")
            equal(s.value("SELECT uid FROM processes WHERE pid = ?", child.pid), ALICE, "the one from before")
        u.run(ALICE, u.cudatrace, "stop", "--session", s.name)
        equal(s.daemon.poll(), None, "the system's daemon")
        # If a user gives `run` the path of a database, a separate daemon is started for this user.
        u.run(ALICE, u.cudatrace, "run", "--session", s.name, "--db", home / "run.db", "--", u.calls, "--calls", 333)
        equal(s.value("SELECT count(*) FROM processes WHERE cmdline LIKE '%--calls 333'", db=home / "run.db"), 1, "in her run's")
        equal(s.rows("SELECT pid FROM processes WHERE cmdline LIKE '%--calls 333'"), [], "in the system's trace")
        u.run(ALICE, u.calls, "--calls", 322, preload=True)
        u.run(ALICE, u.cudatrace, "flush", "--session", s.name)
        equal(s.value("SELECT count(*) FROM processes WHERE cmdline LIKE '%--calls 322'"), 1, "in the system's again")


@contextlib.contextmanager
def locked_by(uid, path):
    """Runs a process of user `uid` that holds a shared lock on the file. Every user who can read a file can take such a lock."""
    ready, done = os.pipe(), os.pipe()
    child = os.fork()
    if child == 0:
        os.close(done[1])
        become(uid)
        with open(path, "rb") as file:
            fcntl.lockf(file, fcntl.LOCK_SH)
            os.write(ready[1], b"l")
            os.read(done[0], 1)
        os._exit(0)
    os.close(ready[1])
    equal(os.read(ready[0], 1), b"l", "locked")
    try:
        yield
    finally:
        os.close(done[1])
        os.waitpid(child, 0)
        for fd in (ready[0], done[0]):
            os.close(fd)


def killed_and_locked_out(u):
    """Checks that after the daemon was killed, the next daemon continues where the killed daemon stopped, even if a user has locked the
    files that users can read."""
    s = u.s
    with promise("all_users"), u.held(ALICE, "--calls", 200) as child:
        s.daemon.kill()
        s.daemon.wait()
        with locked_by(BOB, shm(s, 0)):
            u.run(ALICE, u.calls, "--calls", 100, preload=True)  # the hook does not mistake the lock's holder for a daemon
            equal(glob.glob(shm(s, ALICE, ".system.*")), [segment_of(s, ALICE, child.pid)], "her segments")
            s.start_daemon("--system", env=dict(os.environ, **at_point("control_lock.waiting")))  # would be killed if it waited for him
            u.run(BOB, u.cudatrace, "flush", "--session", s.name)
            equal(s.value("SELECT uid FROM processes WHERE pid = ? AND state = 'running'", child.pid), ALICE, "hers, after a restart")


def each_has_a_share(u):
    """Checks a flush while more calls are waiting than fit into one batch. A user's flush must store this user's calls, and the other calls
    are stored in the next batch. Root's flush must store all of them."""
    s = u.s
    for by_root in (False, True):
        s.daemon.send_signal(signal.SIGSTOP)
        ran = [(uid, u.start(uid, u.calls, "--threads", 4, "--calls", 60000, "--mix", "getctx", stdout=subprocess.DEVNULL))
               for uid in (ALICE, BOB)]
        equal([child.wait(DEADLINE_S) for _, child in ran], [0, 0], "their statuses")
        s.daemon.send_signal(signal.SIGCONT)
        with promise("shares"):
            for uid, child in ran:
                u.run(0 if by_root else uid, u.cudatrace, "flush", "--session", s.name)
                for other, its in ran if by_root else [(uid, child)]:
                    check_calls_of(s, other, its.pid)
        s.check_identity(lost=None)
        late = int(s.status()["late"].split()[0])
        check(late > 0, "no call was left for a second batch")


DROP = """
import ctypes, os, sys
cuda = ctypes.CDLL("libcuda.so.1")
version = ctypes.c_int()
def call(times):
    for _ in range(times):
        assert cuda.cuDriverGetVersion(ctypes.byref(version)) == 0
assert cuda.cuInit(0) == 0
call(100)
os.setgroups([]); os.setgid({uid}); os.setuid({uid})
call({calls})
child = os.fork()
if child == 0:
    call(50)
    os._exit(0)
sys.exit(os.waitpid(child, 0)[1])
"""


def who_drops_his_rights(u):
    """Checks a process that drops its privileges. It keeps its segment, but the segment can no longer grow, and calls that do not fit must
    be counted. The process's children must create their own segments."""
    s = u.s
    with promise("rights_dropped"):
        u.run(0, sys.executable, "-c", DROP.format(uid=ALICE, calls=20000), preload=True)
        u.run(ALICE, u.cudatrace, "flush", "--session", s.name)
        rows = s.rows("SELECT uid, sum(calls), sum(stored), sum(lost + skipped) FROM totals JOIN processes USING (process_id) WHERE "
                      "name = 'cuDriverGetVersion' AND cmdline LIKE '%setgroups%' GROUP BY process_id ORDER BY process_id")
        equal([(uid, calls) for uid, calls, _, _ in rows], [(0, 20100), (ALICE, 50)], "who made how many calls")
        check(rows[0][2] + rows[0][3] == 20100 and rows[0][2] >= 100, "stored, and counted for want of room:", rows[0])
        s.check_identity(lost=None)


@contextlib.contextmanager
def locked_by_member(path, lock):
    """Calls lock(file) in a process of a member of the group, which exits at the end of the block. Yields the process as messages name it."""
    locked, end = os.pipe(), os.pipe()
    child = os.fork()
    if child == 0:
        try:
            os.close(end[1])
            os.setgroups([GROUP]), os.setgid(MEMBER), os.setuid(MEMBER)
            with open(path, "rb") as file:
                lock(file)
                os.write(locked[1], b"+")
                os.read(end[0], 1)
        finally:
            os._exit(0)
    os.close(locked[1])
    equal(os.read(locked[0], 1), b"+", f"the lock on {path}")
    try:
        yield f"process {child} ({pathlib.Path(f'/proc/{child}/comm').read_text().strip()}) of user {MEMBER}"
    finally:
        for descriptor in (locked[0], *end):
            os.close(descriptor)
        os.waitpid(child, 0)


def a_group_may_lock(u, db):
    """Checks that the daemon names a member of the group that keeps the trace locked, both while the daemon runs and when it starts."""
    s = u.s
    log_write_byte = 120
    with promise("group_locks"), locked_by_member(f"{db}-shm", lambda file: fcntl.lockf(file, fcntl.LOCK_SH, 1, log_write_byte)) as who:
        u.run(ALICE, u.calls, "--calls", 100, preload=True)
        wait_for("a message", lambda: f"it is locked by {who}; end that process" in s.status()["state"])
    wait_for("the end of the lock", lambda: s.status()["state"] == "ok")
    s.cudatrace("flush")
    s.check_identity()
    s.stop_daemon()
    with promise("group_locks"), locked_by_member(db, lambda file: fcntl.flock(file, fcntl.LOCK_SH)) as who:
        done = u.run(0, u.daemon, "--system", "--group", str(GROUP), "--db", db, "--session", s.name, status=1)
        check(f"'{db}' is locked by {who}: end that process" in done.stderr, done.stderr)


def a_group_may_read(u):
    s, folder = u.s, u.folder("group", 0, 0o755)
    db = folder / "trace.db"
    s.db = db
    s.start_daemon("--system", "--group", str(GROUP))
    query = "SELECT count(*), count(DISTINCT uid) FROM calls JOIN processes USING (process_id)"
    with u.held(ALICE, "--calls", 500), u.held(BOB, "--calls", 500):
        u.run(ALICE, u.cudatrace, "flush", "--session", s.name)
        wanted = s.rows(query)[0]
        for end in ("", "-wal", "-shm"):
            status = os.stat(f"{db}{end}")
            equal((oct(status.st_mode & 0o7777), status.st_uid, status.st_gid), ("0o640", 0, GROUP), f"trace.db{end}")

        def read(groups, *command):
            return subprocess.run([str(word) for word in command], capture_output=True, text=True, user=MEMBER, group=MEMBER,
                                  extra_groups=groups, env=u.env(preload=False), cwd="/", timeout=100)

        readers = [(u.cudatrace, "sql", "--format", "csv", "--db", db, query),
                   (u.cudatrace, "sql", "--format", "csv", "--session", s.name, query), ("sqlite3", "-readonly", "-separator", ",", db, query)]
        for command in readers:
            with promise("group_reads"):
                done = read([GROUP], *command)
                check(done.returncode == 0 and done.stdout.splitlines()[-1] == f"{wanted[0]},{wanted[1]}", command, done.stdout,
                      done.stderr)
                check(read([], *command).returncode != 0, "one who is not in the group:", command)
        u.run(ALICE, u.calls, "--calls", 400, preload=True)
        u.run(ALICE, u.cudatrace, "flush", "--session", s.name)
        with promise("group_reads"):
            done = read([GROUP], *readers[0])
            check(int(done.stdout.split("\n")[1].split(",")[0]) >= wanted[0] + 400, "while it is written:", done.stdout, wanted)
            for statement in ("DELETE FROM meta", "PRAGMA wal_checkpoint(TRUNCATE)", "VACUUM"):
                read([GROUP], "sqlite3", db, statement)
            check(attempt(MEMBER, lambda: os.truncate(db, 0)) in DENIED, "a member writes")
    s.cudatrace("flush")
    s.check_identity()
    a_group_may_lock(u, db)
    with promise("group_reads"):
        check(read([GROUP], *readers[0]).returncode == 0, "after the daemon")


def reuse(uid, pid):
    """Starts a process of user `uid`, which gets the pid."""
    with open("/proc/sys/kernel/ns_last_pid", "w") as last:
        last.write(str(pid - 1))
    child = os.fork()
    if child == 0:
        become(uid)
        while True:
            signal.pause()
    return child


def start_of(pid):
    with open(f"/proc/{pid}/stat") as file:
        return int(file.read().rpartition(")")[2].split()[19])


@contextlib.contextmanager
def taken_by(uid, pid, start):
    """Gives a pid that has become free to a process of user `uid`, which starts in a later tick than `start`. Call it only in a pid namespace
    of its own."""
    child = reuse(uid, pid)
    while child == pid and start_of(pid) == start:
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
        child = reuse(uid, pid)
    try:
        equal(child, pid, "the pid of the next process")
        yield
    finally:
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)


def exits_while_examined(reused):
    """Checks a process that exits after the daemon has found it running, and before the daemon reads its user. Another user's process may
    have the pid by then."""
    with Deadly() as s, fifo(s.dir, "hold") as hold:
        u = Users(s)
        hold.chmod(0o644)
        s.start_armed("owner.checking", 1, "--system", action="stop")
        child = u.start(ALICE, u.calls, "--calls", 1000, "--hold", hold, stdout=subprocess.DEVNULL)
        s.is_stopped()
        start = identity(segment_of(s, ALICE, child.pid))["start"]
        hold.write_bytes(b"x")
        equal(child.wait(DEADLINE_S), 0, "its status")
        with promise("exits_while_examined"), taken_by(BOB, child.pid, start) if reused else contextlib.nullcontext():
            s.daemon.send_signal(signal.SIGCONT)
            u.run(ALICE, u.cudatrace, "flush", "--session", s.name)
            check_calls_of(s, ALICE, child.pid)
            equal(s.rows("SELECT pid, uid, state FROM processes"), [(child.pid, ALICE, "exited")], "processes")
            equal((s.status()["refused"], glob.glob(shm(s, "*", ".system.*"))), ("0", []), "refused and remaining segments")


def exits_while_its_clock_is_read():
    """Checks a process whose time namespace is a thousand seconds ahead. It exits after the daemon has opened its segment, and a process in
    the daemon's namespace has its pid by then."""
    with Deadly() as s:
        s.start_armed("segment.examining", 1, "--clock", "monotonic", action="stop")
        began_ns = time.monotonic_ns()
        ahead = ("unshare", "--time", "--monotonic", 1000, "--fork")
        equal(s.start(*ahead, WORKLOADS / "calls", "--calls", 1000, stdout=subprocess.DEVNULL).wait(DEADLINE_S), 0, "its status")
        s.is_stopped()
        gone = identity(glob.glob(shm(s, os.geteuid(), ".*.*"))[0])
        with promise("clock_of_the_gone"), taken_by(BOB, gone["pid"], gone["start"]):
            s.daemon.send_signal(signal.SIGCONT)
            s.flush()
            first_ns, last_ns = s.rows("SELECT min(start_ns), max(end_ns) FROM calls")[0]
            check(began_ns < first_ns < last_ns < time.monotonic_ns(), "times", began_ns, first_ns, last_ns)
            s.check_truth()


if sys.argv[1:] == ["reused"]:
    exits_while_examined(reused=True)
    if can("time namespaces", "the clock of a process that exits", promises=["clock_of_the_gone"]):
        exits_while_its_clock_is_read()
    sys.exit()
exits_while_examined(reused=False)
if can("choosing pids", "a pid that is reused while its process is examined"):
    subprocess.run(["unshare", "-p", "-f", "--mount-proc", sys.executable, __file__, "reused"], check=True)
with Session() as s:
    u = Users(s)
    s.start_daemon("--system")
    everybody_is_recorded(u)
    a_long_name_of_the_folder(u)
    nothing_is_given_away(u)
    own_daemons_come_first(u)
    who_drops_his_rights(u)
    nobody_else_suffers(u)
    each_has_a_share(u)
    killed_and_locked_out(u)
    s.stop_daemon()
    a_group_may_read(u)
