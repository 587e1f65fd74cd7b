"""Tests `cudatrace attach` and `detach`. Every call that a running process makes between attach and detach must be recorded. The process's
results, errno, signals, sleeping system calls, exit status and output must not change. If a process cannot be attached to, the command must
report one error. Arguments select tests by name. By default, all tests of the current tier run."""
import fcntl
import os
import pathlib
import re
import shutil
import signal
import subprocess
import sys

from attach_test import INLINE, Attach, attach, await_leave, detach, mapped, recorded, state_of, tracer_of
from cudatrace_test import BUILD, CUDATRACE, DEADLINE_S, Session, by_tier, can, check, equal, fifo, has_closed, needs, refuse_system_call, wait_for
from needs import become_nobody, sleeper
from screen_test import Screen, findable
from untraced import PROGRAM, VERSION, Program, lock, lock_as_stranger

# ---- recorded calls ----


def exact(s, threads):
    """Checks that the trace begins with the call that loads the hook, and ends with the last call made before attach ends."""
    p = Program(s, "steps", threads)
    files = sorted(os.listdir(f"/proc/{p.pid}/fd"))
    p.step(10)
    a = Attach(s, p.pid)
    a.await_armed(p.pid)
    p.step(1)
    a.await_line("is recorded")
    p.step(500)
    a.end()
    p.step(100)
    first = recorded(s, p.pid)
    begun = first - threads * 500  # one thread's call loads the hook; calls of other threads at that time are not recorded
    check(1 <= begun <= threads, "calls of", threads, "threads between attach and its end:", first)
    before = mapped(p.pid)
    equal(before[1], files, "descriptors of the process")

    # Attach again, now that the library is loaded, with --stay, and then detach.
    a = Attach(s, p.pid, "--stay")
    a.await_armed(p.pid)
    p.step(1)
    a.end(number=None)
    p.step(300)
    check("is already attached to, in session" in attach(s, p.pid, status=1), "attaching twice")
    said = detach(s, p.pid)
    both = recorded(s, p.pid)
    check(1 <= both - first - threads * 300 <= threads, "calls of the second time:", both - first)
    check(f"{both} of its calls are in" in said, "detach said", said)
    equal(mapped(p.pid), before, "what is mapped and open after the second time")
    check("is not attached to" in detach(s, p.pid, status=1), "detaching twice")
    p.step(7)
    p.end()
    truth = {name: calls for (pid, name), calls in s.truth().items() if pid == p.pid}
    equal(truth[VERSION], threads * (10 + 1 + 500 + 100 + 1 + 300 + 7), "calls that the driver counted")
    equal(recorded(s, p.pid), both, "calls at the end")


def chosen(s):
    """Checks that --calls and --layers select calls as they do for `cudatrace run`."""
    p = Program(s, "steps")
    a = Attach(s, p.pid, "--calls", f"!{VERSION}")
    a.await_armed(p.pid)
    p.step(1)
    a.await_line("is recorded")
    p.step(50)
    a.end()
    p.end()
    equal(s.rows("SELECT sum(stored), sum(skipped) FROM totals JOIN processes USING (process_id) WHERE pid = ?", p.pid), [(0, 51)],
          "calls left out")


def to_the_end(s):
    """Checks that if a recorded process exits, all calls up to its exit are in the trace."""
    p = Program(s, "steps")
    a = Attach(s, p.pid)
    a.await_armed(p.pid)
    p.step(1)
    a.await_line("is recorded")
    p.step(41)
    p.end()
    said = a.end(number=None)
    check("has ended: its earlier calls are recorded" in said, said)
    equal(recorded(s, p.pid), 42, "calls to the end")


def printed(s):
    """Checks that --print prints the calls of the attached process, even when attaching for the second time, and no calls of the session's
    other processes."""
    p = Program(s, "steps")
    listed = s.dir / "calls.txt"
    other = Program(s, "steps")
    o = Attach(s, other.pid)
    o.await_armed(other.pid)
    other.step(1)
    o.await_line("is recorded")
    for options in ["--print"], ["--output", listed]:
        a = Attach(s, p.pid, *options)
        a.await_armed(p.pid)
        p.step(1)
        a.await_line("is recorded")
        p.step(50)
        other.step(20)
        s.flush()
        while "--print" in options and a.said.count(f"{VERSION}()") < 51:
            a.await_line(VERSION)
        a.end()
        lines = listed.read_text() if listed in options else a.said
        equal(len(re.findall(rf" {p.pid}(?:/\d+)? +{VERSION}\(.*\) = CUDA_SUCCESS <", lines)), 51, f"lines of {options}")
        equal(lines.count(f"{VERSION}("), 51, f"all lines of {options}")
    o.end()

    # After SIGINT, the command blocks when it tries to write the remaining lines to the FIFO, which is full. A second signal terminates the
    # command.
    with fifo(s.dir, "unread") as path:
        reader = os.open(path, os.O_RDONLY | os.O_NONBLOCK)
        fcntl.fcntl(reader, fcntl.F_SETPIPE_SZ, 4096)
        a = Attach(s, p.pid, "--output", path)
        a.await_line("waiting for its next CUDA call")
        p.step(1)
        a.await_line("is recorded")
        p.step(500)
        a.child.send_signal(signal.SIGINT)
        wait_for("the end of the lines", lambda: has_closed(a.child, s.db))
        a.end(status=-signal.SIGTERM, number=signal.SIGTERM)
        os.close(reader)
    for program in p, other:
        program.end()


def from_top(s):
    """Checks that pressing `t` in `cudatrace top` attaches to a process, and that the process is still recorded after top exits."""
    if not can("tmux", "attach by a key") or not can("terminals", "attach by a key"):
        return
    s.start_daemon()
    program = findable(s, PROGRAM)
    p = Program(s, "steps", program=program)
    with Screen(s, 120, 24, "--find", str(program)) as screen:
        screen.wait_for_text(f"{p.pid}  not traced", "0 processes, 1 not traced", "t attach")
        screen.press("t")
        if INLINE:  # top does not attach with --inline
            screen.wait_for_sentence("has an unknown driver")
            p.end()
            s.stop_daemon()
            return
        screen.wait_for_text(f"attach: process {p.pid} (attached): waiting for its next CUDA call")
        p.step(1)
        screen.wait_for_text(f"attach: process {p.pid} (attached) is recorded", "1 process ", "Enter functions")
        p.step(50)
        screen.press("q")
        wait_for("the end of top", screen.has_ended)
    p.step(9)
    detach(s, p.pid)
    equal(recorded(s, p.pid), 60, "calls from the key to the detach")
    text = s.run(CUDATRACE, "top", "--db", s.db, "--once", "--interval", "0.1", "--find", p.pid, preload=False).stdout
    check(str(p.pid) in text.partition("not traced:")[2], "a detached process", text)
    p.end()
    s.stop_daemon()


def kept_by_the_dead(s):
    """Checks that a process is recorded until detach, even if `cudatrace attach` is killed. If the command is killed while it waits for the
    process's next call, its thunks remain in the process until the next attach or detach removes them."""
    p = Program(s, "steps")
    a = Attach(s, p.pid)
    a.await_line("waiting for its next CUDA call")
    a.end(-signal.SIGKILL, signal.SIGKILL)
    check("was not recorded yet, and will not be" in detach(s, p.pid), "thunks alone")
    p.step(3)
    a = Attach(s, p.pid)
    a.await_armed(p.pid)
    p.step(1)
    a.await_line("is recorded")
    a.end(-signal.SIGKILL, signal.SIGKILL)
    p.step(4)
    detach(s, p.pid)
    p.step(5)
    p.end()


# ---- unchanged behaviour ----


def under_load(s, mode, threads=1, rounds=3, number=signal.SIGTERM):
    """Attaches repeatedly while the program makes calls. Checks that the program's results are correct, and that every call reaches the
    driver."""
    p = Program(s, mode, threads)
    for turn in range(rounds):
        a = Attach(s, p.pid)
        a.await_line("is recorded")
        if turn == rounds - 1:
            s.flush_until("a recorded call", lambda: recorded(s, p.pid))
        a.end()
    made = int(re.fullmatch(r"calls (\d+)\n", p.end(number))[1])
    truth = sum(calls for (pid, name), calls in s.truth().items() if pid == p.pid and name == VERSION)
    equal(truth, made, f"calls of {mode} that the driver counted")
    seen = recorded(s, p.pid)
    check(seen <= made, mode, ":", seen, "calls are recorded of", made)


def sleep_in_calls(s):
    """Checks that a thread that sleeps in a system call does not notice when attach stops it, even several times. Tests each system call in
    a separate process."""
    programs = [Program(s, mode) for mode in ("read", "poll", "ppoll", "select", "epoll", "epoll_pwait", "futex", "wait", "socket", "constant",
                                              "signal")]
    a = Attach(s, *(p.pid for p in programs))
    for p in programs:
        a.await_armed(p.pid)
    a.end()
    said = attach(s, "--wait", "1s", *(p.pid for p in programs), status=1)
    for p in programs:
        check(f"process {p.pid} (attached) made no CUDA call in this time and was not changed" in said, p.mode, said)
    for p in programs:
        if p.mode == "signal":
            p.child.send_signal(signal.SIGUSR2)
        else:
            write_line(p)
        check(re.fullmatch(r"woke \d+ fine\n", end := p.end()), p.mode, "woke with", end)


def sleep_for_a_time(s):
    """Checks that a thread's sleep does not become longer when attach stops the thread. The call after the sleep is recorded, unless the
    command has already detached from the process."""
    p = Program(s, "nanosleep")
    Attach(s, p.pid).end(number=None, status=None)
    check(re.fullmatch(r"woke \d+ fine\n", end := p.end()), "it woke with", end)


def write_line(p):
    p.child.stdin.write("\n")
    p.child.stdin.flush()


def stopped(s):
    """Checks that a process stopped by a signal is still stopped after attach. The process is recorded from SIGCONT on, and can be detached
    while it is stopped."""
    p = Program(s, "calls")
    p.child.send_signal(signal.SIGSTOP)
    os.waitid(os.P_PID, p.pid, os.WSTOPPED | os.WNOWAIT)
    said = attach(s, p.pid, "--wait", "1s", status=1)
    check("a signal has stopped it" in said, said)
    a = Attach(s, p.pid)
    a.await_armed(p.pid)
    wait_for("the process to be stopped again", lambda: state_of(p.pid) == "T")
    p.child.send_signal(signal.SIGCONT)
    a.await_line("is recorded")
    a.end()
    p.end(signal.SIGTERM)
    p = Program(s, "steps")
    a = Attach(s, p.pid)
    a.await_armed(p.pid)
    p.step(1)
    a.await_line("is recorded")
    p.child.send_signal(signal.SIGSTOP)
    os.waitid(os.P_PID, p.pid, os.WSTOPPED | os.WNOWAIT)
    a.end()
    wait_for("the process to be stopped again", lambda: state_of(p.pid) == "T")
    p.child.send_signal(signal.SIGCONT)
    p.step(5)
    equal(recorded(s, p.pid), 1, "calls before the stop")
    p.end()


def killed(s):
    p = Program(s, "calls", 2)
    a = Attach(s, p.pid)
    a.await_line("is recorded")
    p.child.kill()
    p.child.communicate()
    check("has ended: its earlier calls are recorded" in a.end(number=None), a.said)
    p = Program(s, "steps")
    a = Attach(s, p.pid)
    a.await_armed(p.pid)
    p.child.kill()
    p.child.communicate()
    check("has ended, before it was recorded" in a.end(1, number=None), a.said)


def executing(s):
    p = Program(s, "exec")
    a = Attach(s, p.pid)
    a.await_line("is recorded")
    p.child.send_signal(signal.SIGUSR1)
    check("executes another program now: its earlier calls are recorded" in a.end(number=None), a.said)
    equal(p.child.stdout.readline(), "ready\n", "the program behind exec")
    a = Attach(s, p.pid)
    a.await_line("is recorded")
    a.end()
    p.end(signal.SIGTERM)


def cut_short(s):
    """Checks that if the command is killed while the program is stopped, the command's tracer process survives and lets the program
    continue."""
    p = Program(s, "calls")
    for _ in range(by_tier(3, 8)):
        command = Attach(s, p.pid, "--stay").child
        wait_for("the program to be stopped", lambda: tracer_of(p.pid) != 0 or command.poll() is not None)
        command.kill()
        command.communicate()  # the tracer has the pipe open, too
        wait_for("the tracer to end", lambda: tracer_of(p.pid) <= 0)
        detach(s, p.pid, status=None)
    p.end(signal.SIGTERM)


def left_at_once(s):
    """Runs several `cudatrace detach` commands for one process at the same time. Checks that one command succeeds, and that the others
    print a message."""
    p = Program(s, by_tier("paced", "calls"), 8)
    for _ in range(by_tier(1, 3)):
        Attach(s, p.pid, "--stay").end(number=None)
        children = [s.start(CUDATRACE, "detach", p.pid, preload=False, stderr=subprocess.PIPE, text=True) for _ in range(4)]
        said = [child.communicate(timeout=DEADLINE_S)[1] for child in children]
        known = ("of its calls are in", "was detached by another command", "is not attached to", "is being attached to", "is traced by process")
        check(all(any(what in lines for what in known) and "is still recorded" not in lines for lines in said), said)
        check(any("of its calls are in" in lines for lines in said), said)
        check("is not attached to" in detach(s, p.pid, status=1), "it was left")
    p.end(signal.SIGTERM)


def left_after_another(s):
    """Checks that detach waits while another command is working on the process."""
    p = Program(s, "paced")
    Attach(s, p.pid, "--stay").end(number=None)
    folder = lock(p.pid)
    child = s.start(CUDATRACE, "detach", p.pid, preload=False, stderr=subprocess.PIPE, text=True)
    check("waiting for another command that is busy with it" in child.stderr.readline(), "the command did not wait")
    equal(child.poll(), None, "its status meanwhile")
    os.close(folder)
    said = child.communicate(timeout=DEADLINE_S)[1]
    equal(child.returncode, 0, said)
    check("of its calls are in" in said, said)
    p.end(signal.SIGTERM)


def locked(s):
    """Checks that Ctrl-C ends the wait for another command at the end of a recording, and that the message names that command. Another user
    must not be able to take the lock."""
    p = Program(s, "paced")
    stranger = lock_as_stranger(s, p.pid) if can("several users", "a lock of another user") else None
    a = Attach(s, p.pid)
    a.await_line("is recorded")
    folder = lock(p.pid)
    said = attach(s, p.pid, status=1)
    check("is already attached to" in said, said)
    a.child.send_signal(signal.SIGINT)
    a.await_line("waiting for another command that is busy with it")
    said = a.end(status=1)
    check(f"is still recorded: another command (process {os.getpid()}) keeps its lock" in said, said)
    os.close(folder)
    detach(s, p.pid)
    folder = lock(p.pid)
    said = attach(s, p.pid, status=1)
    check(f"is being attached to or detached by another command (process {os.getpid()})" in said, said)
    os.close(folder)
    if stranger:
        stranger.communicate(timeout=DEADLINE_S)
    p.end(signal.SIGTERM)


def vforked(s):
    """A child of vfork() runs in its parent's memory, so attaching to the child must not map anything."""
    p = Program(s, "vforked")
    children = wait_for("the child", pathlib.Path(f"/proc/{p.pid}/task/{p.pid}/children").read_text).split()
    said = attach(s, children[0], "--wait", "1s", status=1)
    check(f"shares the memory of its parent, process {p.pid}" in said, said)
    equal(mapped(p.pid)[0], [], "what is mapped into the parent")
    write_line(p)
    equal(p.end(), "woke 0 fine\n", "its end")


def crowded(s):
    """Checks that if attach could map only a part of the library, the next attach does not take the library for loaded."""
    most = int(pathlib.Path("/proc/sys/vm/max_map_count").read_text())
    if most > 100000:
        print("not tried: a crowded process: vm.max_map_count is", most)
        return
    p = Program(s, "crowd")
    wait_for("its mappings", lambda: pathlib.Path(f"/proc/{p.pid}/maps").read_bytes().count(b"\n") > most - 16)
    for _ in range(by_tier(2, 3)):
        said = attach(s, p.pid, status=1)
        check("could not load the hook" in said or "too many mappings" in said, said)
    p.end(signal.SIGTERM)


# ---- selection of processes ----


class Namespace:
    """A pid namespace that contains only this test's processes, with its own /proc."""

    def __init__(self, s):
        self.s = s
        self.child = s.start("unshare", "-p", "-f", "--mount-proc", "cat", preload=False, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        self.child.stdin.write(b"\n")
        self.child.stdin.flush()
        equal(self.child.stdout.read(1), b"\n", "the first process of a namespace")
        self.within = ["nsenter", "-t", inner(self.child.pid), "-p", "-m", "--"]

    def end(self):
        self.child.communicate()


def inner(pid):
    """Returns the pid of the process that runs inside the namespaces. `pid` is the command that creates or enters the namespaces. The
    command either starts the inner process as a child, or becomes it by exec."""
    children = pathlib.Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
    return int(children[0]) if children else pid


def all_and_new(s):
    """Runs `attach --all --new` in a pid namespace. Checks that it attaches to the processes there, and uses the namespace's pids."""
    if not can("pid namespaces", "--all and --new"):
        return
    space = Namespace(s)
    first = Program(s, "steps", within=space.within)
    a = Attach(s, "--all", "--new", within=space.within)
    a.await_armed(inner(first.pid))
    first.step(1)
    pids = [re.search(r"process (\d+) \(attached\) is recorded", a.await_line("is recorded"))[1]]
    second = Program(s, "steps", within=space.within)
    a.await_armed(inner(second.pid))
    second.step(1)
    pids.append(re.search(r"process (\d+) \(attached\) is recorded", a.await_line("is recorded"))[1])
    first.step(5)
    second.step(6)
    first.end()
    a.await_line(f"process {pids[0]} (attached) has ended")
    second.step(7)
    os.kill(inner(a.child.pid), signal.SIGINT)
    a.end(number=None)
    second.step(8)
    second.end()
    space.end()
    equal([recorded(s, int(pid)) for pid in pids], [1 + 5, 1 + 6 + 7], "calls of both")


def contained(s):
    """Attaches to a program in separate namespaces, as in a container, from both outside and inside."""
    kinds = {"mount": ["-m"], "pid": ["-p", "-f", "--mount-proc"], "user": ["-U", "-r"]}
    kinds["all"] = [flag for flags in kinds.values() for flag in flags]
    before = 0
    for kind in by_tier(["all"], kinds):
        flags = kinds[kind]
        if not can("user namespaces" if "-U" in flags else f"{kind} namespaces", f"attach to a program in namespaces: {kind}"):
            continue
        p = Program(s, "steps", within=["unshare", *flags, "--"])
        pid = inner(p.pid)
        number = pathlib.Path(f"/proc/{pid}/status").read_text().split("NSpid:")[1].split("\n")[0].split()[-1]
        enter = ["nsenter", "-t", pid, "-m", *["-p"] * ("-p" in flags), *["-U", "--preserve-credentials"] * ("-U" in flags), "--"]
        for name, target, within in (("outside", pid, ()), ("inside", number, enter)):
            a = Attach(s, target, "--stay", within=within)
            a.await_armed(pid)
            p.step(1)
            a.end(number=None)
            p.step(20)
            s.run(*within, CUDATRACE, "detach", target, preload=False)
            p.step(3)
            await_leave(s)
            seen = s.value("SELECT sum(calls) FROM totals")
            equal(seen - before, 21, f"calls of a program in namespaces ({kind}), attached to from {name}")
            before = seen
        p.end()


def refused(s):
    def says(what, pid, status=1, **options):
        done = s.run(CUDATRACE, "attach", "--session", s.name, "--db", s.dir / "none.db", pid, preload=False, status=status, **options)
        check(what in done.stderr and done.stderr.count("\n") == 1, what, "was to be said of", pid, ":", done.stderr)

    says("does not exist", 2**22 + 1)
    says("is a kernel thread", 2) if pathlib.Path("/proc/2/comm").exists() and \
        pathlib.Path("/proc/2/comm").read_text() == "kthreadd\n" else print("not tried: a kernel thread: none is seen here")
    p = Program(s, "calls", 3)
    thread = next(int(name) for name in os.listdir(f"/proc/{p.pid}/task") if int(name) != p.pid)
    says(f"is a thread of process {p.pid}", thread)
    says("invalid process ID", "5x", status=2)
    zombie = subprocess.Popen(["true"])
    os.waitid(os.P_PID, zombie.pid, os.WEXITED | os.WNOWAIT)
    says("a zombie", zombie.pid)
    zombie.wait()
    cat = s.start("cat", preload=False, stdin=subprocess.PIPE)
    wait_for("cat", lambda: b"libc.so" in pathlib.Path(f"/proc/{cat.pid}/maps").read_bytes())
    says("has not loaded the driver", cat.pid)
    cat.communicate()
    hooked = s.start(PROGRAM, "--do", "calls", 1, stdout=subprocess.PIPE)
    equal(hooked.stdout.readline(), b"ready\n", "a program with the hook")
    says("was started with the hook", hooked.pid)
    hooked.terminate()
    hooked.communicate()
    if can("filters of system calls", "a program with a filter"):
        f = Program(s, "calls", preexec_fn=lambda: refuse_system_call("unshare", 1))
        says("has a system call filter", f.pid)
        f.end(signal.SIGTERM)
    if can("gdb", "a program in a debugger"):
        debugger = subprocess.Popen(["gdb", "-q", "-nx", "-p", str(p.pid)], stdin=subprocess.PIPE, stdout=subprocess.DEVNULL,
                                    stderr=subprocess.DEVNULL, text=True)
        wait_for("gdb", lambda: f"TracerPid:\t{debugger.pid}" in pathlib.Path(f"/proc/{p.pid}/status").read_text())
        says(f"is traced by process {debugger.pid} (gdb)", p.pid)
        debugger.communicate("detach\nquit\n")
    if can("several users", "another user's program"):
        # Copy the files of the build, because user 65534 may not be able to read them in root's home directory. The command must fail
        # because the process belongs to another user, not because it cannot read a file.
        done = subprocess.run([readable(s, CUDATRACE), "attach", str(p.pid)], cwd="/", user=65534, group=65534, extra_groups=[],
                              capture_output=True, text=True, env=dict(os.environ, CUDATRACE_HOOK=readable(s, s.hook)))
        equal((done.returncode, "belongs to user 0: run as that user or as root" in done.stderr), (1, True), done.stderr)
        with sleeper(become_nobody) as hidden:  # a process that changes its user is no longer dumpable
            wait_for("another user", lambda: "Uid:\t65534" in pathlib.Path(f"/proc/{hidden}/status").read_text())
            done = subprocess.run([s.dir / CUDATRACE.name, "attach", str(hidden)], cwd="/", user=65534, group=65534, extra_groups=[],
                                  capture_output=True, text=True, env=dict(os.environ, CUDATRACE_HOOK=str(s.dir / s.hook.name)))
            equal((done.returncode, "is not dumpable (PR_SET_DUMPABLE); run as root" in done.stderr), (1, True), done.stderr)
    p.end(signal.SIGTERM)
    check(not (s.dir / "none.db").exists(), "a trace was made for nothing")
    for command in (["attach"], ["attach", "--all", "1"], ["attach", "--stay", "--new"], ["attach", "--stay", "--print", "1"], ["attach", "--for", "1"], ["detach"], ["detach", "x"]):
        s.run(CUDATRACE, *command, preload=False, status=2)


def readable(s, file):
    """Makes a copy of the file that every user may read and execute, in a folder that every user may enter."""
    s.dir.chmod(0o755)
    return shutil.copy(file, s.dir)


def builds(s):
    """Loads several builds of the hook into one process, one after another. Checks that a build is loaded even if its file descriptor has
    the number that an earlier build's descriptor had."""
    other = BUILD / "tests/faults/libcudatrace.so"
    if not other.exists():
        return
    p = Program(s, "steps", 1)
    for number, hook in enumerate((s.hook, other, s.hook, other)[:by_tier(3, 4)], 1):
        a = Attach(s, p.pid, env={"CUDATRACE_HOOK": hook})
        a.await_armed(p.pid)
        p.step(1)
        a.await_line("is recorded")
        p.step(100)
        a.end()
        equal(recorded(s, p.pid), 101 * number, f"calls behind the attach of number {number}")
    p.end(signal.SIGTERM)


def daemon_gone(s):
    """Checks that if the daemon exits while a process is recorded, attach reports this, and the program continues."""
    p = Program(s, "calls")
    s.start_daemon()
    a = Attach(s, p.pid)
    a.await_line("is recorded")
    s.daemon.kill()
    s.daemon.wait()
    s.daemon = None
    check("the daemon has exited" in a.end(1, number=None), a.said)
    s.start_daemon()
    s.flush()
    p.end(signal.SIGTERM)
    s.stop_daemon()


def detached_without_daemon(s):
    """Checks that detach reports if the daemon was killed. The next daemon of the session stores the calls."""
    p = Program(s, "steps")
    s.start_daemon()
    a = Attach(s, p.pid, "--stay")
    a.await_armed(p.pid)
    p.step(1)
    equal(a.child.wait(), 0, "the status of attach --stay")
    s.flush()
    s.daemon.kill()
    s.daemon.wait()
    s.daemon = None
    p.step(20)
    check("was killed; calls that it has not stored stay in shared memory" in detach(s, p.pid, status=1), "detach does not name the reason")
    s.start_daemon()
    s.flush()
    equal(recorded(s, p.pid), 21, "calls until the detach")
    p.end()
    s.stop_daemon()


# (mode of the program, number of threads, number of attaches)
ROUNDS = by_tier(1, 3)
LOADS = [("calls", 1, by_tier(3, 20, 100)), ("calls", 4, ROUNDS), ("malloc", 2, ROUNDS), ("dlopen", 2, ROUNDS), ("fork", 1, ROUNDS), ("fork", 3, ROUNDS),
         ("vfork", 1, ROUNDS), ("paced", by_tier(50, 500), by_tier(1, 2))]
TESTS = {"exact": lambda s: exact(s, 1), "exact-8": lambda s: exact(s, 8)}
TESTS |= {test.__name__: test for test in (chosen, to_the_end, printed, from_top, kept_by_the_dead, stopped, killed, executing,
                                           all_and_new, contained, refused, builds, daemon_gone, detached_without_daemon, cut_short,
                                           left_at_once, left_after_another, vforked, crowded, sleep_in_calls, sleep_for_a_time, locked)}
TESTS |= {f"load-{mode}-{threads}": lambda s, mode=mode, threads=threads, rounds=rounds: under_load(s, mode, threads, rounds)
          for mode, threads, rounds in LOADS}

needs("ptrace")
for name in sys.argv[1:] or TESTS:
    with Session() as session:
        TESTS[name](session)
        await_leave(session)
    print(name, flush=True)
