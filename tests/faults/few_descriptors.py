"""Starts daemons with few file descriptors. A daemon that has too few must exit with a clear message. A daemon that runs out of descriptors
later must still react to signals, and the connections of other users must not take the descriptors that root needs."""
import contextlib
import ctypes
import errno
import os
import platform
import resource
import signal
import socket
import struct

from fault_test import CUDATRACE, DEADLINE_S, Session, can, check, equal, promise, subprocess, wait_for

NEEDED = 32  # CT_DAEMON_DESCRIPTORS_MIN; one fewer is enough in the foreground
# The number of eventfd2(), and the identifier of the architecture in a seccomp filter.
EVENTFD2, ARCH = {"x86_64": (290, 0xC000003E), "aarch64": (19, 0xC00000B7)}.get(platform.machine(), (None, None))


def limit(count):
    return lambda: resource.setrlimit(resource.RLIMIT_NOFILE, (count, count))


def fail_eventfd():
    """Makes eventfd2() fail with EMFILE in this process."""
    def step(code, true, false, value):
        return struct.pack("=HBBI", code, true, false, value)

    program = b"".join([step(0x20, 0, 0, 4), step(0x15, 0, 3, ARCH), step(0x20, 0, 0, 0), step(0x15, 0, 1, EVENTFD2),
                        step(0x06, 0, 0, 0x00050000 | errno.EMFILE), step(0x06, 0, 0, 0x7FFF0000)])
    kept = ctypes.create_string_buffer(program, len(program))
    libc = ctypes.CDLL(None, use_errno=True)
    filter_ = ctypes.create_string_buffer(struct.pack("@HP", len(program) // 8, ctypes.addressof(kept)))
    if libc.prctl(38, 1, 0, 0, 0) or libc.prctl(22, 2, filter_, 0, 0):
        raise OSError(ctypes.get_errno(), "prctl")


def refused(s, *options, preexec_fn):
    done = subprocess.run([*s.daemon_command(*options)], capture_output=True, text=True, preexec_fn=preexec_fn, timeout=DEADLINE_S)
    equal(done.returncode, 1, f"the status of a daemon that lacks descriptors: {done.stderr}")
    equal(done.stderr.count("\n"), 1, done.stderr)
    equal([name for name in os.listdir("/dev/shm") if s.name in name], [], "the session's files")
    return done.stderr


def connect(s):
    client = socket.socket(socket.AF_UNIX)
    client.connect(f"/dev/shm/cudatrace.{os.geteuid()}.{s.name}.sock")
    return client


def test_too_few(s):
    with promise("too-few-descriptors", NEEDED - 5):
        for count in range(4, NEEDED - 1):
            check(f"raise it to at least {NEEDED} (ulimit -n" in refused(s, preexec_fn=limit(count)), "the message")
    with promise("too-few-descriptors"):
        background = [s.daemon_program, "--db", s.db, "--session", s.name]
        done = subprocess.run(background, capture_output=True, text=True, preexec_fn=limit(20), timeout=DEADLINE_S)
        check(done.returncode == 1 and "ulimit -n" in done.stderr, done.returncode, done.stderr)
    if EVENTFD2:
        with promise("too-few-descriptors"):
            check("too many open files" in refused(s, preexec_fn=fail_eventfd), "the message")
    with promise("too-few-descriptors"):
        s.start_daemon(preexec_fn=limit(NEEDED))
        s.flush()
        s.stop_daemon()


def test_no_more(s):
    """Takes all descriptors from a daemon, also the one that it keeps for this case."""
    s.start_daemon()
    with promise("no-more-descriptors"):
        resource.prlimit(s.daemon.pid, resource.RLIMIT_NOFILE, (3, resource.getrlimit(resource.RLIMIT_NOFILE)[1]))
        with connect(s):
            wait_for("the daemon to notice", lambda: "connections wait, because the daemon has no descriptors left" in s.log())
            s.daemon.send_signal(signal.SIGTERM)
            check(s.daemon.wait(DEADLINE_S) in (0, 1), "the daemon's status:", s.daemon.returncode)
        s.daemon = None
    # The daemon can still close connections while it has its spare descriptor.
    s.start_daemon(preexec_fn=limit(40))
    with promise("no-more-descriptors"), contextlib.ExitStack() as held:
        clients = [held.enter_context(connect(s)) for _ in range(60)]
        equal(clients[-1].recv(1), b"", "the answer to the last connection")
        check("closed a connection, because the daemon has no descriptors left" in s.log(), s.log())
        for client in clients:
            client.close()
        wait_for("an answer", s.is_served)
        s.stop_daemon()


def test_crowded_out(s):
    """Lets four users open as many connections as they can."""
    from users import become
    users = range(12001, 12005)
    s.start_daemon("--system", preexec_fn=limit(64))
    path = f"/dev/shm/cudatrace.0.{s.name}.sock"
    begun, end = os.pipe(), os.pipe()

    def take_all():
        os.close(end[1])
        become(uid)
        clients = [socket.socket(socket.AF_UNIX) for _ in range(100)]
        for client in clients:
            client.connect(path)
            with contextlib.suppress(ConnectionError):  # the daemon has closed it
                client.sendall(b"status\n")
                client.recv(1)
        os.write(begun[1], b"b")
        os.read(end[0], 1)
        return 0

    for uid in users:
        if os.fork() == 0:
            status = 1
            try:
                status = take_all()
            finally:
                os._exit(status)
    for _ in users:
        equal(os.read(begun[0], 1), b"b", "connected")
    with promise("root-gets-in", 20):
        for _ in range(20):
            done = s.run(CUDATRACE, "status", "--session", s.name, preload=False)
            check("state ok" in done.stdout, done.stdout)
    with promise("root-gets-in"):
        s.cudatrace("flush")
        check(len(os.listdir(f"/proc/{s.daemon.pid}/fd")) < 40, "descriptors")
    os.close(end[1])
    for _ in users:
        equal(os.wait()[1], 0, "a user's status")
    s.stop_daemon()


for test in (test_too_few, test_no_more):
    with Session() as session:
        test(session)
if can("several users", "users who take all connections", ["root-gets-in"]):
    with Session() as session:
        test_crowded_out(session)
