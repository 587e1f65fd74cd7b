"""Tests that `cudatrace doctor` reports why calls are not traced, and exits with status 1. If everything is traced, doctor must report no
problem."""
import contextlib
import fcntl
import os
import pathlib
import re
import shutil
import signal
import socket
import sqlite3
import subprocess
import sys
import threading

from cudatrace_test import (BUILD, CUDATRACE, HOOK, NOBODY, SIMCUDA, Session, WORKLOADS, can, check, equal, fifo, first_thread_has_ended, free_shm,
                            mount_namespace, wait_for)

CALLS = WORKLOADS / "calls"
COMPILER = os.environ.get("CC", "cc").split()


DRIVERS = """import ctypes, sys
for path in sys.argv[1:]:
    ctypes.CDLL(path).cuInit(0)
print("called", flush=True)
input()
"""


def doctor(s, *arguments, status, env=None, session=True, tool=CUDATRACE, **options):
    """Runs doctor. Returns its output as [(verdict, subject, sentence)]."""
    named = ("--session", s.name) if session is True else ("--session", session) if session else ()
    done = s.run(tool, "doctor", *named, *arguments, preload=False, status=status, env=env, **options)
    equal(done.stderr, "", "its standard error")
    lines = re.findall(r"^  (ok|note|miss) +(\S+(?: \S+)*)  +(.*)$", done.stdout, re.M)
    equal(sum(verdict == "miss" for verdict, _, _ in lines) > 0, status == 1, done.stdout)
    equal(done.stdout.endswith("\nNo problems found.\n"), status == 0, done.stdout)
    return lines


# Programs that load the driver before they change something, and then make a call.
CHANGES = """import ctypes, mmap, os, resource, sys
cuda = ctypes.CDLL("libcuda.so.1")
if sys.argv[1] == "memory":
    pages = int(open("/proc/self/statm").read().split()[0])
    resource.setrlimit(resource.RLIMIT_AS, (pages * resource.getpagesize() + (1 << 20),) * 2)
elif sys.argv[1] == "files":
    resource.setrlimit(resource.RLIMIT_NOFILE, (64, 64))
    while len(os.listdir("/proc/self/fd")) < 64:
        os.dup(0)
    os.dup(0)
else:
    os.setuid(int(sys.argv[1]))
cuda.cuInit(0)
"""


BUILD_HAS_SLOTS = (SIMCUDA / "580").exists()


def says(lines, verdict, subject, text):
    check(any((v, s) == (verdict, subject) and text in t for v, s, t in lines), verdict, subject, "should say", text,
          "and it said:", *("\n  " + " ".join(line) for line in lines))


def refuses(s, status, *arguments, text, tool=CUDATRACE, **options):
    done = s.run(tool, "doctor", *arguments, preload=False, status=status, **options)
    equal((done.stdout, done.stderr.count("\n")), ("", 1), done.stderr)
    check(text in done.stderr, done.stderr)


def compiled(s, name, source, *flags):
    path = s.dir / name
    path.parent.mkdir(exist_ok=True)
    subprocess.run([*COMPILER, "-o", path, "-x", "c", "-", *flags], input=source, text=True, check=True)
    return path


@contextlib.contextmanager
def held(s, *arguments, before=(), hook=True, **options):
    """Runs a program that makes its calls and then waits."""
    with fifo(s.dir, f"hold{len(s.children)}") as hold:
        program = s.start(*before, CALLS, "--calls", 200, "--hold", hold, *arguments, preload=hook,
                          stdout=subprocess.PIPE, **options)
        check(b" ok\n" in program.stdout.readline(), "the program's calls")
        yield program
        hold.write_bytes(b"\n")
        equal(program.wait(), 0, "its status")
        program.stdout.close()


found = {path for path in os.listdir("/dev/shm") if ".doctor-" in path}

with Session() as s:  # checks of the machine, without a daemon
    before = set(os.listdir("/dev/shm"))
    lines = doctor(s, "--db", s.db, status=0)
    says(lines, "ok", "hook", str(HOOK))
    says(lines, "ok", "driver", "CUDA 13.0, the simulated driver")
    says(lines, "note", "daemon", f"cudatraced --session {s.name} --db FILE")
    says(lines, "ok", "database", "does not exist yet")
    says(lines, "ok" if free_shm() > 256 else "note", "/dev/shm", "rings of up to 512 MiB")
    if any((verdict, subject) == ("ok", "probe") for verdict, subject, _ in lines):
        for file, lack in (("/sys/bus/event_source/devices/kprobe", "the kernel has no kprobes"), ("/sys/module/nvidia", "the kernel module nvidia is not")):
            equal(sum(lack in text for _, subject, text in lines if subject == "probe"), not os.path.exists(file), lack)
    says(lines, "note", "functions", "does not know 1 of the driver's functions (cuSimcudaRegisters)")  # a function that only tests use
    says(doctor(s, status=0, env={"LD_LIBRARY_PATH": s.dir}, cwd=s.dir), "note", "driver", "the loader finds none")
    says(doctor(s, status=1, env={"CUDATRACE_HOOK": "/nowhere"}, cwd=s.dir), "miss", "hook", "set CUDATRACE_HOOK")

    # Test drivers that are newer than the hook, and broken drivers.
    source = "int cuInit(unsigned f) { return f; } int cuBrandNew_v9(void) { return 0; } int cublasX(void) { return 0; }\n"
    compiled(s, "newer/libcuda.so.1", source, "-shared", "-fPIC")
    lines = doctor(s, status=0, env={"LD_LIBRARY_PATH": s.dir / "newer"}, cwd=s.dir)
    says(lines, "note", "functions", "does not know 1 of the driver's functions (cuBrandNew_v9)")
    says(lines, "ok", "driver", "does not report its version")
    many = "".join(f"int cuMany{i}(void) {{ return 0; }}\n" for i in range(129))
    compiled(s, "many/libcuda.so.1", many, "-shared", "-fPIC")
    says(doctor(s, status=1, env={"LD_LIBRARY_PATH": s.dir / "many"}, cwd=s.dir), "miss", "functions", "does not know 129 of")
    broken = "#include <stdlib.h>\n__attribute__((constructor)) static void fall(void) { abort(); }\n"
    compiled(s, "broken/libcuda.so.1", broken, "-shared", "-fPIC")
    says(doctor(s, status=0, env={"LD_LIBRARY_PATH": s.dir / "broken"}, cwd=s.dir), "note", "driver", "signal 6")

    # Databases.
    says(doctor(s, "--db", s.dir, status=1), "miss", "database", "it is a directory")
    says(doctor(s, "--db", "/nowhere/trace.db", status=1), "miss", "database", "cannot be created")
    foreign = s.dir / "foreign.db"
    with contextlib.closing(sqlite3.connect(foreign)) as connection:
        connection.execute("CREATE TABLE songs (name)")
    says(doctor(s, "--db", foreign, status=1), "miss", "database", "of another program")
    text = s.dir / "letter.db"
    text.write_text("Dear reader, this is no database at all.\n" * 100)
    says(doctor(s, "--db", text, status=1), "miss", "database", "cannot be the database")
    s.trace(CALLS, "--calls", 100)
    says(doctor(s, "--db", s.db, status=0), "ok", "database", "will be continued")
    boot = s.value("SELECT value FROM meta WHERE key = 'boot_id'")
    for value, words in (("another", "is from an earlier boot"), (boot, "will be continued")):
        with contextlib.closing(sqlite3.connect(s.db)) as connection, connection:
            connection.execute("UPDATE meta SET value = ? WHERE key = 'boot_id'", (value,))
        says(doctor(s, "--db", s.db, status=0), "ok", "database", words)
    for version, status, says_what in ((1, 0, "next numbered file"), (99, 1, "newer cudatrace")):
        with contextlib.closing(sqlite3.connect(s.db)) as connection:
            connection.execute(f"PRAGMA user_version = {version}")
        kind = "miss" if status else "ok"
        says(doctor(s, "--db", s.db, status=status), kind, "database", says_what)

    # Control characters in text that doctor quotes do not reach the terminal.
    nasty = s.dir / "a\x1b]0;owned\x07b\u202ec\u061c"
    lines = doctor(s, "--db", nasty, status=0)
    says(lines, "ok", "database", r"a\x1b]0;owned\x07b\xe2\x80\xaec\xd8\x9c does not exist yet")

    # Test invalid usage, and processes and programs that doctor cannot read.
    refuses(s, 2, "--", text="no command after --")
    refuses(s, 2, "12", "13", text="specify only one process ID")
    refuses(s, 2, "12", "--frobnicate", text="unknown option --frobnicate")
    refuses(s, 2, "0", text="invalid process ID")
    refuses(s, 2, "--frobnicate", text="unknown option")
    refuses(s, 1, "999999999", text="no such process: 999999999")
    refuses(s, 1, "--", "no-such-program", text="command not found or not executable")
    refuses(s, 1, "--", "/etc/passwd", text="command not found or not executable")
    gone = s.start("true")
    os.waitid(os.P_PID, gone.pid, os.WEXITED | os.WNOWAIT)
    says(doctor(s, gone.pid, status=1), "note", "state", "it is a zombie")
    equal({name for name in os.listdir("/dev/shm") if s.name in name}, set(), "what all that left behind")

if can("several users", "a daemon's name that is another user's"):
    with Session() as s:  # another user's control segment does not count, whatever its name is
        s.start_daemon()
        path = f"/dev/shm/cudatrace.{os.geteuid()}.{s.name}"
        says(doctor(s, status=0, cwd=s.dir), "ok", "daemon", f"process {s.daemon.pid} serves it")
        os.chown(path, NOBODY, NOBODY)
        says(doctor(s, "--db", s.dir / "other.db", status=0), "note", "daemon", "none serves it: ")
        os.chown(path, 0, 0)

with Session() as s:  # a trace whose first file is gone still has its name
    s.start_daemon()
    s.daemon.send_signal(signal.SIGHUP)
    wait_for("the second file", lambda: (s.dir / "trace.2.db").exists())
    s.flush()
    s.db.unlink()
    says(doctor(s, "--db", s.db, status=0), "ok", "database", "is being written")
    says(doctor(s, "--db", s.dir / "other.db", status=1), "miss", "database", "omit --db")

with Session() as s:  # a socket that sends data without end
    s.start_daemon()
    path = f"/dev/shm/cudatrace.{os.geteuid()}.{s.name}.sock"
    os.rename(path, path + ".away")
    with socket.socket(socket.AF_UNIX) as endless:
        endless.bind(path)
        endless.listen()

        def babble():
            client = endless.accept()[0]
            with client, contextlib.suppress(BrokenPipeError, ConnectionResetError):
                while True:
                    client.sendall(b"word value\n" * 1000)

        talker = threading.Thread(target=babble)
        talker.start()
        says(doctor(s, status=1, cwd=s.dir), "miss", "daemon", "does not respond")
        talker.join()
    os.rename(path + ".away", path)

with Session() as s:  # files of commands; doctor does not run them
    ran = s.dir / "ran"
    alone = compiled(s, "static", "int main(void) { return 0; }\n", "-static")
    lines = doctor(s, "--dry-run", "--", alone, status=1, cwd=s.dir)
    says(lines, "miss", "program", "is statically linked")
    check("is statically linked" in s.trace(alone).stderr, "run says so, too")
    foreign = s.dir / "foreign"
    header = bytearray(pathlib.Path("/bin/true").read_bytes()[:52])
    header[4], header[18:20] = 1, b"\x03\x00"  # ELFCLASS32, EM_386
    foreign.write_bytes(header)
    foreign.chmod(0o755)
    says(doctor(s, "--dry-run", "--", foreign, status=1, cwd=s.dir), "miss", "program", "is a 32-bit program")
    script = s.dir / "script"
    script.write_text(f"#!/usr/bin/env -S X=1 reader -u\ntouch {ran}\n")
    script.chmod(0o755)
    os.symlink(alone, s.dir / "reader")
    lines = doctor(s, "--dry-run", "--", "script", status=1, cwd=s.dir, env={"PATH": f"{s.dir}:{os.environ['PATH']}"})
    says(lines, "ok", "script", "is run by " + str(s.dir / "reader"))
    says(lines, "miss", "program", "reader is statically linked")
    script.write_text(f"touch {ran}\n")
    says(doctor(s, "--dry-run", "--", script, status=0, cwd=s.dir), "ok", "script", "is run by /bin/sh")
    says(doctor(s, "--dry-run", CALLS, "--calls", 5, status=0, cwd=s.dir), "ok", "way in", "linked with libcuda.so.1")
    says(doctor(s, "--dry-run", "--", "touch", ran, status=0, cwd=s.dir), "ok", "way in", "loads CUDA while it runs")
    check(not ran.exists(), "the command ran")
    if can("several users", "set-user-ID programs"):
        other = compiled(s, "other", "int main(void) { return 0; }\n")
        os.chown(other, NOBODY, NOBODY)
        other.chmod(0o4755)
        says(doctor(s, "--dry-run", "--", other, status=1, cwd=s.dir), "miss", "program", "is set-user-ID")
        os.chown(other, 0, 0)
        other.chmod(0o4755)  # gives root no right that it does not have
        says(doctor(s, "--dry-run", "--", other, status=0, cwd=s.dir), "ok", "program", "accepts LD_PRELOAD")

# Commands that doctor starts.
with Session() as s:
    # Doctor terminates the command as soon as the event that it waits for has occurred. Doctor would wait for up to an hour, so if the
    # event does not occur, the test fails at its own deadline.
    def started(*command, status, wait="1h"):
        return doctor(s, "--wait", wait, "--", *command, status=status, cwd=s.dir)

    lines = started(CALLS, "--calls", 1000000, "--rate", 1, status=0)
    says(lines, "ok", "started", "started the command, and terminated it after its first recorded call")
    says(lines, "ok", "recording", f"{CALLS}: its calls reach the daemon")
    lines = started("sh", "-c", f"touch {s.dir / 'ran'}; exit 3", status=0)
    says(lines, "note", "started", "exited with status 3")
    says(lines, "note", "driver", "no process of the command has loaded libcuda.so.1")
    check((s.dir / "ran").exists(), "the command did not run")
    says(started("sleep", "1000", status=0, wait="1s"), "note", "started", "terminated it after 1 s without a recorded call")
    says(started("env", "-u", "LD_PRELOAD", CALLS, status=1), "miss", "hook", f"{CALLS} loads the driver but not the hook: it was started "
         "without LD_PRELOAD")
    silent = (sys.executable, "-c", "import ctypes; ctypes.CDLL('libcuda.so.1')")  # doctor checks it when it ends
    says(started(*silent, status=1), "miss", "recording", "loads the driver and the hook, but records nothing")
    if can("mount namespaces", "a command with a /dev/shm of its own"):
        private = (*mount_namespace(), "sh", "-c", 'mount -t tmpfs none /dev/shm && exec "$0" "$@"', CALLS, "--calls", 5)
        says(started(*private, status=1), "miss", "container", f"{CALLS} loads the driver and the hook, and has its own /dev/shm")
        read_only = (*mount_namespace(), "sh", "-c", 'mount --bind /dev/shm /dev/shm && mount -o remount,ro,bind /dev/shm && exec "$0" --calls 5', CALLS)
        says(started(*read_only, status=1), "miss", "recording", "its calls are not recorded: its /dev/shm is read-only")
        # Half of /dev/shm stays free for others. The rest is enough for one thread, or for none.
        for size, status, words in (("200k", 0, "its calls reach the daemon"), ("140k", 1, "KiB free for tracing (half of the file system")):
            small = (*mount_namespace(), "sh", "-c", f'mount -t tmpfs -o size={size} none /dev/shm && exec "$@"', "sh")
            done = s.run(*small, CUDATRACE, "doctor", "--", CALLS, "--calls", 5, "--threads", 1, preload=False, status=status, cwd=s.dir)
            check(words in done.stdout, size, done.stdout)
    # Programs that the hook cannot record.
    for need, command, why in (
            ("sh", ("sh", "-c", 'ulimit -f 0; exec "$0" --calls 5', CALLS), "its file size limit (ulimit -f) is 0 bytes, too small for a ring"),
            ("sh", ("sh", "-c", 'ulimit -f 100; exec "$0" --calls 5', CALLS), "its file size limit (ulimit -f) is 50 KiB"),
            ("sh", (sys.executable, "-c", CHANGES, "memory"), "its limit on memory (ulimit -v) is"),
            ("sh", (sys.executable, "-c", CHANGES, "files"), "its limit on open files (ulimit -n, RLIMIT_NOFILE) is 64, and fewer than 3 are left"),
            ("several users", (sys.executable, "-c", CHANGES, NOBODY), f"it runs as user {NOBODY}, and only a daemon of this user"),
            ("user namespaces", ("unshare", "-U", CALLS, "--calls", 5), "its user has no ID in its user namespace")):
        if can(need, f"a command of which doctor says: {why}"):
            says(started(*command, status=1), "miss", "recording", f"loads the driver and the hook, but its calls are not recorded: {why}")
    done = s.run("prlimit", "--nofile=12:12", CUDATRACE, "doctor", "--", CALLS, "--calls", 5, preload=False, status=1, cwd=s.dir)
    check("the limit on open files (ulimit -n, RLIMIT_NOFILE) is 12, too low" in done.stdout, done.stdout)
    # Ctrl-C also terminates the command that doctor started, and leaves no files.
    with fifo(s.dir, "began") as began:
        asked = subprocess.Popen([CUDATRACE, "doctor", "--", "sh", "-c", f"echo $$ >{began}; exec sleep 1000"], cwd=s.dir,
                                 stdout=subprocess.DEVNULL, env=s.env(preload=False, TMPDIR=s.dir))
        pid = int(began.read_text())
        asked.send_signal(signal.SIGINT)
        equal(asked.wait(), -signal.SIGINT, "doctor's status")
        check(not os.path.exists(f"/proc/{pid}"), "the command runs on")
        equal(list(s.dir.glob("cudatrace-doctor-*")), [], "folders that are left")
    # Another doctor on the machine may have files of its own.
    equal({path for path in os.listdir("/dev/shm") if ".doctor-" in path} - found, set(), "what it leaves in shared memory")

with Session() as s, Session() as second:  # processes
    second.name += "-second"
    with held(s, hook=False) as program:
        lines = doctor(s, program.pid, status=1)
        says(lines, "miss", "hook", "it was started without")
        says(lines, "miss", "daemon", "none serves it")
    with held(s) as program:
        lines = doctor(s, program.pid, status=1)
        says(lines, "ok", "hook", "is loaded")
        says(lines, "miss", "recording", f"no daemon serves session {s.name}")
        s.start_daemon()
        lines = doctor(s, program.pid, status=0)
        says(lines, "note", "recording", "no CUDA calls since")
        says(lines, "ok", "daemon", f"process {s.daemon.pid} serves it")
    for via, words in (("procaddress", "it looks up functions by cuGetProcAddress_v2"), ("linked", "linked: " + str(CALLS))):
        with held(s, "--via", via, "--threads", 3) as program:
            # Doctor checks the session that the process belongs to, even if the environment names a different session.
            for lines in (doctor(s, program.pid, status=0, session=None, env={"CUDATRACE_SESSION": second.name}),
                          doctor(s, program.pid, status=0)):
                says(lines, "ok", "recording", "threads with rings of up to 512 MiB: 4")
                says(lines, "ok", "driver", str(SIMCUDA / "libcuda.so.1"))
                says(lines, "ok", "way in", words)
                says(lines, "ok", "ways", "682 functions of the driver by their names")
            second.start_daemon()
            lines = doctor(second, program.pid, status=1)
            says(lines, "miss", "session", f"belongs to session {s.name} and not to {second.name}")
            second.stop_daemon()
            lines = doctor(second, program.pid, status=1)
            says(lines, "miss", "daemon", "Sessions with a daemon: ")
            says(lines, "miss", "daemon", s.name)
    if BUILD_HAS_SLOTS:
        for way, words in (("slots", "679 functions of the driver by its table of entry points, 3 by their names"),
                           ("names", "682 functions of the driver by their names")):
            with held(s, env={"CUDATRACE_WAY": way, "LD_LIBRARY_PATH": f"{SIMCUDA}/580"}) as program:
                says(doctor(s, program.pid, status=0), "ok", "ways", words)
    # Test a process whose GPU work is recorded, and processes whose recording fails for various reasons.
    for verdict, words, env in (("ok", "CUPTI reports kernels, copies and sets, also those in graphs", {}),
                                ("ok", "CUPTI reports kernels, copies, sets and whole graphs", {"CUDATRACE_GPU": "graphs"}),
                                ("miss", "CUPTI reports the nodes of graphs, because it refused whole graphs with 21: they need",
                                 {"CUDATRACE_GPU": "graphs", "SIMCUPTI_LAST_KIND": 50}),
                                ("miss", "Nsight Systems uses CUPTI", {"SIMCUPTI_TAKEN": "Nsight Systems"}),
                                ("miss", "CUPTI failed with 35; let users profile", {"SIMCUPTI_REFUSE": "cuptiActivityEnable=35"})):
        with held(s, env={"CUDATRACE_GPU": "kernels", "LD_LIBRARY_PATH": f"{SIMCUDA}:{BUILD / 'tests/simcupti/13'}", **env}) as program:
            says(doctor(s, program.pid, status=int(verdict == "miss")), verdict, "gpu work", words)
    with held(s) as program:
        s.cudatrace("set", "--gpu", "on", "--pid", program.pid)
        says(doctor(s, program.pid, status=0), "note", "gpu work", "requested: the recording begins at the process's next call of the driver")
    hook = shutil.copy(HOOK, s.dir)
    with held(s, env={"CUDATRACE_GPU": "kernels", "LD_PRELOAD": hook}) as program:
        says(doctor(s, program.pid, status=1), "miss", "gpu work", "libcudatrace-gpu.so cannot be loaded")
    # Test processes that have loaded two and three drivers, each from a separate file. The hook supports two.
    copies = [shutil.copy(SIMCUDA / "libcuda.so.1", s.dir / f"libcuda.so.{number}") for number in (1, 2, 3)]
    for count, verdict, words in ((2, "note", "without their details"), (3, "miss", "only the first 2 that were loaded are traced")):
        program = s.start(sys.executable, "-c", DRIVERS, *copies[:count], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        equal(program.stdout.readline(), "called\n", "the program with several drivers")
        lines = doctor(s, program.pid, status=int(verdict == "miss"))
        for copy in copies[:count]:
            says(lines, verdict, "drivers", str(copy))
        says(lines, verdict, "drivers", words)
        program.communicate("\n")
        equal(program.returncode, 0, "its status")
    # A process is still checked after its first thread has exited.
    with held(s, "--first-ends", 1) as program:
        wait_for("the first thread's end", lambda: first_thread_has_ended(program.pid))
        lines = doctor(s, program.pid, status=0, session=None)
        says(lines, "ok", "recording", "threads with rings of up to 512 MiB: 2")
        says(lines, "ok", "hook", str(HOOK))
        says(lines, "ok", "driver", str(SIMCUDA / "libcuda.so.1"))
    says(doctor(s, "--db", s.dir / "other.db", status=1), "miss", "database", f"the daemon writes {s.db}")
    says(doctor(second, "--db", s.db, status=1), "miss", "database", f"process {s.daemon.pid} (cudatraced) of user {os.geteuid()} writes it for another")
    s.stop_daemon()
    with open(s.db, "rb") as locked:
        fcntl.flock(locked, fcntl.LOCK_SH)
        name = pathlib.Path("/proc/self/comm").read_text().strip()
        says(doctor(second, "--db", s.db, status=1), "miss", "database",
             f"process {os.getpid()} ({name}) of user {os.geteuid()} has locked it")
    s.start_daemon()

    # Test calls that the user has excluded from recording, and a library that is loaded before the hook.
    s.cudatrace("set", "--calls", "!cuMem*")
    with held(s) as program:
        lines = doctor(s, program.pid, status=1)
        says(lines, "miss", "selection", "calls !cuMem*")
        says(lines, "miss", "left out", "as selected by cudatrace set")
    s.cudatrace("set", "--calls", "*")
    first = compiled(s, "libfirst.so", "#define _GNU_SOURCE\n#include <dlfcn.h>\nvoid *dlsym(void *h, const char *n)\n"
                     '{ return ((void *(*)(void *, const char *))dlvsym(RTLD_NEXT, "dlsym", "GLIBC_2.2.5"))(h, n); }\n', "-shared", "-fPIC")
    with held(s, hook=False, env={"LD_PRELOAD": f"{first}:{HOOK}"}) as program:
        says(doctor(s, program.pid, status=1), "miss", "LD_PRELOAD", f"{first} comes before the hook and implements dlsym")
    with held(s, hook=False, env={"LD_PRELOAD": f"{HOOK}:{first}"}) as program:
        doctor(s, program.pid, status=0)

    # Replace the hook's file while the program is running.
    copy = s.dir / "libcudatrace.so"
    copy.write_bytes(HOOK.read_bytes())
    with held(s, hook=False, env={"LD_PRELOAD": copy}) as program:
        says(doctor(s, program.pid, status=0), "ok", "hook", "is loaded, which is another file of a compatible build")
        (s.dir / "new.so").write_bytes(HOOK.read_bytes())
        (s.dir / "new.so").rename(copy)
        says(doctor(s, program.pid, status=0), "note", "hook", "has been replaced on disk")
    with held(s, hook=False, env={"LD_PRELOAD": "/nowhere/libcudatrace.so"}, stderr=subprocess.DEVNULL) as program:
        says(doctor(s, program.pid, status=1), "miss", "hook", "the loader did not find it")

    # Doctor itself never appears in the trace, even if the hook is loaded into it.
    s.flush()
    processes = s.value("SELECT count(*) FROM processes")
    # If doctor is built with AddressSanitizer, it normally refuses to start if the hook is loaded before the sanitizer's library. This
    # option makes it start.
    s.run(CUDATRACE, "doctor", "--session", s.name, env={"ASAN_OPTIONS": "verify_asan_link_order=0"})
    s.flush()
    equal(s.value("SELECT count(*) FROM processes"), processes, "processes after the doctor was traced")

    # Kill the daemon while a program is running.
    with held(s) as program:
        s.daemon.kill()
        s.daemon.wait()
        lines = doctor(s, program.pid, status=1)
        says(lines, "miss", "daemon", f"process {s.daemon.pid} did, and was killed")
        says(lines, "miss", "recording", "no daemon reads")
        s.start_daemon()
        says(doctor(s, program.pid, status=0), "ok", "recording", "functions so far: ")

with Session() as s:  # a daemon that does not answer, full rings, and a process with shared memory of its own
    s.start_daemon("--ring", "64K")
    s.daemon.send_signal(signal.SIGSTOP)
    with held(s, "--calls", 20000) as program:
        says(doctor(s, status=1), "miss", "daemon", "does not respond")
        s.daemon.send_signal(signal.SIGCONT)
        lines = doctor(s, program.pid, status=1)
        says(lines, "miss", "lost", "rings ran full: start the daemon with a larger --ring")
        says(lines, "ok", "recording", "rings of up to 64 KiB")
    if can("mount namespaces", "a container's shared memory"):
        own = (*mount_namespace(), "sh", "-c", 'mount -t tmpfs none /dev/shm && exec "$@"', "sh")
        with held(s, before=own) as program:
            lines = doctor(s, program.pid, status=1)
            says(lines, "miss", "container", "has its own /dev/shm")
    for limit, words in ((0, "nothing: its file size limit (ulimit -f) is 0 bytes"), (100, "no thread can record: its file size limit (ulimit -f) is 50 KiB")):
        with held(s, before=("sh", "-c", f'ulimit -f {limit}; exec "$@"', "sh"), env={"SIMCUDA_COUNTS": ""}) as program:
            says(doctor(s, program.pid, status=1), "miss", "recording", words)

    # Run doctor as another user, who has no access to this user's database and processes.
    if can("several users", "what another user is told"):
        s.dir.chmod(0o755)
        tool = s.dir / CUDATRACE.name
        s.db.chmod(0o644)
        (s.dir / "mine").mkdir()
        for file in CUDATRACE, HOOK, SIMCUDA / "libcuda.so.1":  # the build may be in a home directory
            shutil.copy(file, s.dir)
        his = {"SIMCUDA_COUNTS": "", "CUDATRACE_HOOK": s.dir / HOOK.name, "LD_LIBRARY_PATH": s.dir}
        lines = doctor(s, "--db", s.db, status=1, user=NOBODY, cwd="/", env=his, tool=tool)
        says(lines, "miss", "database", "it is not writable")
        says(lines, "note", "daemon", f"{s.name} (user 0)")
        says(doctor(s, "--db", s.dir / "mine/x.db", status=1, user=NOBODY, cwd="/", env=his, tool=tool), "miss", "database", "Permission denied")
        with held(s) as program:
            refuses(s, 1, program.pid, text="run as its user, or as root", user=NOBODY, cwd="/", tool=tool)

with Session() as s:  # an index that a user made: the daemon maintains it, at a cost
    s.start_daemon()
    for sql, verdict in (("CREATE INDEX mine ON call (duration_ns)", True), ("DROP INDEX mine", False)):
        with contextlib.closing(sqlite3.connect(s.db, timeout=30)) as connection:
            connection.execute(sql)
        s.run(CALLS, "--calls", 100000)
        s.flush()
        storing = re.search(r"^storing (.*)$", s.cudatrace("status").stdout, re.M).group(1)
        equal(storing.startswith("one by one: another program has added an index or a column to the table call"), verdict, storing)
        equal(any(subject == "storing" for _, subject, _ in doctor(s, status=0)), verdict, "whether the doctor speaks of it")
        equal(s.value("SELECT integrity_check FROM pragma_integrity_check"), "ok", "the database")
    s.check_identity(lost=None)
