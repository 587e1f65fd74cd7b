"""Finds out whether the machine permits a test to do something that an ordinary program may not do. Each such need has a name, and is
tested by actually trying it. If the attempt fails, the test, or the part of the test that has the need, is skipped with a message:

    needs("mount namespaces")                                    the whole script: exit status 77
    if can("several users", "another user's socket"):            a part of it
    if can("terminals", "top on a terminal", promises=["…"]):    with the promises (tests/faults) that only this part tests

tools/suite finds both messages in Meson's logs. If CUDATRACE_REQUIRE is `all` or a comma-separated list that contains the need, the test
fails instead. CUDATRACE_REQUIRE=all ensures that no test is skipped unnoticed on a machine that permits everything. The name of a command
that tools/check installs is also a need. Hardware such as a GPU is not a need. If it is missing, the test calls `skip()`.
"""
import contextlib
import ctypes
import functools
import os
import platform
import resource
import shutil
import signal
import stat
import struct
import subprocess
import sys
import tempfile

SKIP = 77
NOBODY = 65534
PTRACE_ATTACH = 16
DEBIAN_PYTHON = "/usr/bin/python3"  # packages are installed for this Python, whichever one runs the tests


class Refused(Exception):
    """Raised if the machine refuses a need. The exception's message gives the reason."""


def tell(pipe, act):
    try:
        act()
    except Refused as why:
        os.write(pipe, str(why).encode()[:2000])
    except OSError as why:
        os.write(pipe, f"{why.strerror}".encode())


def in_child(act):
    """Tests a need by running `act` in a child process. Raises Refused if `act` fails."""
    mine, its = os.pipe()
    child = os.fork()
    if child == 0:
        with contextlib.suppress(BaseException):
            tell(its, act)
        os._exit(0)
    os.close(its)
    with open(mine, "rb") as told:
        why = told.read().decode()
    status = os.waitpid(child, 0)[1]
    if why or status:
        raise Refused(why or f"the attempt ended with {status}")


def by_command(*command, **options):
    done = subprocess.run(command, capture_output=True, text=True, **options)
    if done.returncode != 0:
        raise Refused(done.stderr.strip().replace("\n", "; ") or f"{command[0]} ended with {done.returncode}")


# ---- how to try each need ----


@functools.lru_cache(None)
def mount_namespace():
    """Returns a command that runs another command in a separate mount namespace, with the right to mount."""
    whys = []
    for command in (("unshare", "-m"), ("unshare", "-rm")):
        try:
            by_command(*command, "mount", "-t", "tmpfs", "none", "/dev/shm")
            return command
        except Refused as why:
            whys.append(str(why))
    raise Refused("; ".join(dict.fromkeys(whys)))


def user_namespaces():
    """Creates user namespaces as the current user and, if that is root, also as an ordinary user."""
    for as_user in ({}, {"user": NOBODY, "group": NOBODY, "extra_groups": []})[:1 if os.geteuid() else 2]:
        by_command("unshare", "-r", "-p", "-f", "--mount-proc", "true", cwd="/", **as_user)


def become_nobody():
    os.setgroups([])
    os.setgid(NOBODY)
    os.setuid(NOBODY)


def users():
    with tempfile.NamedTemporaryFile() as file:
        os.chown(file.name, NOBODY, NOBODY)
    in_child(become_nobody)


@contextlib.contextmanager
def sleeper(become=lambda: None):
    """A process that does nothing. It is not started by the module `subprocess`, because `subprocess` would consider a traced process
    exited when it stops."""
    child = os.fork()
    if child == 0:
        with contextlib.suppress(BaseException):
            become()
            while True:
                signal.pause()
        os._exit(1)
    try:
        yield child
    finally:
        os.kill(child, signal.SIGKILL)
        while os.WIFSTOPPED(os.waitpid(child, 0)[1]):
            pass


def everyones_shm():
    """Checks that users other than root can create files in /dev/shm. They cannot if /dev/shm is a plain folder in a bind-mounted /dev."""
    def make():
        become_nobody()
        with tempfile.NamedTemporaryFile(dir="/dev/shm"):
            pass

    in_child(make)


def device_files():
    """Creates and opens a device file. A container may refuse either step."""
    with tempfile.TemporaryDirectory() as folder:
        os.mknod(f"{folder}/null", stat.S_IFCHR | 0o600, os.makedev(1, 3))
        with open(f"{folder}/null", "wb"):
            pass


def trace():
    libc = ctypes.CDLL(None, use_errno=True)
    with sleeper() as child:
        if libc.ptrace(PTRACE_ATTACH, child, None, None):
            raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))


def filter_system_calls():
    """Installs a seccomp filter that permits everything."""
    class Program(ctypes.Structure):
        _fields_ = [("length", ctypes.c_ushort), ("code", ctypes.c_char_p)]

    set_seccomp, filtering, set_no_new_privileges = 22, 2, 38
    allow = (0x06).to_bytes(4, sys.byteorder) + (0x7fff0000).to_bytes(4, sys.byteorder)
    libc = ctypes.CDLL(None, use_errno=True)

    def put_on():
        if libc.prctl(set_no_new_privileges, 1, 0, 0, 0) or \
                libc.prctl(set_seccomp, filtering, ctypes.byref(Program(1, allow)), 0, 0):
            raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))
    in_child(put_on)


def real_time():
    in_child(lambda: os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(1)))


def choose_pids():
    """Tries to choose the next pid. Does so in a separate pid namespace, because other programs on the machine use up pids, too."""
    by_command("unshare", "-p", "-f", "--mount-proc", "sh", "-c", "echo 1000 >/proc/sys/kernel/ns_last_pid")


def terminals():
    for end in os.openpty():
        os.close(end)


def set_user_id():
    """Checks that a set-user-ID program runs with its owner's rights. A mount option or no_new_privs may disable set-user-ID."""
    users()
    with tempfile.TemporaryDirectory() as folder:
        os.chmod(folder, 0o755)
        program = shutil.copy(shutil.which("id"), folder)
        os.chown(program, NOBODY, NOBODY)
        os.chmod(program, 0o4755)
        if subprocess.run([program, "-u"], capture_output=True, text=True).stdout != f"{NOBODY}\n":
            raise Refused("they run with the caller's rights")


def others_processes():
    """Checks that root can read other users' processes in /proc, as the system daemon and root's tools do."""
    in_child(become_nobody)
    mine, its = os.pipe()
    with sleeper(lambda: (become_nobody(), os.close(its))) as child:
        os.close(its)
        os.read(mine, 1)  # waits until the child has closed its end
        os.close(mine)
        os.readlink(f"/proc/{child}/exe")


def descriptors():
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if hard < 4096:
        raise Refused(f"the hard limit is {hard}, and 4096 are wanted")


def ebpf():
    """Creates a BPF map. A process that may do this may also load BPF programs."""
    if not os.path.exists("/sys/kernel/btf/vmlinux"):
        raise Refused("the kernel has no BTF")
    create, array = 0, 2
    attributes = struct.pack("IIII112x", array, 4, 4, 1)
    libc = ctypes.CDLL(None, use_errno=True)
    fd = libc.syscall({"x86_64": 321, "aarch64": 280}[platform.machine()], create, ctypes.c_char_p(attributes), len(attributes))
    if fd < 0:
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))
    os.close(fd)


def tracefs():
    """Checks that the tracepoint folder exists, or that tracefs can be mounted."""
    if not os.path.isdir("/sys/kernel/tracing/events"):
        by_command("unshare", "-m", "mount", "-t", "tracefs", "none", "/sys/kernel/tracing")


NEEDS = {
    "mount namespaces": mount_namespace,
    "user namespaces": user_namespaces,
    "pid namespaces": lambda: by_command("unshare", "-p", "-f", "--mount-proc", "true"),
    "time namespaces": lambda: by_command("unshare", "--time", "--monotonic", "100", "--fork", "true"),
    "choosing pids": choose_pids,
    "several users": users,
    "other users' processes": others_processes,
    "everyone's /dev/shm": everyones_shm,
    "set-user-ID programs": set_user_id,
    "device files": device_files,
    "ptrace": trace,
    "filters of system calls": filter_system_calls,
    "real-time scheduling": real_time,
    "terminals": terminals,
    "FUSE": lambda: os.close(os.open("/dev/fuse", os.O_RDWR)),
    "many open files": descriptors,
    "eBPF": ebpf,
    "tracefs": tracefs,
    # Debian's loader for 32-bit programs (libc6-i386), which the kernel may refuse to execute.
    "32-bit programs": lambda: by_command("/lib/ld-linux.so.2", "--version"),
    "python3-pygpu": lambda: by_command(DEBIAN_PYTHON, "-c", "import pygpu", cwd="/"),
}


# ---- functions for tests ----


@functools.lru_cache(None)
def why_not(need):
    """Returns the reason why the machine refuses the need, or None if it meets the need."""
    if need not in NEEDS:
        return None if shutil.which(need) else "there is no such command"
    try:
        NEEDS[need]()
    except Refused as why:
        return str(why)
    except OSError as why:
        return why.strerror
    return None


def free_shm():
    room = os.statvfs("/dev/shm")
    return room.f_bavail * room.f_frsize >> 20


def causes(*expected):
    """Returns the causes that lost calls may have: the given causes, and `memory` if /dev/shm may be too small for all rings."""
    return {*expected} if free_shm() > 256 else {*expected, "memory"}


def fail_if_required(why, need):
    """Fails if CUDATRACE_REQUIRE is `all` or names the need. Otherwise returns, and the caller skips the part of the test that has this
    need."""
    required = os.environ.get("CUDATRACE_REQUIRE", "")
    if required == "all" or need and need in required.split(","):
        raise AssertionError(f"{why}, and CUDATRACE_REQUIRE={required}")


def skip(why):
    print(f"skipped: {why}")
    sys.exit(SKIP)


def refused(why):
    """Skips the rest of the script because the machine has refused something only during the test."""
    fail_if_required(why, "")
    skip(why)


def needs(*wanted, shm_mib=0):
    """Skips the whole script if the machine does not meet all needs."""
    for need in wanted:
        if why := why_not(need):
            fail_if_required(f"no {need} here: {why}", need)
            skip(f"no {need} here: {why}")
    if free_shm() < shm_mib:
        fail_if_required(f"/dev/shm has no {shm_mib} MiB free", "shared memory")
        skip(f"/dev/shm has no {shm_mib} MiB free")


def can(need, what, promises=()):
    """Returns whether the machine meets the need. If not, prints which part of the test is skipped."""
    why = why_not(need)
    if why is None:
        return True
    fail_if_required(f"{what}: no {need} here: {why}", need)
    for part in (what, *(f"promise {name}" for name in promises)):
        print(f"not tried: {part}: no {need} here: {why}")
    return False


def have_shm(mib, what):
    """Returns whether `mib` MiB are free in /dev/shm. If not, prints which part of the test is skipped."""
    if free_shm() >= mib:
        return True
    why = f"/dev/shm has no {mib} MiB free"
    fail_if_required(f"{what}: {why}", "shared memory")
    print(f"not tried: {what}: {why}")
    return False
