"""Tests that `cudatrace probe` records every driver call of processes without the hook, in any mount namespace. Every lost call must be
counted, even if the probe, a writer, the daemon or the process is killed."""
import collections
import contextlib
import fnmatch
import itertools
import json
import os
import pathlib
import shutil
import signal
import subprocess
import sys

from cudatrace_test import (CUDATRACE, SHAPE, WORKLOADS, DEADLINE_S, HungCall, by_tier, can, check, counts, equal, first_thread_has_ended,
    wait_for)
from probing import PROBE, OwnDriver, Probe, await_stored, stored_of, truth_of, writer_of
from untraced import VERSION, Background, Program, lock, lock_as_stranger

METHODS = "session", "multi", "event"


def late(s):
    return s.value("SELECT count(*) FROM late_call")


# ---- recorded calls ----


def exact(s, method):
    """Checks that exactly the calls made while the probe is attached are stored. The program has four threads."""
    p = Program(s, "steps", 4)
    p.step(10)
    before = truth_of(s, p.pid)
    # With `--method event`, probe only a few functions, because closing hundreds of perf events takes seconds.
    probe = Probe(s, "--pid", p.pid, "--method", method, "--verbose", *(["--calls", "cuDriver*,cuInit"] if method == "event" else []))
    p.step(300)
    expected = dict(truth_of(s, p.pid) - before)
    await_stored(s, p.pid, expected)
    probe.end()
    p.step(50)
    s.flush_until("the probe to have left", lambda: s.value("SELECT state FROM processes WHERE pid = ?", p.pid) == "detached")
    p.end()
    s.flush()
    equal(stored_of(s, p.pid), expected, "what is stored in the end")
    equal(s.value("SELECT count(DISTINCT tid) FROM threads JOIN processes USING (process_id) WHERE pid = ?", p.pid), 4, "threads")
    equal(late(s), 0, "late rows")


def whole_life(s, calls="*"):
    """Checks that a process that starts after the probe is recorded from its first call to its last, except for the calls that --calls
    excludes."""
    probe = Probe(s, *s.every, "--calls", calls)
    done = s.start(WORKLOADS / "calls", "--mix", "training", "--threads", "3", "--calls", "3000", "--seed", "5", preload=False,
                   stdout=subprocess.PIPE, text=True)
    done.communicate(timeout=DEADLINE_S)
    equal(done.returncode, 0, "the program's status")
    await_stored(s, done.pid, {name: made for name, made in truth_of(s, done.pid).items() if fnmatch.fnmatchcase(name, calls)})
    probe.end()
    failed = s.value("SELECT sum(failed) FROM totals JOIN processes USING (process_id) WHERE pid = ?", done.pid)
    check(failed > 0, "no failed call was recorded of a program that makes some")
    equal(s.rows("SELECT call_id FROM off_cpu UNION ALL SELECT call_id FROM waits WHERE blocked_ns IS NOT NULL"), [], "events without --kernel")


def nested(s, method):
    """Tests nested calls, and calls left by longjmp(). Calls that are nested too deeply are counted as lost."""
    probe = Probe(s, *s.every, "--method", method, "--calls", "cuOccupancy*")
    done = s.start(WORKLOADS / "nested", "--times", "10", "--depth", "20", preload=False)
    equal(done.wait(DEADLINE_S), 0, "the program's status")
    name = "cuOccupancyMaxPotentialBlockSize"
    s.flush_until("all calls, and four of ten chains of twenty that are too deep", lambda: s.rows(
        "SELECT sum(calls), sum(lost) FROM totals JOIN processes USING (process_id) WHERE pid = ? AND totals.name = ?", done.pid, name) ==
        [(truth_of(s, done.pid)[name], 40)])
    equal(s.rows("SELECT name FROM open_calls JOIN processes USING (process_id) WHERE pid = ?", done.pid), [], "open calls")
    probe.end()


def short_lives(s):
    """Tests processes that may exit before the probe has read the event of their start."""
    probe = Probe(s, *s.every)
    children = [s.start(WORKLOADS / "calls", "--calls", "5", preload=False, stdout=subprocess.DEVNULL) for _ in range(12)]
    for child in children:
        equal(child.wait(DEADLINE_S), 0, "a program's status")
    pids = [child.pid for child in children]
    s.flush_until("all to have ended", lambda: s.value(
        f"SELECT count(*) FROM processes WHERE pid IN ({','.join(map(str, pids))}) AND state = 'exited'") == len(pids))
    for pid in pids:
        equal(stored_of(s, pid), dict(truth_of(s, pid)), f"the calls of {pid}")
        equal(s.value("SELECT cmdline FROM processes WHERE pid = ?", pid), f"{WORKLOADS / 'calls'} --calls 5", "the command line")
    probe.end()


def hooked(s):
    """Checks that the calls of processes with the hook are recorded only once, even if the processes exit before the probe can examine
    them."""
    probe = Probe(s, *s.every)
    os.kill(probe.child.pid, signal.SIGSTOP)
    children = [s.start(WORKLOADS / "calls", "--calls", "5", stdout=subprocess.DEVNULL) for _ in range(3)]
    for child in children:
        equal(child.wait(DEADLINE_S), 0, "a program's status")
    os.kill(probe.child.pid, signal.SIGCONT)
    last = s.start(WORKLOADS / "calls", "--calls", "5", preload=False, stdout=subprocess.DEVNULL)
    equal(last.wait(DEADLINE_S), 0, "the status of the program without the hook")
    await_stored(s, last.pid, dict(truth_of(s, last.pid)))
    probe.end()
    s.flush()
    for child in children:
        equal(stored_of(s, child.pid), dict(truth_of(s, child.pid)), f"the calls of {child.pid}")


PLACES = {
    "deleted": "mount -t tmpfs none {place} && cp {library} {place}/",
    "overlaid": "mount -t tmpfs none {place} && mkdir {place}/lower {place}/upper {place}/work && cp {library} {place}/lower/ && "
                "mount -t overlay none -o lowerdir={place}/lower,upperdir={place}/upper,workdir={place}/work {place}",
}


def hidden(s, how):
    """Probes a driver library in a private mount namespace that has been deleted, or is on an overlay file system."""
    if not can("mount namespaces", "a library that cannot be seen"):
        return
    place = s.dir / "place"
    place.mkdir()
    script = PLACES[how].format(place=place, library=s.driver_file) + f' && LD_LIBRARY_PATH={place}:$LD_LIBRARY_PATH && export LD_LIBRARY_PATH && exec "$@"'
    p = Program(s, "steps", within=["unshare", "-m", "sh", "-c", script, "sh"])
    if how == "deleted":
        pathlib.Path(f"/proc/{p.pid}/root{place}/libcuda.so.1").unlink()
        check(" (deleted)" in pathlib.Path(f"/proc/{p.pid}/maps").read_text(), "the library is not deleted")
    check(not list(place.iterdir()), "the library can be seen from here")
    before = truth_of(s, p.pid)
    probe = Probe(s, "--pid", p.pid)
    p.step(77)
    await_stored(s, p.pid, dict(truth_of(s, p.pid) - before))
    probe.end()
    p.end()


def open_calls(s):
    """Checks that the trace shows a hanging call as an open call, even after the process has been killed."""
    probe = Probe(s, *s.every)
    with HungCall(s, start=lambda *command, **options: s.start(*command, preload=False, **options)) as hung:
        s.flush_until("the call that hangs", lambda: s.value(
            "SELECT count(*) FROM open_calls JOIN processes USING (process_id) WHERE pid = ? AND name = 'cuCtxSynchronize'", hung.pid))
        hung.kill()
    s.flush_until("its end", lambda: s.value("SELECT state FROM processes WHERE pid = ?", hung.pid) == "killed")
    equal(s.rows("SELECT name FROM open_calls JOIN processes USING (process_id) WHERE pid = ?", hung.pid), [("cuCtxSynchronize",)],
          "what it was in")
    probe.end()


def whole(s, *options, within=()):
    """Runs a single-process program while all processes are probed, and checks that all of its calls are stored."""
    probe = Probe(s, *s.every)
    done = s.start(*within, WORKLOADS / "calls", *options, preload=False, stdout=subprocess.DEVNULL)
    equal(done.wait(DEADLINE_S), 0, "the program's status")
    [counted] = [pid for pid, _, _ in counts.read_counts(s.counts)]
    ended = "SELECT pid FROM processes WHERE state = 'exited' AND cmdline LIKE ?", f"{WORKLOADS}/calls%"
    s.flush_until("its end", lambda: s.rows(*ended))
    equal(stored_of(s, s.value(*ended)), dict(truth_of(s, counted)), "the calls")
    equal(late(s), 0, "late rows")
    probe.end()


def kernel_events(s):
    """Checks that with --kernel, the trace shows each call's page faults, and how long the call's thread was off the CPU. The program
    prints the kernel's own counts of its page faults and sleeps."""
    sleep_ms = 30
    probe = Probe(s, *s.every, "--kernel", "--calls", "cuOccupancy*,cuCtxSynchronize")
    done = s.start(WORKLOADS / "off_cpu", "--pages", 100, "--sleep", sleep_ms, preload=False, stdout=subprocess.PIPE, text=True)
    printed = done.communicate(timeout=DEADLINE_S)[0]
    equal((done.returncode, printed), (0, 2 * "100 page faults\n1 sleeps\n"), "the program's status, and the kernel's counts")
    with HungCall(s, start=lambda *command, **options: s.start(*command, preload=False, **options)) as hung:
        wait_for("the call to sleep", lambda: pathlib.Path(f"/proc/{hung.pid}/stat").read_text().rpartition(")")[2].split()[0] == "S")
        hung.release()
    s.flush_until("their ends", lambda: s.value("SELECT count(*) FROM processes WHERE state = 'exited'") == 2)
    calls = s.rows("""SELECT duration_ns, ifnull(blocked, 0), ifnull(blocked_ns, 0), ifnull(preempted_ns, 0), ifnull(page_faults, 0)
                        FROM calls LEFT JOIN (SELECT call_id, blocked, blocked_ns, preempted_ns, page_faults FROM off_cpu) USING (call_id)
                       WHERE layer = 'driver' AND pid = ? ORDER BY call_id""", done.pid)
    # Check only the second round of calls. In the first round, mapping the program's code causes additional page faults.
    touching, sleeping, idle = calls[3:]
    equal((touching[1], touching[4]), (0, 100), "sleeps and page faults of the call that touches pages")
    equal((sleeping[1], sleeping[4]), (1, 0), "those of the call that sleeps")
    equal((idle[1], idle[4]), (0, 0), "those of the call that does nothing")
    # The recorded sleep may be much shorter than requested, because the processor of a virtual machine may be stopped until the sleep is
    # nearly over.
    check(0 < sleeping[2] and sleeping[2] + sleeping[3] <= sleeping[0], "time off the processor, of a sleep of", sleep_ms, "ms:", sleeping)
    equal(s.rows("SELECT name, blocked_ns > 0 AND blocked_ns <= duration_ns FROM waits JOIN processes USING (process_id) WHERE pid = ?", hung.pid),
          [("cuCtxSynchronize", 1)], "the wait of the call that hung")
    equal(s.rows("SELECT DISTINCT depth FROM calls WHERE layer = 'kernel'"), [(1,)], "the depth of the events")
    found = s.report("--pid", done.pid, "blocked", "faults", "kernel")
    for section, column, events in (("blocked", "blocked_ms", sum(call[2] / 1e6 for call in calls)),
                                    ("faults", "page_faults", sum(call[4] for call in calls))):
        for rows in found[section], found["kernel"]:
            check(abs(sum(row[column] for row in rows) - events) < 0.01, column, rows, events)
    equal(late(s), 0, "late rows")
    probe.end()


def other_namespace(s):
    if can("pid namespaces", "a process of another pid namespace"):
        whole(s, "--threads", "3", "--calls", "500", within=["unshare", "--pid", "--fork"])


def many_threads(s):
    """Tests a process with more threads than fit into the probe's map in the kernel."""
    whole(s, "--threads", "1500", "--calls", "50")


def in_top(s):
    """Checks that `top` counts a probed process, and does not list it as untraced."""
    def pids(rows):
        return [row["pid"] for row in rows]

    p = Program(s, "steps")
    top = [CUDATRACE, "top", "--session", s.name, "--once", "--json"]
    before = json.loads(s.run(*top, preload=False).stdout)
    equal((before["probed"], p.pid in pids(before["untraced"])), (0, True), "before")
    probe = Probe(s, "--pid", p.pid)
    p.step(10)
    await_stored(s, p.pid, {VERSION: 10})
    during = json.loads(s.run(*top, preload=False).stdout)
    equal((during["probed"], p.pid in pids(during["untraced"]), p.pid in pids(during["processes"])), (1, False, True), "with a probe")
    probe.end()
    p.end()


# ---- kills ----


def programs_of(probe):
    """Returns the IDs of the BPF programs that the probe has loaded into the kernel."""
    ids = set()
    for info in pathlib.Path(f"/proc/{probe.child.pid}/fdinfo").iterdir():
        with contextlib.suppress(FileNotFoundError):  # closed
            ids.update(int(line.split()[1]) for line in info.read_text().splitlines() if line.startswith("prog_id:"))
    check(ids and ids <= programs(), "the probe's programs", ids)
    return ids


def programs():
    """Returns the IDs of all BPF programs in the kernel."""
    tool = shutil.which("bpftool") or "/usr/sbin/bpftool"
    return {program["id"] for program in json.loads(subprocess.run([tool, "-j", "prog", "show"], stdout=subprocess.PIPE, check=True).stdout)}


def probe_killed(s):
    """Checks that if the probe is killed, all calls that it has seen are stored, its BPF programs are unloaded, and the next probe of the
    process continues."""
    p = Program(s, "steps", 2)
    before = truth_of(s, p.pid)
    probe = Probe(s, "--pid", p.pid)
    kept = programs_of(probe)
    p.step(200)
    seen = dict(truth_of(s, p.pid) - before)
    await_stored(s, p.pid, seen)
    probe.end(-signal.SIGKILL, signal.SIGKILL)
    wait_for("the programs to leave the kernel", lambda: not kept & programs())
    p.step(30)
    second = Probe(s, "--pid", p.pid)
    between = truth_of(s, p.pid)
    p.step(100)
    expected = dict(collections.Counter(seen) + (truth_of(s, p.pid) - between))
    await_stored(s, p.pid, expected)
    equal(s.value("SELECT count(*) FROM processes WHERE pid = ?", p.pid), 1, "processes that it is in the trace")
    second.end()
    p.end()


def killed_in_order(s, *order):
    """Kills the probe, the daemon and the process in the given order. Checks that the next daemon stores all calls made while both the
    probe and the process were alive, and that no BPF programs stay in the kernel."""
    p = Program(s, "steps", 2)
    before = truth_of(s, p.pid)
    probe = Probe(s, "--pid", p.pid)
    kept, expected = programs_of(probe), {}
    kill = {
        "probe": lambda: probe.end(None, signal.SIGKILL),  # it ends by itself after its process
        "daemon": lambda: (s.daemon.kill(), s.daemon.wait()),
        "process": lambda: (p.child.kill(), p.child.wait()),
    }
    for number, victim in enumerate(order):
        if not {"probe", "process"} & set(order[:number]):
            p.step(50 + number)
            expected = dict(truth_of(s, p.pid) - before)
        kill[victim]()
    wait_for("the programs to leave the kernel", lambda: not kept & programs())
    s.start_daemon()
    await_stored(s, p.pid, expected)
    s.flush_until("the process's end", lambda: s.value("SELECT state FROM processes WHERE pid = ?", p.pid) in ("killed", "detached"))
    equal((stored_of(s, p.pid), late(s)), (expected, 0), "the stored calls in the end, and late ones")


def daemon_killed(s):
    """Checks that if the daemon is killed, the next daemon stores the calls made in the meantime, and that recording also continues after a
    daemon was stopped normally."""
    p = Program(s, "steps", 2)
    probe = Probe(s, "--pid", p.pid)
    p.step(100)
    s.flush_until("the first calls", lambda: stored_of(s, p.pid).get(VERSION) == 200)
    s.daemon.kill()
    s.daemon.wait()
    p.step(50)
    s.start_daemon()
    s.flush_until("those that were made without a daemon", lambda: stored_of(s, p.pid).get(VERSION) == 300)
    p.step(25)
    s.flush_until("those behind", lambda: stored_of(s, p.pid).get(VERSION) == 350)
    s.stop_daemon()
    s.start_daemon()
    wait_for("the process's writer to find it", lambda: s.status().get("processes") == "1")
    p.step(10)
    s.flush_until("those of the next daemon", lambda: stored_of(s, p.pid).get(VERSION) == 370)
    probe.end()
    p.end()


def executes(s):
    """Checks that a process that execs another program appears as two processes in the trace."""
    p = Program(s, "exec")
    probe = Probe(s, *s.every)
    p.child.send_signal(signal.SIGUSR1)
    s.flush_until("two programs", lambda: s.value("SELECT count(*) FROM processes WHERE pid = ?", p.pid) >= 2)
    p.end(signal.SIGTERM)
    probe.end()


CHAIN = """
import ctypes, os, sys
left = int(sys.argv[1])
if left == 2:
    print("ready", flush=True)
    sys.stdin.readline()
driver = ctypes.CDLL(sys.argv[2])
for _ in range(5):
    driver.cuDriverGetVersion(ctypes.byref(ctypes.c_int()))
if left > 0:
    os.execv(sys.executable, [sys.executable, sys.argv[0], str(left - 1), sys.argv[2]])
"""


def executes_named(s):
    """Tests a process selected with --pid that loads the driver only after the probe has started, and then execs two other programs before
    the probe examines the process again."""
    script = s.dir / "chain.py"
    script.write_text(CHAIN)
    p = s.start(sys.executable, script, 2, s.driver_file, preload=False, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    equal(p.stdout.readline(), "ready\n", "the first program")
    probe = Probe(s, "--pid", p.pid, "--library", s.driver_file)
    os.kill(probe.child.pid, signal.SIGSTOP)
    p.communicate("\n", timeout=DEADLINE_S)
    os.kill(probe.child.pid, signal.SIGCONT)
    probe.end(number=None)
    s.flush()
    equal(stored_of(s, p.pid), {VERSION: 15}, "the calls of three programs")


def executes_late(s):
    """Checks that the probe survives if a writer exits before it has received the probe's message. The probed process execs another program
    and is killed at once."""
    p = Program(s, "exec")
    probe = Probe(s, *s.every)
    writer = wait_for("a writer", lambda: writer_of(probe, p.pid))
    os.kill(probe.child.pid, signal.SIGSTOP)
    p.child.send_signal(signal.SIGUSR1)
    equal(p.child.stdout.readline(), "ready\n", "the other program")
    p.child.kill()
    p.child.wait()
    wait_for("the writer to end", lambda: first_thread_has_ended(writer))
    os.kill(probe.child.pid, signal.SIGCONT)
    probe.end()


def closed_files(s):
    """Checks that a probe started with closed standard descriptors has only /dev/null as descriptors 0 to 2."""
    p = Program(s, "steps")
    child = s.start("sh", "-c", 'exec "$@" <&- >&- 2>&-', "sh", PROBE, "--session", s.name, "--pid", p.pid, preload=False)
    s.flush_until("the process", lambda: (p.pid,) in s.rows("SELECT pid FROM processes"))
    for number in range(3):
        equal(os.readlink(f"/proc/{child.pid}/fd/{number}"), "/dev/null", f"descriptor {number}")
    p.end()
    equal(child.wait(DEADLINE_S), 0, "the probe's status")


# ---- refusals ----


def wrong(s):
    equal(s.run(PROBE, preload=False, status=2).stderr, "cudatrace: probe: specify either --pid PID, --all, --children PID, --hooked or COMMAND (see cudatrace probe --help)\n", "no process")
    p = Program(s, "steps")
    probe = Probe(s, "--pid", p.pid)
    said = s.run(PROBE, "--session", s.name, "--pid", p.pid, preload=False, status=1).stderr
    check(f"has a probe already (process {probe.child.pid})" in said, said)
    thread = max(int(task.name) for task in pathlib.Path(f"/proc/{p.pid}/task").iterdir())
    equal(s.run(PROBE, "--pid", thread, preload=False, status=1).stderr,
          f"cudatrace: probe: {thread} is a thread of process {p.pid}: use --pid with the process\n", "a thread")
    os.kill(p.pid, signal.SIGKILL)  # it stays a zombie
    probe.end(number=None)
    hooked = s.start(*[WORKLOADS / "attached", "--do", "read", 1], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    equal(hooked.stdout.readline(), "ready\n", "a program with the hook")
    probe = Probe(s, "--pid", hooked.pid)
    check(f"process {hooked.pid} is not recorded: the hook records it" in probe.said and "\nprobe: 0 functions" in probe.said, probe.said)
    hooked.communicate("\n", timeout=DEADLINE_S)
    probe.end(number=None)
    if can("several users", "a probe without rights"):
        said = s.run("setpriv", "--reuid", "65534", "--clear-groups", PROBE, "--session", s.name, "--all", preload=False, status=1).stderr
        check("CAP_BPF" in said, said)


def unfit_kernel(s):
    """Checks that the probe and `cudatrace doctor` report a kernel that has no BTF or is too old."""
    if not can("mount namespaces", "a kernel without BTF"):
        return
    for change, why in (("true", "the kernel has no BTF: /sys/kernel/btf/vmlinux cannot be read"),
                        ("echo >/sys/kernel/btf/vmlinux", f"Linux {os.uname().release} is too old: the probe needs Linux 5.15 or later\n")):
        within = ["unshare", "-m", "sh", "-c", f'mount -t tmpfs none /sys/kernel/btf && {change} && exec "$@"', "sh"]
        said = s.run(*within, PROBE, "--session", s.name, "--all", preload=False, status=1).stderr
        check(f"cudatrace: probe: {why}" in said, said)
        said = s.run(*within, CUDATRACE, "doctor", "--session", s.name, preload=False, status=None).stdout
        check(f"`cudatrace probe` cannot run: {why}" in said, said)


def other_user(s):
    """Checks that if the user of a process has no daemon, the daemon of the user that runs the probe records the process. Also checks that
    a probe reports if it finds no functions to attach to."""
    if not can("several users", "a process of another user"):
        return
    p = Program(s, "steps", within=["setpriv", "--reuid", "65534", "--regid", "65534", "--clear-groups"], env={"SIMCUDA_COUNTS": ""})
    nothing = Probe(s, "--pid", p.pid, "--calls", "cuNothing")
    check("it exports no driver function that --calls includes" in nothing.said and "probe: 0 functions" in nothing.said, nothing.said)
    nothing.end()
    probe = Probe(s, "--pid", p.pid)
    p.step(30)
    await_stored(s, p.pid, {VERSION: 30})
    equal(s.value("SELECT uid FROM processes WHERE pid = ?", p.pid), 65534, "its user")
    probe.end()
    p.end()


def attach(s, p, *options):
    return [CUDATRACE, "attach", "--session", s.name, "--db", s.db, "--stay", *options, p.pid]


def run_while_it_steps(s, p, calls, *command):
    """Runs the command while the program keeps making calls."""
    running = s.start(*command, preload=False, stderr=subprocess.PIPE)
    while running.poll() is None:
        p.step(calls)
    equal(running.returncode, 0, f"the status of {command[1]}")


def removed_segments(pid):
    """Returns the files in /dev/shm that the process has open and that have been removed. Checks the number of links, because a file that
    was created without a name may have been given one since."""
    removed = []
    for link in pathlib.Path(f"/proc/{pid}/fd").iterdir():
        with contextlib.suppress(FileNotFoundError):  # closed
            if os.readlink(link).startswith("/dev/shm/") and os.stat(link).st_nlink == 0:
                removed.append(os.readlink(link))
    return removed


def taken_over(s, method, target, *options):
    """Checks that a running probe takes over a process when `cudatrace detach` detaches from it, so that no call is missed or recorded
    twice. If the process was attached to with --inline, jumps stay in the code until the detach, and the probe begins to record soon after
    the detach."""
    p = Program(s, "steps", 4)
    run_while_it_steps(s, p, 1, *attach(s, p, *options))
    s.flush()
    before, truth = stored_of(s, p.pid), truth_of(s, p.pid)
    probe = Probe(s, *(s.every if target == "every" else ["--pid", p.pid]), "--method", method, "--verbose")
    p.step(100)
    run_while_it_steps(s, p, 5000, CUDATRACE, "detach", p.pid)
    if options:
        if "functions of" not in probe.said:
            probe.await_line("functions of")
        s.flush()
        before, truth = stored_of(s, p.pid), truth_of(s, p.pid)
    p.step(1000)
    await_stored(s, p.pid, dict(collections.Counter(before) + truth_of(s, p.pid) - truth))
    for process in probe.child.pid, writer_of(probe, p.pid):
        wait_for("the hook's segment to be closed", lambda: not removed_segments(process))
    probe.end()
    p.end()
    s.flush()
    equal(s.rows("SELECT count(DISTINCT process_id), count(DISTINCT tid) FROM threads JOIN processes USING (process_id) WHERE pid = ?", p.pid),
          [(1, 4)], "processes and threads")
    equal(late(s), 0, "late rows")


def attached(s, *options):
    """Checks that attach refuses a process while it is probed. Also checks that the probe leaves out a library while a process's copy of it
    contains jumps written by `attach --inline`. The kernel would put a breakpoint into a jump, and the process would crash."""
    p = Program(s, "steps", 2)
    probe = Probe(s, "--pid", p.pid)
    refused_by = s.run(*attach(s, p, *options), preload=False, status=1).stderr
    check("has breakpoints at" in refused_by, refused_by)
    probe.end()
    run_while_it_steps(s, p, 1, *attach(s, p, *options))
    probe = Probe(s, *s.every)
    p.step(10)
    check(("probes there would crash it" in probe.said) == ("--inline" in options), probe.said)
    probe.end()
    s.run(CUDATRACE, "detach", p.pid, preload=False)
    p.end()


def in_use(s, target):
    """Checks that the probe prints a message if it cannot attach to a library because another command is working on a process that has
    loaded it. Once the probe has attached, it must report that the functions are probed, and record all calls from then on, even if the
    process has ended."""
    p = Program(s, "steps")
    stranger = lock_as_stranger(s, p.pid) if can("several users", "a lock of another user") else None
    folder = lock(p.pid)
    probe = Background(s, CUDATRACE, "probe", "--session", s.name, *(s.every if target == "every" else ["--pid", p.pid]))
    line = probe.await_line("probe: ")
    check(f"process {p.pid} is being attached to or detached by another command (process {os.getpid()})" in line, probe.said)
    if target == "every":
        p.end()
    os.close(folder)
    probe.await_line("functions are probed")
    if stranger:
        stranger.communicate(timeout=DEADLINE_S)
    if target == "every":
        p = Program(s, "steps")
    before = truth_of(s, p.pid) if target == "one" else collections.Counter()
    p.step(10)
    await_stored(s, p.pid, dict(truth_of(s, p.pid) - before))
    probe.end()
    p.end()


def flood(s):
    """Runs eight processes of four threads at full speed. For each function, stored and lost calls must add up to the driver's count."""
    probe = Probe(s, *s.every)
    children = [s.start(WORKLOADS / "calls", "--mix", mix, "--threads", "4", "--calls", by_tier("2000", "20000"), "--seed", str(i), preload=False,
                        stdout=subprocess.DEVNULL) for i, mix in enumerate(["training", "launch", "getctx", "alloc"] * 2)]
    for child in children:
        equal(child.wait(DEADLINE_S), 0, "a program's status")
    expected = {(child.pid, name): calls for child in children for name, calls in truth_of(s, child.pid).items()}
    s.flush_until("all to have ended", lambda: s.value("SELECT count(*) FROM processes WHERE state = 'exited'") >= 8)
    probe.end()
    s.flush()
    seen = s.totals()
    differ = {key: (seen.get(key), calls) for key, calls in expected.items() if seen.get(key) != calls}
    equal(differ, {}, "calls in the trace and in the driver that differ")
    s.check_identity(lost=None)


TESTS = [*((exact, method) for method in METHODS), (whole_life,), (whole_life, "cuMem*"), *((nested, method) for method in by_tier(METHODS[:1], METHODS)),
         (short_lives,), (hooked,), (in_top,), (kernel_events,), (other_namespace,), *by_tier([], [(many_threads,)]), *((hidden, how) for how in PLACES), (open_calls,), (probe_killed,),
         *((killed_in_order, *order) for order in by_tier([("process", "probe", "daemon"), ("daemon", "probe", "process")],
                                                          itertools.permutations(("probe", "daemon", "process")))),
         (daemon_killed,), (executes,), (executes_named,), (executes_late,), (closed_files,), (wrong,),
         (in_use, "one"), (in_use, "every"),
         (unfit_kernel,), (other_user,), (flood,)]
if SHAPE:
    inline = ["--inline"] if SHAPE.endswith("-unknown") else []
    TESTS += [(attached, *inline), (taken_over, METHODS[0], "every", *inline), (taken_over, METHODS[1], "one", *inline)]
# Arguments select tests by name, with or without the tests' parameters: "exact" or "exact multi".
names = {" ".join(getattr(part, "__name__", part) for part in test): test for test in TESTS}
for unknown in set(sys.argv[1:]) - {name for long in names for name in (long, long.split()[0])}:
    sys.exit(f"no test is called '{unknown}'")
for name, test in names.items():
    if sys.argv[1:] and not {name, test[0].__name__} & set(sys.argv[1:]):
        continue
    print(name, flush=True)
    with OwnDriver() as s:
        s.start_daemon()
        test[0](s, *test[1:])
