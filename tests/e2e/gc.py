"""Tests that `cudatrace gc` removes only the files of killed daemons and their programs. It must keep files of a session that a daemon
serves, files that a process may be using, files with records that are not yet stored, and files whose names merely resemble the names of a
session's files."""
import contextlib
import fcntl
import os
import pathlib
import re
import signal
import socket
import struct
import subprocess
import sys

from cudatrace_test import CUDATRACE, DAEMON, DEADLINE_S, NOBODY, Session, WORKLOADS, can, check, equal, fifo, first_thread_has_ended, wait_for

sys.path.append(str(pathlib.Path(__file__).resolve().parents[1] / "faults"))
from fault_test import promise  # noqa: E402: next to the table of promises

SHM = pathlib.Path("/dev/shm")
# Offsets of members in struct ct_segment (proto/segment.h).
VERSION, RING_BYTES, PID, PROCESS_START, HELD, PID_NAMESPACE = 8, 40, 48, 56, 76, 80
OLD = (0, 0)
GONE_PID = 2 ** 22 - 1  # above every pid_max


def names(s):
    """Returns the names of the session's files."""
    return sorted(path.name for path in SHM.glob(f"cudatrace.{os.geteuid()}.{s.name}*"))


def told(text):
    """Parses gc's output into {file name: (verdict, reason)}."""
    lines = re.findall(r"^(kept|removed|would remove) +(cudatrace\.\S+), [^:]+: (.*)$", text, re.M)
    equal(len(lines), text.count("\n") - 1, "lines in " + text)
    return {name: (word, why) for word, name, why in lines}


def gc(s, *options):
    """Runs gc, and returns {file name: (verdict, reason)}. Checks that `gc --dry-run` announces the same verdicts."""
    before = names(s)
    dry = told(s.cudatrace("gc", "--dry-run", *options).stdout)
    equal(names(s), before, "after --dry-run")
    done = s.cudatrace("gc", *options)
    did = told(done.stdout)
    equal({name: (word.replace("would remove", "removed"), why) for name, (word, why) in dry.items()}, did, "dry run and run")
    gone = {name for name, (word, _) in did.items() if word == "removed"}
    equal(set(before) - set(names(s)), gone, "what went")
    check(re.search(rf"^removed {len(gone)}, .*; kept {len(did) - len(gone)}, ", done.stdout, re.M), done.stdout)
    return did


def control(s):
    return f"cudatrace.{os.geteuid()}.{s.name}"


def segment(s, pid):
    found = [name for name in names(s) if name.startswith(f"{control(s)}.{pid}.")]
    equal(len(found), 1, f"segments of {pid} in {names(s)}")
    return found[0]


def says(did, name, word, text):
    check(name in did and did[name][0] == word and text in did[name][1], name, "should be", word, "for", text, "in", did)


def patch(name, offset, format, value):
    with open(SHM / name, "r+b") as file:
        file.seek(offset)
        file.write(struct.pack(format, value))


def kill_daemon(s):
    s.daemon.kill()
    s.daemon.wait()
    s.daemon = None


def program(s, hold, *options):
    """Starts a program that makes its calls and then waits until it is killed."""
    held = s.start(WORKLOADS / "calls", "--calls", 200, "--hold", hold, *options, stdout=subprocess.PIPE)
    check(b" ok\n" in held.stdout.readline(), "the program's calls")
    held.stdout.close()
    return held


def end(child):
    child.kill()
    child.wait()


with promise("gc-alive"), Session() as s, fifo(s.dir, "hold") as hold, fifo(s.dir, "hold2") as hold2:
    equal(gc(s), {}, "what there is to do at first")
    # While a daemon serves the session, gc removes no file, even with --force.
    s.start_daemon()
    held = program(s, hold)
    s.flush()
    for options in ((), ("--force",)):
        did = gc(s, *options)
        equal(len(did), 3, did)
        for name in names(s):
            says(did, name, "kept", f"daemon {s.daemon.pid} serves")
    s.flush()

    # Kill the daemon, but not the program. After that, the socket is the only useless file of the session.
    kill_daemon(s)
    for options in ((), ("--force",)):
        did = gc(s, *options)
        says(did, segment(s, held.pid), "kept", f"process {held.pid} runs")
        says(did, control(s), "kept", "the next daemon needs it")
        equal(control(s) + ".sock" in did, options == (), "the socket")
    s.start_daemon()  # continues with the files that were kept
    s.flush()
    equal(s.value("SELECT state FROM processes"), "running", "the program after a new daemon")
    # In another pid namespace, the segment's pid refers to a different process or to none.
    mine = os.stat("/proc/self/ns/pid").st_ino
    kill_daemon(s)
    name = segment(s, held.pid)
    inside = ["unshare", "--pid", "--fork", "--mount-proc"]
    if can("pid namespaces", "gc from another pid namespace"):
        from_inside = s.run(*inside, CUDATRACE, "gc", "--session", s.name, "--force", preload=False)
        says(told(from_inside.stdout), name, "kept", f"process {held.pid} of another pid namespace runs")
    # The program's lock on the segment proves that the program is running, no matter which process has its pid in this namespace. If the
    # program has taken no lock, gc must rely on the pid.
    pid, start = struct.unpack("i4xQ", (SHM / name).read_bytes()[PID:PID + 16])
    patch(name, PROCESS_START, "Q", start + 1)
    says(gc(s, "--force"), name, "kept", f"process {pid} runs")
    patch(name, PID, "i", GONE_PID)
    says(gc(s, "--force"), name, "kept", f"process {GONE_PID} runs")
    patch(name, PID, "i", pid)
    patch(name, PROCESS_START, "Q", start)
    end(held)
    patch(name, PID, "i", os.getpid())  # as if that pid had belonged to another process earlier
    patch(name, PROCESS_START, "Q", 0)
    says(told(s.cudatrace("gc", "--dry-run").stdout), name, "would remove", "no longer uses it")
    patch(name, HELD, "I", 0)
    says(gc(s, "--force"), name, "kept", f"process {os.getpid()} runs")
    patch(name, PID, "i", pid)
    patch(name, PROCESS_START, "Q", start)
    if mine != 0xEFFFFFFC:
        patch(name, PID_NAMESPACE, "Q", mine + 1)
        says(gc(s, "--force"), name, "kept", "of another pid namespace may still run")
        patch(name, HELD, "I", 1)
        says(told(s.cudatrace("gc", "--dry-run").stdout), name, "would remove", "of another pid namespace is gone")
        patch(name, PID_NAMESPACE, "Q", mine)
    patch(name, HELD, "I", 1)
    # A file that belongs to another version of cudatrace is left for that version's gc.
    version = struct.unpack("I", (SHM / name).read_bytes()[VERSION:VERSION + 4])[0]
    patch(name, VERSION, "I", version + 1)
    says(gc(s, "--force"), name, "kept", "belongs to another version")
    patch(name, VERSION, "I", version)
    # The program has exited, and all its records are stored, so gc removes its segment.
    did = gc(s)
    says(did, name, "removed", f"process {held.pid} is gone")
    says(did, control(s), "removed", "no daemon serves")
    equal(names(s), [], "what is left")

    # A segment with records that have not been stored is kept for the next daemon. With --force, gc removes it.
    for forced in (False, True):
        s.start_daemon()
        stored = s.value("SELECT count(*) FROM calls")
        s.daemon.send_signal(signal.SIGSTOP)
        held = program(s, hold2)
        end(held)
        kill_daemon(s)
        name = segment(s, held.pid)
        did = gc(s)
        says(did, name, "kept", "of records are not stored: cudatraced --session " + s.name)
        says(did, control(s), "kept", "the next daemon needs it")
        if forced:
            says(gc(s, "--force"), name, "removed", "of records were never stored")
            equal(names(s), [], "what is left")
        else:
            with promise("gc-unstored"):
                s.start_daemon()
                s.flush()
                check(s.value("SELECT count(*) FROM calls") >= stored + 200, "what was kept was not stored")
                s.stop_daemon()

    # Test incomplete and damaged files, and files that do not match their names.
    uid = os.geteuid()
    made = {}

    def make(suffix, word, text, content=b"", age=OLD):
        path = SHM / f"{control(s)}{suffix}"
        path.write_bytes(content)
        if age:
            os.utime(path, age)
        made[path.name] = (word, text)

    make(f".{GONE_PID}.1a", "removed", "never completed")
    make(f".{GONE_PID}.1b", "removed", "never completed", bytes(1 << 20))
    make(f".{GONE_PID}.1c", "kept", "is creating it", age=None)
    make(f".{os.getpid()}.1d", "kept", "is creating it")
    os.symlink("/etc/passwd", SHM / f"{control(s)}.7.1e")
    made[f"{control(s)}.7.1e"] = ("kept", "not the type of file")
    os.mkdir(SHM / f"{control(s)}.sock")
    made[f"{control(s)}.sock"] = ("kept", "not the type of file")
    did = gc(s)
    for name, (word, text) in made.items():
        says(did, name, word, text)
    equal(set(did), set(made), "what was judged")
    os.rmdir(SHM / f"{control(s)}.sock")
    for name in names(s):
        (SHM / name).unlink()

    # Test files that do not belong to the session, but have names that resemble the names of its files.
    strangers = [f"cudatrace.{uid}.{s.name}{rest}" for rest in
                 (".sock2", ".sock.1", ".12", ".12.", ".12.1g", ".12.1a.2", ".-1.1a", ".012.1a", "..sock", ".x.1a", ".99999999999.1a",
                  ".12.1A", "+", "\n.12.1a", " .sock")]
    strangers += [f"cudatrace.0{uid}.{s.name}.sock", f"cudatrace.{uid + 1}.{s.name}.sock", f"cudatrace.{uid}.{s.name}-",
                  f"xcudatrace.{uid}.{s.name}.sock", f"cudatrace.{uid}.{'x' * 49}{s.name}.sock"]
    for name in strangers:
        (SHM / name).write_bytes(b"")
        os.utime(SHM / name, OLD)
    try:
        equal(gc(s, "--force"), {}, "what is done to strangers")
        check(all((SHM / name).exists() for name in strangers), "a stranger went")
    finally:
        for name in strangers:
            (SHM / name).unlink(missing_ok=True)

    # Test a socket without a control segment.
    left = socket.socket(socket.AF_UNIX)
    left.bind(str(SHM / f"{control(s)}.sock"))
    left.close()
    says(gc(s), f"{control(s)}.sock", "removed", "no daemon serves")
    equal(names(s), [], "what is left")

    # Test a segment that its program damaged before exiting, so that no daemon can read it.
    s.start_daemon()
    held = program(s, hold)
    s.flush()
    kill_daemon(s)
    patch(segment(s, held.pid), RING_BYTES, "Q", 12345)
    says(gc(s), segment(s, held.pid), "kept", f"process {held.pid} runs")
    name = segment(s, held.pid)
    end(held)
    says(gc(s), name, "removed", "damaged")

# If the first thread of a process exits before the others, the process looks like a zombie, but lives on in its other threads. Test such a
# process with and without a lock.
with promise("gc-alive"), Session() as s, fifo(s.dir, "hold") as hold:
    s.start_daemon()
    held = program(s, hold, "--first-ends", 1)
    wait_for("the first thread's end", lambda: first_thread_has_ended(held.pid))
    s.flush()
    kill_daemon(s)
    says(gc(s), segment(s, held.pid), "kept", f"process {held.pid} runs")
    patch(segment(s, held.pid), HELD, "I", 0)
    s.start_daemon()
    s.flush()
    kill_daemon(s)
    says(gc(s), segment(s, held.pid), "kept", f"process {held.pid} runs")
    end(held)
    gc(s)
    equal(names(s), [], "what is left")

# The segments of the system-wide session belong to many users, and its control segment is kept as long as any of them exists.
if can("several users", "gc of the session of all users"):
    with Session() as s, fifo(s.dir, "hold") as hold:
        s.start_daemon("--system")
        held = program(s, hold)
        s.flush()
        kill_daemon(s)
        his = SHM / f"cudatrace.{NOBODY}.{s.name}.system.{GONE_PID}.1a"  # as the segment of any user
        his.write_bytes(b"")
        os.chown(his, NOBODY, NOBODY)
        os.utime(his, OLD)
        forged = SHM / f"cudatrace.{NOBODY}.{s.name}.system.{GONE_PID}.1b"
        forged.write_bytes(b"")
        os.chown(forged, NOBODY - 1, NOBODY)
        os.utime(forged, OLD)
        before = os.stat(SHM / control(s)).st_ino
        with promise("gc-alive"):
            done = told(s.cudatrace("gc").stdout)
            says(done, f"{control(s)}.bell", "removed", "no daemon serves")
            says(done, f"{control(s)}.sock", "removed", "no daemon serves")
            says(done, his.name, "removed", "never completed")
            says(done, forged.name, "kept", "not owned by this user")
            says(done, segment(s, f"system.{held.pid}"), "kept", f"process {held.pid} runs")
            says(done, control(s), "kept", "the next daemon needs it")
            s.start_daemon("--system")
            s.flush()
            equal(os.stat(SHM / control(s)).st_ino, before, "what the program rings by")
        forged.unlink()
        end(held)
        kill_daemon(s)
        did = gc(s)
        equal({word for word, _ in did.values()}, {"removed"}, did)
        equal(names(s), [], "what is left")

# A tool can hold a POSIX lock on the control segment, and the kernel then reports the tool's pid as the lock's owner. The hook does not
# mistake the tool's lock for a daemon's, and a daemon waits until the tool releases its lock.
with Session() as s:
    s.start_daemon()
    kill_daemon(s)
    path = SHM / control(s)
    with open(path, "r+b") as file:
        fcntl.lockf(file, fcntl.LOCK_EX)
        s.run(WORKLOADS / "calls", "--calls", 10)
        equal([name for name in names(s) if "sock" not in name], [control(s)], "what a program made of a tool's lock")
        did = told(s.cudatrace("gc").stdout)
        says(did, control(s), "kept", "lock is not available")
        log = open(s.dir / "daemon.log", "ab")
        s.daemon = subprocess.Popen([DAEMON, "--foreground", "--db", s.db, "--session", s.name], stdout=log, stderr=log)
        log.close()

        def waits():
            check(s.daemon.poll() is None, "it did not wait:", (s.dir / "daemon.log").read_text())
            for fd in pathlib.Path(f"/proc/{s.daemon.pid}/fd").iterdir():
                with contextlib.suppress(FileNotFoundError):  # it was closed
                    if os.readlink(fd) == str(path):
                        return True
            return False

        wait_for("seen at the lock", waits)
    s.wait_until_served()
    s.stop_daemon()

# A daemon that starts while gc is running serves its session, and its sockets are not removed, whether it begins to serve before or after
# gc finishes.
with Session() as s:
    for _ in range(12):
        s.start_daemon()
        kill_daemon(s)
        with promise("gc-daemon"):
            sweeps = [subprocess.Popen([CUDATRACE, "gc", "--session", s.name], stdout=subprocess.DEVNULL) for _ in range(3)]
            s.start_daemon()
            equal([sweep.wait(DEADLINE_S) for sweep in sweeps], [0, 0, 0], "the status of gc")
            s.flush()
            s.run(WORKLOADS / "calls", "--calls", 10)
            s.flush()
            kill_daemon(s)
    gc(s)
    equal(names(s), [], "what is left")
    check(s.value("SELECT count(*) FROM processes") == 12, "programs")
    s.check_identity()
    s.run(CUDATRACE, "gc", "--dry-run", preload=False)  # all sessions, including other tests'
