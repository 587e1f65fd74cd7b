"""Tests that `cudatrace probe` records processes in unusual states, or reports why it cannot."""
import os
import shutil
import signal
import subprocess
import sys

from cudatrace_test import CUDATRACE, DEADLINE_S, WORKLOADS, can, check, equal, first_thread_has_ended, wait_for
from probing import PROBE, OwnDriver, Probe, await_stored, stored_of, truth_of, writer_of
from untraced import VERSION, Background, Program

LEADERLESS = """
import ctypes, os, platform, sys, threading
driver, libc = ctypes.CDLL(sys.argv[1]), ctypes.CDLL(None)

def work():
    print("ready", flush=True)
    for line in sys.stdin:
        for _ in range(int(line)):
            driver.cuDriverGetVersion(ctypes.byref(ctypes.c_int()))
        print("made", int(line), flush=True)
    os._exit(0)

threading.Thread(target=work).start()
libc.syscall({"x86_64": 60, "aarch64": 93}[platform.machine()], 0)  # exit() of this thread alone
"""


def first_thread_exited(s, method):
    """Checks that a process whose first thread has exited is recorded, and that other processes with the same library are not."""
    p = Program(s, "leaderless", within=[sys.executable, "-c", LEADERLESS], program=s.driver_file)
    wait_for("the first thread's exit", lambda: first_thread_has_ended(p.pid))
    other = Program(s, "steps")
    probe = Probe(s, "--pid", p.pid, "--method", method, *(["--calls", "cuDriver*,cuInit"] if method == "event" else []))
    check(f"process {p.pid}: its first thread has exited, so calls to {s.driver_file} take longer in other processes, too\n" in probe.said, probe.said)
    other.step(10)
    p.step(30)
    await_stored(s, p.pid, {VERSION: 30})
    equal(stored_of(s, other.pid), {}, "calls of the other process")
    check("leaderless" in s.value("SELECT cmdline FROM processes WHERE pid = ?", p.pid), "the command line is missing")
    probe.end()
    p.end()
    other.end()


COPIED = """
import ctypes, sys
driver, libc = ctypes.CDLL(sys.argv[1]), ctypes.CDLL(None)
libc.mmap.restype = libc.mremap.restype = ctypes.c_void_p
libc.mmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int, ctypes.c_int, ctypes.c_int, ctypes.c_long]
libc.mprotect.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int]
libc.mremap.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_size_t, ctypes.c_int, ctypes.c_void_p]
READ, WRITE, EXECUTE, PRIVATE_ANONYMOUS, FIXED_MAYMOVE = 1, 2, 4, 34, 3
for line in open("/proc/self/maps").readlines():
    if line.rstrip().endswith(sys.argv[1]) and line.split()[1] == "r-xp":
        begin, end = (int(part, 16) for part in line.split()[0].split("-"))
        copy = libc.mmap(None, end - begin, READ | WRITE, PRIVATE_ANONYMOUS, -1, 0)
        ctypes.memmove(copy, begin, end - begin)
        libc.mprotect(copy, end - begin, READ | EXECUTE)
        assert libc.mremap(copy, end - begin, end - begin, FIXED_MAYMOVE, begin) == begin
print("ready", flush=True)
for line in sys.stdin:
    for _ in range(int(line)):
        driver.cuDriverGetVersion(ctypes.byref(ctypes.c_int()))
    print("made", int(line), flush=True)
"""


def copied(s, target):
    """Tests a program that has copied the driver's code to anonymous memory, as programs do that use huge pages. The kernel sets no breakpoints
    there. Checks that the probe, the trace and `cudatrace doctor` report the missing calls."""
    p = Program(s, "copied", within=[sys.executable, "-c", COPIED], program=s.driver_file)
    probe = Probe(s, *(s.every if target == "every" else ["--pid", p.pid]))
    check(f"process {p.pid}: code of {s.driver_file} is in other memory than the file, where the kernel sets no probes: calls are missing" in
          probe.said, probe.said)
    p.step(30)
    s.flush_until("the loss", lambda: s.rows("SELECT pid, cause, calls, last_ns FROM losses JOIN processes USING (process_id)") ==
                  [(p.pid, "code", None, None)])
    equal(stored_of(s, p.pid), {}, "calls")
    equal([(row["pid"], row["cause"], row["calls"]) for row in s.report("losses")["losses"]], [(p.pid, "code", None)], "the report")
    said = s.run(CUDATRACE, "doctor", "--session", s.name, p.pid, preload=False, status=None).stdout
    check("calls are missing: code of the driver is in other memory" in said, said)
    probe.end()
    p.end()


def refused_segment(s):
    """Checks that the probe reports that a process's segment is refused, and records the process once it no longer is. The trace must show
    that earlier calls are missing."""
    p = Program(s, "steps")
    probe = Probe(s, "--pid", p.pid, within=["prlimit", "--fsize=0:"])
    check(f"process {p.pid}: there is no room for its segment in shared memory, so calls are missing" in probe.said, probe.said)
    p.step(10)
    s.run("prlimit", "--fsize=unlimited:", "--pid", writer_of(probe, p.pid), preload=False)
    s.flush_until("the process", lambda: s.rows("SELECT pid, cause, calls FROM losses JOIN processes USING (process_id)") == [(p.pid, "absent", None)])
    p.step(5)
    await_stored(s, p.pid, {VERSION: 5})
    probe.end()
    p.end()


def pid_namespace(s):
    """Checks that the probe and `cudatrace doctor` report a PID namespace in which the probe cannot work."""
    if not can("pid namespaces", "a probe in another pid namespace"):
        return
    within = ["unshare", "--pid", "--fork", "--mount-proc"]
    why = "BPF programs see other process IDs than this PID namespace. Run the probe outside the container"
    said = s.run(*within, PROBE, "--session", s.name, "--all", preload=False, status=1).stderr
    check(f"cudatrace: probe: {why}" in said, said)
    said = s.run(*within, CUDATRACE, "doctor", "--session", s.name, preload=False, status=None).stdout
    check(f"`cudatrace probe` cannot run: {why}" in said, said)


MAPPER = """
import mmap, os, sys
mapped = [mmap.mmap(os.open(path, os.O_RDONLY), 0, prot=mmap.PROT_READ, flags=mmap.MAP_PRIVATE) for path in sys.argv[1:]]
print("mapped", flush=True)
sys.stdin.read()
"""


def start_mapper(s, *paths):
    """Starts a program that maps the files."""
    mapper = s.start(sys.executable, "-c", MAPPER, *paths, preload=False, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    equal(mapper.stdout.readline(), "mapped\n", "the files")
    return mapper


def copies(s, count):
    """Returns copies of the driver, which each have a folder."""
    paths = [s.dir / f"copies/{i}/libcuda.so.1" for i in range(count)]
    for path in paths:
        path.parent.mkdir(parents=True)
        shutil.copy(s.driver_file, path)
    return paths


def interrupted(s):
    """Checks that Ctrl-C ends a probe that is still examining processes and attaching to their libraries."""
    libraries = copies(s, 40)
    mappers = [start_mapper(s, *libraries[i:i + 8]) for i in range(0, len(libraries), 8)]
    probe = Background(s, CUDATRACE, "probe", "--session", s.name, "--all", "--only", f"{s.dir}/*", "--verbose")
    probe.await_line("functions of")
    said = probe.end()
    check(0 < said.count("functions of") < len(libraries) / 2, said)
    check("are probed" not in said, said)
    for mapper in mappers:
        mapper.communicate("", timeout=DEADLINE_S)


def many_libraries(s):
    """Checks that the probe reports a process with more libraries than it follows."""
    libraries = copies(s, 65)
    for number, missing in (64, False), (65, True):
        mapper = start_mapper(s, *libraries[:number])
        probe = Probe(s, "--pid", mapper.pid, "--method", "multi", "--calls", "cuInit")
        said = f"process {mapper.pid}: calls to 1 of its libraries are missing, such as {s.dir}/copies/"
        equal(said in probe.said, missing, probe.said)
        s.flush_until("the loss", lambda: s.rows("SELECT cause FROM losses JOIN processes USING (process_id) WHERE pid = ?", mapper.pid) ==
                      [("code",)] * missing)
        probe.end()
        mapper.communicate("", timeout=DEADLINE_S)


STRANGER = ["setpriv", "--reuid", "65534", "--regid", "65534", "--clear-groups"]


def shares(s, processes=70):
    """Checks that a user's processes cannot take all channels, and that the trace lists those that the probe has missed. While the probe is
    stopped, the BPF programs assign the 64 spare channels, at most 48 of them to one user."""
    if not can("several users", "processes of another user"):
        return
    probe = Probe(s, *s.every)
    os.kill(probe.child.pid, signal.SIGSTOP)
    calls = WORKLOADS / "calls", "--calls", 5
    strangers = []
    for _ in range(processes):
        strangers.append(s.start(*STRANGER, *calls, preload=False, stdout=subprocess.DEVNULL, env={"SIMCUDA_COUNTS": ""}))
        equal(strangers[-1].wait(DEADLINE_S), 0, "a program's status")
    own = s.start(*calls, preload=False, stdout=subprocess.DEVNULL)
    equal(own.wait(DEADLINE_S), 0, "the program's status")
    os.kill(probe.child.pid, signal.SIGCONT)
    await_stored(s, own.pid, dict(truth_of(s, own.pid)))
    s.flush_until("the other user's processes", lambda: s.value("SELECT count(*) FROM processes WHERE state = 'exited' AND uid = 65534") +
                  s.value("SELECT count(*) FROM unrecorded") == processes)
    why = "its user's processes have their share of the probe's channels"
    missed = [p.pid for p in strangers[48:]]
    equal(s.rows("SELECT pid, uid, cause, error, calls FROM unrecorded ORDER BY pid"),
          [(pid, 65534, "probe", why, None) for pid in sorted(missed)], "the missed processes")
    equal(s.status()["unprobed"], str(processes - 48), "the status")
    said = probe.end()
    check(f"process {missed[0]}: its calls are not recorded" in said and "12 more processes are not recorded" in said, said)


def returning(s, mode):
    """Checks that a program survives calls whose return the kernel cannot probe: it would send the program SIGILL or SIGSYS. The calls count as
    lost. Only a session can leave out the probe of a return."""
    program = s.start(WORKLOADS / "returning", "--do", mode, preload=False, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    if program.stdout.readline() == "unsupported\n":
        print("not tried: Syscall User Dispatch: this kernel does not support it")
        program.communicate(timeout=DEADLINE_S)
        return
    probe = Probe(s, "--pid", program.pid, "--method", "session", "--verbose")
    if "by sessions" not in probe.said:
        print("not tried: calls whose return cannot be probed: the kernel has no uprobe sessions")
        program.kill()
        probe.end(None)
        program.communicate(timeout=DEADLINE_S)
        return
    program.stdin.write("20\n")
    program.stdin.flush()
    equal(program.stdout.readline(), "made 20\n", "the calls")
    program.communicate(timeout=DEADLINE_S)
    equal(program.returncode, 0, "the program's status")
    s.flush_until("its end", lambda: s.value("SELECT count(*) FROM processes WHERE pid = ? AND state = 'exited'", program.pid) == 1)
    (lost,), = s.rows("SELECT sum(lost) FROM totals JOIN processes USING (process_id) WHERE pid = ? AND name = ?", program.pid, VERSION)
    check(20 <= lost if mode == "dispatching" else lost > 0, "lost calls", lost)
    equal(s.value("SELECT sum(calls) - sum(stored) - sum(lost) - sum(skipped) FROM totals"), 0, "the sums")
    probe.end(None)


TESTS = {f"first_thread_exited-{method}": lambda s, method=method: first_thread_exited(s, method) for method in ("session", "event")}
TESTS |= {f"copied-{target}": lambda s, target=target: copied(s, target) for target in ("one", "every")}
TESTS |= {f"returning-{mode}": lambda s, mode=mode: returning(s, mode) for mode in ("dispatching", "above")}
TESTS |= {test.__name__: test for test in (refused_segment, interrupted, many_libraries, shares, pid_namespace)}
for name in sys.argv[1:] or TESTS:
    print(name, flush=True)
    with OwnDriver() as s:
        s.start_daemon()
        TESTS[name](s)
