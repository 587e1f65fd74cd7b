"""Tests that `cudatrace run` runs a command as if the command were started directly, and leaves the whole trace in one closed file."""
import contextlib
import os
import shutil
import signal
import subprocess
import sys
import tempfile

from cudatrace_test import CUDATRACE, DAEMON, DEADLINE_S, DRIVER_PATH, HOOK, Session, WORKLOADS, can, check, equal, fifo, on_terminal, wait_for

COMPILER = os.environ.get("CC", "cc").split()

with Session() as s:
    done = s.trace(WORKLOADS / "calls", "--threads", 2, "--calls", 1000)
    equal(sorted(os.listdir(s.dir)), ["counts", "trace.db"], "what a run leaves behind")
    plain = s.run(WORKLOADS / "calls", "--threads", 2, "--calls", 1000, preload=False,
                  env={"SIMCUDA_COUNTS": ""})
    equal((done.stdout, done.stderr), (plain.stdout, plain.stderr), "the traced program's output")
    s.check_identity()
    equal(s.value("SELECT count(*) FROM processes WHERE state = 'exited' AND ended_ns > started_ns"), 1, "exited")

    # `run` exits with the command's status, or is killed by the same signal as the command.
    s.trace("sh", "-c", "exit 37", status=37)
    s.trace("sh", "-c", "kill -TERM $$", status=-signal.SIGTERM)
    s.trace("sh", "-c", "kill -SEGV $$", status=-signal.SIGSEGV)
    check("No such file" in s.trace("/nowhere/program", status=127).stderr, "a missing command says so")
    s.trace("/etc/passwd", status=126)

    # The command has the standard input of `run`, and inherits the same descriptors as without `run`.
    equal(s.trace("cat", input="hello\n").stdout, "hello\n", "standard input")
    equal(s.trace("sh", "-c", "ls /proc/self/fd | wc -l").stdout,
          s.run("sh", "-c", "ls /proc/self/fd | wc -l", preload=False).stdout, "open descriptors")

    # If --layers, --calls or --sample excluded all calls, `run` must report that, instead of reporting that the
    # program made no calls.
    calls = (WORKLOADS / "calls", "--calls", 100)
    said = s.run(CUDATRACE, "run", "--session", s.name, "--db", s.db, "--calls", "!*", "--", *calls, preload=False).stderr
    skipped = s.value("SELECT sum(skipped) FROM totals")
    check(f"run: no calls were recorded: {skipped} were excluded by --layers, --calls, --sample" in said, said)
    pid, launches = s.rows("SELECT pid, sum(skipped) FROM totals JOIN processes USING (process_id) WHERE layer = 'driver' AND category = 'launch' AND skipped > 0")[0]
    verdict = s.report("--pid", pid, "bottleneck")["bottleneck"][0]["paragraph"]
    check(launches > 0 and f"to name: {launches} launches were left out by --layers" in verdict, "the verdict", launches, verdict)
    s.run(CUDATRACE, "run", "--db", s.dir / "skipped.db", "--calls", "!*", "--", *calls, preload=False, env={"SIMCUDA_COUNTS": ""})
    equal(s.rows("SELECT count(*) FROM meta WHERE key = 'realtime_offset_ns'", db=s.dir / "skipped.db"), [(1,)], "the time of day of a trace without calls")
    check("no CUDA driver calls were traced" in s.trace("true").stderr, "what is said of a command that makes none")

    # On a terminal, `run` names the trace, the processes that it had before, and the next command.
    if can("terminals", "the line that run prints on a terminal"):
        trace = s.dir / "said.db"
        for earlier, last in ("", ""), (", appended to its earlier run", " --last"), (", appended to its 2 earlier runs", " --last"):
            text, _ = on_terminal(200, "sh", "-c", 'exec "$0" "$@" 2>&1', CUDATRACE, "run", "--db", trace, "--", *calls,
                                  LD_LIBRARY_PATH=str(DRIVER_PATH))
            equal(text.splitlines()[-1], f"cudatrace: traced into {trace}{earlier}: `cudatrace report --db {trace}{last} summary` shows where the time was spent", "the line")

    # `run` forwards signals to the command.
    held = subprocess.Popen([str(CUDATRACE), "run", "--session", s.name, "--db", str(s.db), "--", "sh", "-c",
                             "trap 'exit 9' TERM; echo ready; while :; do read -r x; done"],
                            stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=s.env(preload=False))
    equal(held.stdout.readline(), b"ready\n", "the held command")
    held.send_signal(signal.SIGTERM)
    with contextlib.suppress(BrokenPipeError):  # the command may have ended already
        held.stdin.write(b"\n")
        held.stdin.close()
    equal(held.wait(), 9, "the status after a forwarded signal")
    held.stdout.close()

    # Several runs in one session at the same time share a daemon and a trace.
    before = s.value("SELECT count(*) FROM processes")
    many = [s.start(CUDATRACE, "run", "--session", s.name, "--db", s.db, "--", WORKLOADS / "calls", "--calls", 500,
                    preload=False, stdout=subprocess.DEVNULL) for _ in range(8)]
    equal([p.wait() for p in many], [0] * 8, "eight concurrent runs")
    equal(s.value("SELECT count(*) FROM processes") - before, 8, "their processes")
    s.check_identity()
    s.check_truth()

# If LD_PRELOAD cannot contain the path of the hook, `run` does not start the command, and `cudatrace doctor` reports the same error.
with Session() as s:
    for name in ("p$LIB", "${ORIGIN}x", "my tools", "a:b"):
        folder = s.dir / name
        folder.mkdir()
        env = {"CUDATRACE_HOOK": shutil.copy(HOOK, folder), "CUDATRACE_DAEMON": DAEMON}
        said = s.run(CUDATRACE, "run", "--session", s.name, "--db", s.db, "--", "touch", s.dir / "ran", preload=False, status=1, env=env)
        refusal = f"LD_PRELOAD cannot contain the path '{folder}/libcudatrace.so'"
        check(said.stderr.startswith(f"cudatrace: run: {refusal}") and said.stderr.count("\n") == 1, said.stderr)
        check(f"miss  hook        {refusal}" in s.run(CUDATRACE, "doctor", "--session", s.name, preload=False, status=1, env=env).stdout,
              "what doctor reports of", name)
    equal([path.name for path in s.dir.iterdir() if path.is_file()], [], "files that a refused run has made")


# Linux limits the length of a variable, and `run` adds the hook to LD_PRELOAD.
with Session() as s:
    done = s.run(CUDATRACE, "run", "--session", s.name, "--db", s.db, "--", "true", preload=False, status=126,
                 env={"LD_PRELOAD": ":" * (131072 - len("LD_PRELOAD=") - 1)})
    check("run: true: the variable LD_PRELOAD has " in done.stderr and "only 131072: shorten the variable\n" in done.stderr, "stderr", done.stderr)


def leave_behind(s, hold, began, *options):
    """Returns (arguments, environment) for a run whose command starts a program that hangs in a call, prints the program's pid, and then
    exits."""
    script = s.dir / "leaves.sh"
    script.write_text(f"{WORKLOADS}/hang </dev/null >/dev/null 2>&1 & echo $!; head -c 1 {began} >/dev/null")
    return ("run", "--session", s.name, "--db", s.db, *options, "--", "sh", script), s.env(
        preload=False, SIMCUDA_BLOCK="cuCtxSynchronize", SIMCUDA_BLOCK_NOTIFY=began, SIMCUDA_BLOCK_RELEASE=hold)


def let_go_on(hold):
    with open(hold, "wb") as go:
        go.write(b"\n")


STATE = "SELECT state, cause FROM processes LEFT JOIN losses USING (process_id) WHERE pid = ?"

# Test a process that outlives the command. `run` exits, no process keeps its output open, and the process is still traced.
with Session() as s, fifo(s.dir, "hold") as hold, fifo(s.dir, "began") as began:
    arguments, env = leave_behind(s, hold, began)
    done = subprocess.run([CUDATRACE, *arguments], env=env, capture_output=True, text=True, check=True, timeout=DEADLINE_S)
    pid = int(done.stdout)
    check(f"run: still tracing 1 process that outlived the command ({pid}); stop with `cudatrace stop --session {s.name}`" in done.stderr, done.stderr)
    equal(s.status()["processes"], "1", "processes that the daemon follows")
    let_go_on(hold)
    wait_for("the daemon's end", lambda: not s.is_served())
    equal(s.rows(STATE, pid), [("exited", None)], "it")
    s.check_identity()
    s.check_truth()

    # `run` must find a process that outlives the command even if the process has overwritten its environment, as programs do to set a
    # process title.
    titled = s.dir / "titled.py"
    titled.write_text(f"""import ctypes
assert ctypes.CDLL("libcuda.so.1").cuInit(0) == 0
with open("/proc/self/environ", "rb") as environ:
    size = len(environ.read())
ctypes.memset(ctypes.POINTER(ctypes.c_void_p).in_dll(ctypes.CDLL(None), "environ")[0], 0, size)
with open({str(began)!r}, "wb") as told:
    told.write(b"1")
open({str(hold)!r}, "rb").read(1)
""")
    done = s.trace("sh", "-c", f"{sys.executable} {titled} </dev/null >/dev/null 2>&1 & echo $!; head -c 1 {began} >/dev/null")
    check(f"outlived the command ({int(done.stdout)})" in done.stderr, done.stderr)
    let_go_on(hold)
    wait_for("the daemon's end", lambda: not s.is_served())

    # With --wait, `run` waits until a process that outlives the command has exited. Ctrl-C ends `run`, but not the process.
    for interrupted in (False, True):
        arguments, env = leave_behind(s, hold, began, "--wait")
        waiting = subprocess.Popen([CUDATRACE, *arguments], env=env, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        pid, said = int(waiting.stdout.readline()), waiting.stderr.readline()
        check(f"({pid})" in said and "waiting" in said, said)
        if interrupted:
            waiting.send_signal(signal.SIGINT)
            equal(waiting.wait(DEADLINE_S), -signal.SIGINT, "the status of a run that is told to end")
            equal(s.status()["processes"], "1", "processes that the daemon follows")
            s.cudatrace("stop")
            equal(s.rows(STATE, pid), [("left", "absent")], "it")
        let_go_on(hold)
        equal(waiting.wait(DEADLINE_S), -signal.SIGINT if interrupted else 0, "the status of run --wait")
        waiting.stdout.close()
        waiting.stderr.close()
        if not interrupted:
            equal(s.rows(STATE, pid), [("exited", None)], "it")
            check(not s.is_served(), "the daemon is still there")

    # With --no-follow, a process that outlives the command continues untraced, and both the trace and `run` report this.
    arguments, env = leave_behind(s, hold, began, "--no-follow")
    done = subprocess.run([CUDATRACE, *arguments], env=env, capture_output=True, text=True, check=True, timeout=DEADLINE_S)
    pid = int(done.stdout)
    check(f"run: 1 process continues untraced ({pid})" in done.stderr, done.stderr)
    equal(s.rows(STATE, pid), [("left", "absent")], "it")
    let_go_on(hold)
    s.run(CUDATRACE, "run", "--wait", "--no-follow", "--", "true", preload=False, status=2)

# The path in LD_PRELOAD contains $LIB, so that the loader of a 32-bit child finds a 32-bit library and prints no error. In a 64-bit
# process, the path must lead to the hook for every value of $LIB, including the empty value that a shell substitutes.
if can("32-bit programs", "32-bit children"):
    with Session() as s:
        end = "__attribute__((noreturn)) void _start(void) { for (;;) __asm__ volatile(\"int $0x80\" : : \"a\"(1), \"b\"(3)); }"
        subprocess.run([*COMPILER, "-m32", "-nostdlib", "-pie", "-Wl,--dynamic-linker=/lib/ld-linux.so.2", "-o", s.dir / "child", "-x", "c", "-"],
                       input=end, text=True, check=True)
        command = ("sh", "-c", f"./child; echo $?; {WORKLOADS / 'calls'} --calls 5")
        plain = s.run(*command, preload=False, cwd=s.dir)
        done = s.trace(*command, cwd=s.dir)
        equal((done.stdout, done.stderr), (plain.stdout, plain.stderr), "the output with a 32-bit child")
        check(plain.stdout.startswith("3\n") and not plain.stderr, plain.stdout, plain.stderr)
        s.check_identity()
        for lib in "", "lib", "lib64", "lib/x86_64-linux-gnu":
            check(os.path.samefile(HOOK, HOOK.parent / "cudatrace" / lib / HOOK.name), lib)

        # If the hook has been copied without the other files, LD_PRELOAD contains the path of the copy itself.
        copy = shutil.copy(HOOK, s.dir)
        for hook, named in (HOOK, HOOK.parent / "cudatrace/$LIB" / HOOK.name), (copy, copy):
            done = s.trace("sh", "-c", "echo $LD_PRELOAD", env={"CUDATRACE_HOOK": str(hook)})
            equal(done.stdout.split(":")[0].strip(), str(named), "LD_PRELOAD")

# `run` must report the losses in all files of the trace. This test also uses a different directory for shared memory.
with Session() as s, tempfile.TemporaryDirectory(dir="/dev/shm") as shm:
    os.environ["CUDATRACE_SHM_DIR"] = shm
    s.start_daemon("--ring", "64K")
    script = s.dir / "loses.py"
    script.write_text(f"""import os, signal, subprocess
os.kill({s.daemon.pid}, signal.SIGSTOP)
subprocess.run([{str(WORKLOADS / "calls")!r}, "--calls", "40000"], check=True, stdout=subprocess.DEVNULL)
os.kill({s.daemon.pid}, signal.SIGCONT)
def flush():
    subprocess.run([{str(CUDATRACE)!r}, "flush"], check=True)
flush()
os.kill({s.daemon.pid}, signal.SIGHUP)
while not os.path.exists({str(s.dir / "trace.2.db")!r}):
    flush()
subprocess.run([{str(WORKLOADS / "calls")!r}, "--calls", "5"], check=True, stdout=subprocess.DEVNULL)
""")
    done = s.run(CUDATRACE, "run", "--shm-dir", shm, "--", sys.executable, script, preload=False,
                 env={"CUDATRACE_SHM_DIR": ""})
    equal(s.value("SELECT count(*) FROM losses", db=s.dir / "trace.2.db"), 0, "losses in the second file")
    lost = s.value("SELECT sum(calls) FROM losses")
    check(lost > 0, "nothing was lost")
    check(f"run: {lost} calls were counted but not recorded (full" in done.stderr and "full: rings ran full" in done.stderr, done.stderr)
    check("memory:" not in done.stderr, "causes that no call has", done.stderr)
    s.stop_daemon()
    del os.environ["CUDATRACE_SHM_DIR"]
sys.exit(0)
