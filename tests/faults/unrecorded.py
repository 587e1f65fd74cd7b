"""Tests that processes without a segment are listed with the reason, and with exactly as many calls as they have made."""
import collections
import contextlib
import os
import resource
import signal
import socket
import struct
import subprocess
import sys

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "..", "e2e"))
from fault_test import CUDATRACE, DEADLINE_S, DRIVER_PATH, WORKLOADS, Session, can, check, equal, mount_namespace, promise, wait_for
from replay_test import check_same, replay, tables

CALLS = WORKLOADS / "calls"
# The driver cannot write its counts, because the program would exceed the limit.
UNCOUNTED = ["env", "-u", "SIMCUDA_COUNTS", "sh", "-c"]
LIMITED = [*UNCOUNTED, 'ulimit -f 0; exec "$0" --calls 100 2>&1 | cat', CALLS]


def counted(s):
    """Returns the driver's counts of calls by PID."""
    sums = {}
    for (pid, _), calls in s.truth().items():
        sums[pid] = sums.get(pid, 0) + calls
    return sums


def listed(s, columns="pid, uid, cause, error, calls"):
    s.flush()
    return s.rows(f"SELECT {columns} FROM unrecorded ORDER BY first_ns")


def no_room():
    """Checks a process that may not create files, with and without `run`, and the replay of a recording."""
    with Session() as s, promise("unrecorded"):
        recording, again = s.dir / "recording", s.dir / "again.db"
        s.run(CALLS, "--calls", 100, preload=False)
        (calls,) = counted(s).values()
        s.start_daemon("--record", recording)
        s.run(*LIMITED)
        ((pid, *rest),) = listed(s)
        equal(rest, [os.geteuid(), "memory", "File too large", calls], f"process {pid}")
        equal(s.value("SELECT count(*) FROM processes"), 0, "recorded processes")
        check(str(CALLS) in s.value("SELECT cmdline FROM unrecorded"), "its command")
        equal(s.status()["unrecorded"], "1", "the status")
        check("  miss  unrecorded  1 processes made calls" in s.cudatrace("doctor", status=1).stdout, "the doctor's answer")
        s.stop_daemon()
        replay("--replay", recording, "--db", again)
        check_same(tables(again), tables(s.db), "the replay")
    with Session() as s, promise("unrecorded"):
        done = s.run(CUDATRACE, "run", "--db", s.db, "--", *LIMITED, preload=False, env={"LD_LIBRARY_PATH": DRIVER_PATH})
        check(f"run: 1 process with {calls} calls could not be recorded (memory); memory: shared memory was refused: enlarge" in done.stderr, done.stderr)


def room_again():
    """Checks a process that gets its segment later."""
    with Session() as s, promise("unrecorded"):
        s.start_daemon()
        program = s.start(*UNCOUNTED, 'ulimit -S -f 0; exec "$0" "$@"', WORKLOADS / "gpu_work", "--rounds", 1, "--end", "commands",
                          stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        program.stdout.readline()
        while not listed(s):
            pass
        resource.prlimit(program.pid, resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
        while not s.value("SELECT count(*) FROM processes"):
            program.stdin.write("call\n")
            program.stdin.flush()
            program.stdout.readline()
            s.flush()
        program.communicate(timeout=DEADLINE_S)
        s.flush()
        equal([(row[0], row[-1] > 0) for row in listed(s)], [(s.value("SELECT pid FROM processes"), True)], "the listed process")
        s.check_sums(lost=None)


def many():
    """Checks processes that begin while the daemon is stopped, and are more than the socket's queue takes."""
    with Session() as s, promise("unrecorded"):
        daemon = s.start_daemon()
        daemon.send_signal(signal.SIGSTOP)
        programs = [s.start(*UNCOUNTED, 'ulimit -f 0; exec "$0" "$@"', WORKLOADS / "gpu_work", "--rounds", 1, "--end", "commands",
                            stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) for _ in range(30)]
        for program in programs:
            program.stdout.readline()
        daemon.send_signal(signal.SIGCONT)
        s.flush()  # empties the queue
        for program in programs:
            program.communicate(timeout=DEADLINE_S)
            s.flush()
        rows = listed(s, "pid, calls")
        equal(sorted(pid for pid, _ in rows), sorted(program.pid for program in programs), "listed processes")
        equal(len({calls for _, calls in rows}), 1, f"numbers of calls of equal programs: {rows}")
        check(rows[0][1] > 10, "calls", rows[0])


def short_lived():
    """Checks many short-lived processes that end at once, before the daemon reads their reports."""
    count = 300
    with Session() as s, promise("unrecorded"):
        daemon = s.start_daemon()
        daemon.send_signal(signal.SIGSTOP)
        os.waitid(os.P_PID, daemon.pid, os.WSTOPPED | os.WNOWAIT)
        loop = f'ulimit -f 0; i=0; while [ $i -lt {count} ]; do "$0" --calls 3 >/dev/null & i=$((i+1)); done; wait'
        s.run(*UNCOUNTED, loop, CALLS)
        daemon.send_signal(signal.SIGCONT)
        rows = listed(s, "pid, calls")
        equal((len(rows), len({calls for _, calls in rows})), (count, 1), "listed processes, and numbers of calls")


def taken_name():
    """Checks that a process sends no report to a socket of another user."""
    from users import Users, BOB
    with Session() as s, promise("unrecorded"):
        u = Users(s)
        taken = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        taken.bind(f"\0/dev/shm/cudatrace.0.{s.name}.bell")
        os.seteuid(BOB)  # the kernel shows the user that listens
        taken.listen(10)
        os.seteuid(0)
        u.run(12001, u.calls, "--calls", 100, preload=True)
        taken.settimeout(DEADLINE_S)
        with taken, taken.accept()[0] as connection:
            equal(connection.recv(1000), b"", "the report that another user's socket received")


READ_ONLY = "mount --bind /dev/shm /dev/shm && mount -o remount,ro,bind /dev/shm"


def mounted(mount, *command):
    """Returns a command that runs `mount`, and then the given command, in a mount namespace."""
    return *mount_namespace(), "sh", "-c", mount + ' && exec "$0" "$@"', *command


def other_folders():
    """Checks processes that have another /dev/shm than the daemon, as in a container, or may not write to it."""
    with Session() as s, promise("unrecorded"):
        s.start_daemon()
        for mount, error in (("mount -t tmpfs none /dev/shm", "No such file or directory"), (READ_ONLY, "Read-only file system"),
                             (READ_ONLY + " && mount -t tmpfs none /dev/shm && ln -s . /dev/shm/cudatrace.$(id -u).$CUDATRACE_SESSION",
                              "Too many levels of symbolic links")):
            s.run(*mounted(mount, CALLS, "--calls", 100))
            pid, *rest = listed(s)[-1]
            equal(rest, [os.geteuid(), "folder", error, counted(s)[pid]], f"the process after {mount}")
        equal(s.value("SELECT count(*) FROM unrecorded"), len(counted(s)), "listed processes")
        s.run(*mounted(READ_ONLY.replace(",ro,", ",noexec,nosuid,nodev,"), CALLS, "--calls", 100))
        s.flush()
        equal(s.value("SELECT sum(calls) FROM totals"), sum(counted(s).values()) - s.value("SELECT sum(calls) FROM unrecorded"), "recorded calls")
    with Session() as s, promise("unrecorded"):
        done = s.run(CUDATRACE, "run", "--db", s.db, "--", *mounted(READ_ONLY, CALLS, "--calls", 100), preload=False)
        check(f"run: 1 process with {sum(counted(s).values())} calls could not be recorded (folder); folder: the process cannot use" in done.stderr,
              done.stderr)
    with Session() as s, promise("unrecorded"):
        place = s.dir / "place"
        shm = place / "shm"
        shm.mkdir(parents=True)
        done = s.run(CUDATRACE, "run", "--db", s.db, "--shm-dir", shm, "--",
                     *mounted(f"mount -t tmpfs none {place}", CALLS, "--calls", 100), preload=False)
        equal(s.rows("SELECT cause, error, calls FROM unrecorded"), [("folder", "No such file or directory", sum(counted(s).values()))],
              f"the process without a folder: {done.stderr}")


def read_only_later():
    """Checks a process whose /dev/shm becomes read-only, and its child, which cannot create a segment."""
    with Session() as s, promise("unrecorded"):
        s.start_daemon()
        s.run(*mount_namespace(), sys.executable, "-c", LATER, READ_ONLY, env={"SIMCUDA_COUNTS": "", "SIMCUDA_FORK": "works"})
        equal([row[1:] for row in listed(s)], [(os.geteuid(), "folder", "Read-only file system", 10)], "the child")
        equal(s.value("SELECT sum(stored) FROM totals"), 2, "the parent's calls")


def no_files():
    """Checks a process whose folder has no room for another file."""
    with Session() as s, promise("unrecorded"):
        shm = s.dir / "shm"
        shm.mkdir()
        fill = 'while touch "$0/$$.$((n += 1))"; do :; done; exec "$@"'
        done = s.run(*mounted(f"mount -t tmpfs -o nr_inodes=30 none {shm}", CUDATRACE, "run", "--db", s.db, "--shm-dir", shm, "--",
                              "sh", "-c", fill, shm, CALLS, "--calls", 100), preload=False)
        equal(s.rows("SELECT cause, error, calls FROM unrecorded"), [("memory", "No space left on device", sum(counted(s).values()))],
              f"the process: {done.stderr}")
        check("nr_inodes" in done.stderr, done.stderr)


def closed_folders(uid=12001):
    """Checks processes of a user who may not create or look up files in the folder, but has a daemon that uses it."""
    from users import Users
    for mode in 0o555, 0:
        with Session() as s, promise("unrecorded"):
            u = Users(s)
            shm, place = u.folder("shm", uid), u.folder("place", uid)
            s.db = place / "trace.db"
            s.daemon = u.start(uid, u.daemon, "--foreground", "--db", s.db, "--session", s.name, "--shm-dir", shm, preload=False)
            command = u.cudatrace, "flush", "--session", s.name, "--shm-dir", shm
            wait_for("a daemon that serves", lambda: u.run(uid, *command, status=None).returncode == 0)
            shm.chmod(mode)
            u.run(uid, u.calls, "--calls", 100, preload=True, env={"CUDATRACE_SHM_DIR": shm})
            shm.chmod(0o755)
            u.run(uid, *command)
            ((pid, *rest),) = s.rows("SELECT pid, uid, cause, error, calls FROM unrecorded")
            equal(rest, [uid, "folder", "Permission denied", counted(s)[pid]], f"the process with a folder of mode {mode:o}")


def attack(session):
    """Sends reports of no process, of root's process 1, many of one process, and of more processes than the daemon lists."""
    def report(image, cause=0, magic=b"CUDTUSR2"):
        return (magic + struct.pack("<IIQQiIII", cause, 2 ** 32 - 1, image, 2 ** 64 - 1, 1, 0, 2 ** 32 - 1, 0) +
                b"\x1b[1m\xff" * 51 + b"x")

    def connected():
        to = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        to.connect(f"\0/dev/shm/cudatrace.0.{session}.bell")
        return to

    def send(packet):
        with connected() as to, contextlib.suppress(BrokenPipeError):
            to.send(packet)

    idle = [connected() for _ in range(30)]  # they never send anything
    for packet in b"", b"x", report(0) + b"x", report(0)[:-1], report(0, 4), report(0, 5), report(0, 6), report(0, magic=b"x" * 8), *map(report, range(1000)):
        send(packet)
    for _ in range(70):
        child = os.fork()
        if child == 0:
            send(report(1))
            os._exit(0)
        os.waitpid(child, 0)
    del idle


def other_users(uid=12001):
    """Checks processes of other users, and that a user cannot add more than a few processes, or any of another user."""
    from users import Users, attempt
    with Session() as s, promise("unrecorded"):
        u = Users(s)
        s.start_daemon()
        u.run(uid, u.calls, "--calls", 100, preload=True)
        ((pid, *rest),) = listed(s)
        equal(rest, [uid, "user", "Permission denied", counted(s)[pid]], "the process")
        equal(attempt(uid, lambda: attack(s.name)), "None", "the attack")
        rows = listed(s, "uid, calls, cmdline")
        equal((len(rows), {row[0] for row in rows}), (64, {uid}), "listed processes and their users")
        check(all(calls <= 2 ** 48 for _, calls, _ in rows), rows[-1])
        check("\x1b" not in s.cudatrace("sql", "SELECT * FROM unrecorded").stdout, "an escape sequence is printed")
        check(f"of user {uid} cannot be recorded, and is not listed" in s.log(), s.log())
        equal(max(calls for _, calls, _ in rows), 2 ** 48, "the calls of the process with many reports")
        # 64 of each user until there are 256, then 8 of each. If the daemon is slow, an attack may fill less than its share.
        for n in range(1, 40):
            share = 64 if n < 4 else 8 if n < 28 else 0
            wait_for(f"the share of user {n}", lambda: (equal(attempt(uid + n, lambda: attack(s.name)), "None", "another attack"),
                                                        collections.Counter(row[0] for row in listed(s, "uid"))[uid + n] == share)[1])
        equal(s.value("SELECT count(*) FROM unrecorded"), 448, "listed processes")
        s.run(*LIMITED)
        equal([row[0] for row in listed(s, "uid")][-1], 0, "the user of a process after the attack")
    with Session() as s, promise("unrecorded"):
        u = Users(s)
        shm = u.folder("shm")  # only root can create files in it
        s.daemon = subprocess.Popen([s.daemon_program, "--foreground", "--db", s.db, "--session", s.name, "--system", "--shm-dir", shm])
        s.wait_until_served("--shm-dir", shm)
        u.run(uid, u.calls, "--calls", 100, preload=True, env={"CUDATRACE_SHM_DIR": str(shm)})
        s.cudatrace("flush", "--shm-dir", shm)
        ((pid, *rest),) = s.rows("SELECT pid, uid, cause, error, calls FROM unrecorded")
        equal(rest, [uid, "folder", "Permission denied", counted(s)[pid]], "the process")


def mapped(uid=12001):
    """Checks processes in user namespaces that do not map root, of which the system daemon's files seem to belong to nobody."""
    from users import Users
    with Session() as s, promise("unrecorded"):
        u = Users(s)
        s.daemon = subprocess.Popen([s.daemon_program, "--foreground", "--db", s.db, "--session", s.name, "--system"])
        s.wait_until_served()
        for options in ["-r"], ["--map-user=1234"], ["-c"]:
            if u.run(uid, "unshare", "-U", *options, "true", status=None).returncode:
                print("not tried: a user namespace with", options)
                continue
            done = u.run(uid, "unshare", "-U", *options, "sh", "-c", 'LD_PRELOAD=$HOOK exec "$0" "$@"', u.calls, "--calls", 100, env={"HOOK": u.hook})
            equal(done.stderr, "", "errors")
            equal(listed(s)[-1][1:], (uid, "user", "Permission denied", list(counted(s).values())[-1]), f"a process with {options}")
        own = "mount -t tmpfs none /dev/shm"
        if u.run(uid, "unshare", "-rm", "sh", "-c", own, status=None).returncode:
            print("not tried: a mount namespace of an ordinary user")
        else:
            u.run(uid, "unshare", "-rm", "sh", "-c", own + '; LD_PRELOAD=$HOOK exec "$0" "$@"', u.calls, "--calls", 100, env={"HOOK": u.hook})
            equal(listed(s)[-1][1:], (uid, "folder", "No such file or directory", list(counted(s).values())[-1]), "a process with its own /dev/shm")
        equal(s.value("SELECT count(*) FROM unrecorded"), len(counted(s)), "listed processes")
        equal(s.value("SELECT count(*) FROM processes"), 0, "recorded processes")


# Makes ten calls with no more address space than it has already.
FULL = """
import ctypes, resource
driver, number = ctypes.CDLL("libcuda.so.1"), ctypes.c_int()
get, to = driver.cuDriverGetVersion, ctypes.byref(number)
size = [int(line.split()[1]) * 1024 for line in open("/proc/self/status") if line.startswith("VmSize")][0]
resource.setrlimit(resource.RLIMIT_AS, (size, resource.RLIM_INFINITY))
for _ in range(10):
    get(to)
resource.setrlimit(resource.RLIMIT_AS, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
"""
# Its child, of which the user namespace maps no user, makes ten calls.
UNMAPPED = """
import ctypes, os
driver, c, number, NEWUSER = ctypes.CDLL("libcuda.so.1"), ctypes.CDLL(None), ctypes.c_int(), 0x10000000
driver.cuDriverGetVersion(ctypes.byref(number))
if c.unshare(NEWUSER) != 0:
    print("no user namespaces")
elif os.fork() == 0:
    for _ in range(10):
        driver.cuDriverGetVersion(ctypes.byref(number))
else:
    os.wait()
"""

# Its child makes ten calls after the command has made the folder read-only.
LATER = """
import ctypes, os, subprocess, sys
driver, number = ctypes.CDLL("libcuda.so.1"), ctypes.c_int()
driver.cuDriverGetVersion(ctypes.byref(number))
subprocess.run(sys.argv[1], shell=True, check=True)
if os.fork() == 0:
    for _ in range(10):
        driver.cuDriverGetVersion(ctypes.byref(number))
else:
    os.wait()
    driver.cuDriverGetVersion(ctypes.byref(number))
"""


def full():
    """Checks a process that has no address space left for the daemon's control segment."""
    with Session() as s, promise("unrecorded"):
        s.start_daemon()
        s.run(sys.executable, "-c", FULL, env={"SIMCUDA_COUNTS": ""})
        equal([row[1:] for row in listed(s)], [(os.geteuid(), "memory", "Cannot allocate memory", 10)], "the process")


def unmapped():
    """Checks a process in a user namespace that does not map its user. It trusts no file, because every file seems to be its own."""
    with Session() as s, promise("unrecorded"):
        s.start_daemon()
        done = s.run(sys.executable, "-c", UNMAPPED, env={"SIMCUDA_COUNTS": "", "SIMCUDA_FORK": "works"})
        if done.stdout:
            print("not tried: a process without a user:", done.stdout)
            return
        equal([row[1:] for row in listed(s)], [(os.geteuid(), "user", "Permission denied", 10)], "the child")
        equal(s.value("SELECT sum(stored) FROM totals"), 1, "the parent's calls")


no_room()
room_again()
many()
short_lived()
full()
unmapped()
if can("mount namespaces", "processes with another /dev/shm"):
    other_folders()
    read_only_later()
    no_files()
if can("several users", "processes of other users") and can("everyone's /dev/shm", "processes of other users"):
    other_users()
    taken_name()
    mapped()
    closed_folders()
