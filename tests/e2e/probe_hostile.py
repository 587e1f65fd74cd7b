"""Tests that `cudatrace probe`, run by root, withstands a process that controls everything that the probe reads about it: its mappings, the
names of its files, and its memory."""
import os
import pathlib
import re
import shutil
import signal
import stat
import subprocess
import sys

from cudatrace_test import CUDATRACE, DEADLINE_S, can, check, equal, wait_for
from probing import OwnDriver, Probe, await_stored, stored_of
from untraced import VERSION, Program, lock

MAPPER = """
import ctypes, os, sys
libc = ctypes.CDLL(None)
libc.mmap.restype = ctypes.c_void_p
libc.mmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int, ctypes.c_int, ctypes.c_int, ctypes.c_long]
PRIVATE, FIXED, READ_EXECUTE = 2, 16, 5
address = None
for path in sys.argv[1:]:
    file = os.open(path, os.O_RDONLY)
    address = libc.mmap(address, os.fstat(file).st_size, READ_EXECUTE, PRIVATE | (FIXED if address else 0), file, 0)
    print("mapped", flush=True)
    sys.stdin.readline()
"""


def start_mapper(s, *paths):
    """Starts a program that maps the first file and, for each line of its input, maps the next file at the same addresses."""
    mapper = s.start(sys.executable, "-c", MAPPER, *paths, preload=False, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    equal(mapper.stdout.readline(), "mapped\n", "the first file")
    return mapper


def go_on(process):
    process.stdin.write("\n")
    process.stdin.flush()


def stop_probe_at(s, probe, function):
    """Makes the probe stop when it calls the function the next time, until the debugger reads a line."""
    debugger = s.start("gdb", "-q", "-nx", "-batch", "-p", probe.child.pid, "-ex", f"break {function}", "-ex", "handle SIGHUP nostop", "-ex",
                       "shell echo armed", "-ex", "continue", "-ex", "shell echo found; read line", "-ex", "detach", preload=False,
                       stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    check(any("armed" in line for line in debugger.stdout), "the debugger has not attached")
    return debugger


def await_stop(debugger):
    check(any("found" in line for line in debugger.stdout), "the probe did not reach the point")


def exchanged(s):
    """Checks that the probe attaches to the file in which it has found the functions, even if the process maps another file instead. The
    kernel would otherwise write breakpoints into the middle of that file's instructions, in all processes that use it."""
    if not all(can(need, "a file that is exchanged while the probe attaches to it") for need in ("gdb", "ptrace")):
        return
    own = s.dir / "own/libcuda.so.1"
    own.parent.mkdir()
    shutil.copy(s.driver_file, own)
    other = Program(s, "steps")
    probe = Probe(s, "--all", "--only", own, "--verbose")
    debugger = stop_probe_at(s, probe, "ct_code_check_begin")
    mapper = start_mapper(s, own, s.driver_file)
    await_stop(debugger)
    go_on(mapper)
    equal(mapper.stdout.readline(), "mapped\n", "the other file")
    debugger.communicate("\n", timeout=DEADLINE_S)
    probe.await_line(f"functions of {own}")
    other.step(10)
    s.flush()
    equal(stored_of(s, other.pid), {}, "calls to the other file")
    probe.end()
    equal(mapper.communicate("", timeout=DEADLINE_S)[0], "", "the end")
    other.end()


def changed_code(pid, library):
    """Returns the addresses of the process's ranges of code from the library that differ from the file."""
    changed = []
    with open(f"/proc/{pid}/maps") as maps, open(f"/proc/{pid}/mem", "rb", 0) as memory, open(library, "rb") as file:
        for line in maps:
            addresses, rights, offset, *_, name = line.split()
            if name == str(library) and "x" in rights:
                begin, end = (int(part, 16) for part in addresses.split("-"))
                memory.seek(begin)
                file.seek(int(offset, 16))
                if memory.read(end - begin).rstrip(b"\0") != file.read(end - begin).rstrip(b"\0"):
                    changed.append(addresses)
    return changed


def moved(s):
    """Checks that a hook of a table is attached to the file in which its function was found, even if another file is moved to the path."""
    if not all(can(need, "a library that is replaced while the probe attaches to it") for need in ("gdb", "ptrace")):
        return
    own, table = s.dir / "libown.so", s.dir / "hooks"
    shutil.copy(s.driver_file, own)
    table.write_text("")
    other = Program(s, "steps")
    probe = Probe(s, "--all", "--only", own, "--hooks", table)
    table.write_text(f"uprobe:{own}:cuDriverGetVersion version\n")
    debugger = stop_probe_at(s, probe, "ct_programs_rule")
    probe.child.send_signal(signal.SIGHUP)
    await_stop(debugger)
    os.link(s.driver_file, s.dir / "linked")
    os.rename(s.dir / "linked", own)
    debugger.communicate("\n", timeout=DEADLINE_S)
    probe.await_line("1 of 1 hooks are attached")
    equal(changed_code(other.pid, s.driver_file), [], "changed code of the other file")
    probe.end()
    other.end()


def escapes(s):
    """Checks that a file's name cannot control root's terminal."""
    folder = s.dir / "\033[2J"
    folder.mkdir()
    (folder / "libcuda.so.1").write_bytes(b"no library")
    mapper = start_mapper(s, folder / "libcuda.so.1")
    probe = Probe(s, "--all", "--only", f"{s.dir}/*")
    check(rf"cannot attach to {s.dir}/\x1b[2J/libcuda.so.1" in probe.said and "\033" not in probe.said, probe.said)
    probe.end()
    mapper.communicate("", timeout=DEADLINE_S)


EXECUTOR = """
import ctypes, os, sys
driver = ctypes.CDLL(sys.argv[1])
print("ready", flush=True)
sys.stdin.readline()
driver.cuDriverGetVersion(ctypes.byref(ctypes.c_int()))
print("called", flush=True)
sys.stdin.readline()
os.execv(sys.argv[2], ["set-user-id", "1000"])
"""


def executed(s):
    """Checks that a writer reads the memory of the recorded program only, even if the process executes a set-user-ID program before the writer
    has opened the memory. The process's user could otherwise read that program's memory in the trace."""
    if not all(can(need, "a set-user-ID program that is executed while the writer starts") for need in ("several users", "gdb", "ptrace")):
        return
    if os.statvfs(s.dir).f_flag & os.ST_NOSUID:
        print("not tried: a set-user-ID program:", s.dir, "is mounted with nosuid")
        return
    program = s.dir / "set-user-id"
    shutil.copy(shutil.which("sleep"), program)
    program.chmod(0o4755)
    probe = Probe(s, *s.every)
    p = s.start("setpriv", "--reuid", "65534", "--regid", "65534", "--clear-groups", sys.executable, "-c", EXECUTOR, s.driver_file, program,
                preload=False, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env={"SIMCUDA_COUNTS": ""})
    equal(p.stdout.readline(), "ready\n", "the program")
    debugger = s.start("gdb", "-q", "-nx", "-batch", "-p", probe.child.pid, "-ex", "set follow-fork-mode child", "-ex", "break ct_target_open",
                       "-ex", "shell echo armed", "-ex", "continue", "-ex", "shell echo starts; read line", "-ex", "break ct_link_watch", "-ex",
                       "continue", "-ex", "info inferiors", "-ex", "shell echo opened; read line", "-ex", "detach", preload=False,
                       stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    check(any("armed" in line for line in debugger.stdout), "the debugger has not attached")
    go_on(p)
    equal(p.stdout.readline(), "called\n", "a call")
    check(any("starts" in line for line in debugger.stdout), "no writer starts")
    go_on(p)
    wait_for("the other program, with its user", lambda: pathlib.Path(f"/proc/{p.pid}/comm").read_text() == "set-user-id\n" and
             os.stat(f"/proc/{p.pid}").st_uid == 0)
    go_on(debugger)
    said = []
    check(any(said.append(line) or "opened" in line for line in debugger.stdout), "the writer did not go on", *said)
    writer = re.search(r"^\* .*process (\d+)", "".join(said), re.M)[1]
    opened = [os.readlink(link) for link in pathlib.Path(f"/proc/{writer}/fd").iterdir()]
    equal([path for path in opened if path.endswith("/mem")], [], "memory that the writer has open")
    debugger.communicate("\n", timeout=DEADLINE_S)
    p.kill()
    probe.end()


def crowded(s):
    """Checks that a library with thousands of unknown functions leaves numbers for the functions of other libraries."""
    if not can("cc", "a library with many functions"):
        return
    full = s.dir / "full/libcuda.so.1"
    full.parent.mkdir()
    subprocess.run(["cc", "-x", "c", "-shared", "-fPIC", "-o", full, "-"], check=True, text=True,
                   input="".join(f"int cuUnknown{i}(void) {{ return {i}; }}\n" for i in range(3000)))
    probe = Probe(s, "--all", "--only", f"{s.dir}/*", "--verbose")
    mapper = start_mapper(s, full)
    probe.await_line(f"functions of {full}")
    check(re.search(rf"\d+ functions of {re.escape(str(full))} are not probed: the probe has no numbers left", probe.said), probe.said)
    p = Program(s, "steps")
    probe.await_line(f"functions of {s.driver_file}")
    p.step(10)
    s.flush_until("the calls", lambda: stored_of(s, p.pid).get(VERSION) == 10)
    probe.end()
    p.end()
    mapper.communicate("", timeout=DEADLINE_S)


OCCUPIER = """
import os, socket, sys
session, path = sys.argv[1:]
taken = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
taken.bind("\\0cudatrace-probe-" + session)
os.mkfifo(path, 0o666)
print("taken", flush=True)
sys.stdin.read()
"""


def occupied(s):
    """Checks that another user cannot keep a probe from starting by taking the names that it uses for its session. Also checks that `gc`
    keeps the lock of a running probe, and that the lock of a killed probe is removed, by the arrivals writer or by `gc`."""
    if not can("several users", "a name that another user has taken"):
        return
    path = pathlib.Path(f"/dev/shm/cudatrace.{os.geteuid()}.{s.name}.probe")
    stranger = s.start("setpriv", "--reuid", "65534", "--regid", "65534", "--clear-groups", sys.executable, "-c", OCCUPIER, s.name, path,
                       preload=False, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    equal(stranger.stdout.readline(), "taken\n", "the other user")
    probe = Probe(s, *s.every)
    status = path.stat()
    equal((stat.S_ISREG(status.st_mode), status.st_uid), (True, os.geteuid()), "the lock")
    s.stop_daemon()
    gc = [CUDATRACE, "gc", "--session", s.name]
    said = s.run(*gc, preload=False).stdout
    check(f"the probe {probe.child.pid} uses it" in said and path.exists(), said)
    probe.end()
    check(not path.exists(), "the lock was left")
    # A folder that is not empty gets another name.
    inside = f"inside-{s.name}"
    s.run("setpriv", "--reuid", "65534", "--regid", "65534", "--clear-groups", "mkdir", "-p", path / inside, preload=False)
    probe = Probe(s, *s.every)
    check(stat.S_ISREG(path.stat().st_mode), "the lock")
    [renamed] = [folder for folder in path.parent.glob("cudatrace.aside.*") if (folder / inside).exists()]
    (renamed / inside).rmdir()
    renamed.rmdir()
    probe.end(-signal.SIGKILL, signal.SIGKILL)
    wait_for("the lock's end", lambda: not path.exists())
    path.touch(0o600)
    said = s.run(*gc, preload=False).stdout
    check("its probe was killed" in said and not path.exists(), said)
    stranger.communicate(timeout=DEADLINE_S)


def in_the_way(s):
    """Checks that a process that keeps the probe from attaching to a library does not keep it from recording other processes. Each call must
    be recorded once, also after the process has stopped being in the way."""
    blocking, before = Program(s, "steps"), Program(s, "steps")
    folder = lock(blocking.pid)
    probe = Probe(s, *s.every, "--verbose")
    check(f"attaching to {s.driver_file} in every process except {blocking.pid}" in probe.said, probe.said)
    while "functions of" not in probe.said:
        probe.await_line("functions of")
    after = Program(s, "steps")
    probe.await_line("functions of")
    for p in before, after, blocking:
        p.step(10)
    for p in before, after:
        await_stored(s, p.pid, {VERSION: 10})
    equal(stored_of(s, blocking.pid), {}, "calls of the process that is in the way")
    os.close(folder)
    probe.await_line("functions of")
    for p in before, after, blocking:
        p.step(5)
    for p, calls in (before, 15), (after, 15), (blocking, 5):
        await_stored(s, p.pid, {VERSION: calls})
        p.end()
    probe.end()


TESTS = {test.__name__: test for test in (exchanged, moved, executed, escapes, crowded, occupied, in_the_way)}
for name in sys.argv[1:] or TESTS:
    print(name, flush=True)
    with OwnDriver() as s:
        s.start_daemon()
        TESTS[name](s)
