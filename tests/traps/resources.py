"""Tests the limits on the hook's use of the program's resources (SECURITY.md, "What the hook takes of the program"). The test runs a
program at each limit, and the hook must not affect the program.

    resources.py WAY…      shared, addresses, files, restarts, left_out, written, removed; all of them if none is named
"""
import contextlib
import glob
import mmap
import os
import random
import resource
import signal
import struct
import subprocess
import sys

from trap_test import DEADLINE_S, LINKED, WORKLOADS, Session, check, compiled, equal, mount_namespace, needs, seed, wait_for

MIB = 1 << 20
INSIDE = "CUDATRACE_TEST_RESOURCES"


class Program:
    """Runs resources.c, which answers each line of input with one line of output."""

    def __init__(self, s, threads, **options):
        self.child = s.start(compiled(s, "resources.c", *LINKED, "-lpthread"), threads, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, **options)
        equal(self.child.stdout.readline(), "ready\n", "the program's beginning")

    def ask(self, line):
        self.child.stdin.write(line + "\n")
        self.child.stdin.flush()
        return self.child.stdout.readline().rstrip("\n")

    def end(self):
        self.child.stdin.close()
        equal(self.child.wait(DEADLINE_S), 0, "the program's status")


def lost(s):
    return s.value("SELECT ifnull(sum(lost), 0) FROM totals")


def shared():
    """Half of a small /dev/shm is left to the program, however many threads the program has. Rings that cannot grow wrap around, so that
    bursts of calls are recorded without loss. If the file system is too small to give each thread a lane, calls of threads without a lane
    are counted."""
    if INSIDE not in os.environ:
        needs("mount namespaces")
        for size in ("16m", "4m"):
            subprocess.run([*mount_namespace(), "sh", "-c", f'mount -t tmpfs -o size={size} none /dev/shm && exec "$0" "$@"',
                            sys.executable, __file__, "shared"], env=dict(os.environ, **{INSIDE: size}), check=True)
        return
    size = os.environ[INSIDE]
    half = int(size[:-1]) // 2
    with Session() as s:
        s.start_daemon()
        program = Program(s, 60)
        for _ in range(10):
            equal(program.ask("calls 1000"), "failed 0", "calls")
            s.flush()
        found = os.statvfs("/dev/shm")
        equal(program.ask(f"shared {half}"), "written", f"{half} MiB of the program's own, {found.f_bavail * found.f_bsize} free")
        program.end()
        s.flush()
        s.check_identity(lost=None)
        s.check_truth()
        if size == "16m":
            equal(lost(s), 0, "calls lost")
        else:
            check(lost(s) > 0, "there was a lane for each of the threads")
        check(s.value("SELECT sum(stored) FROM totals") > 10000, "hardly anything is stored")
        equal(s.rows("SELECT DISTINCT cause FROM losses WHERE cause <> 'memory'"), [], "causes")
        print(f"/dev/shm of {size}: {lost(s)} of {s.value('SELECT sum(calls) FROM totals')} lost, {half} MiB left")


def files():
    """If the limit on file sizes is too small for a lane, every call is counted as lost, under its function's name."""
    for kib in (100, 200):
        with Session() as s:
            s.start_daemon()
            s.run(WORKLOADS / "calls", "--threads", 2, "--calls", 500,
                  preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (kib << 10, kib << 10)))
            s.flush()
            s.check_identity(lost=None)
            s.check_truth()
            equal(s.value("SELECT sum(calls) FROM losses WHERE cause = 'memory'"), lost(s), f"{kib} KiB: calls lost by cause")
            equal(s.value("SELECT sum(stored) FROM totals"), 0, f"{kib} KiB: calls stored")


def addresses():
    """If the address space is limited, the hook uses a sixteenth of it, however many threads there are."""
    limit, threads = 512 * MIB, 200
    with Session() as s:
        s.start_daemon()

        def confine():
            resource.setrlimit(resource.RLIMIT_AS, (limit, limit))

        sizes = []
        for preload in (False, True):
            program = Program(s, threads, preload=preload, preexec_fn=confine)
            for _ in range(3):
                equal(program.ask("calls 1500"), "failed 0", "calls")
                s.flush()
            sizes.append(int(program.ask("size").split()[0]) * 1024)
            equal(program.ask("memory 200"), "written", f"200 MiB of the program's own, hook: {preload}")
            # Rings that cannot grow become full while the daemon is stopped. The cause is the limit, not the control group.
            s.daemon.send_signal(signal.SIGSTOP)
            equal(program.ask("calls 5000"), "failed 0", "calls while the daemon is stopped")
            s.daemon.send_signal(signal.SIGCONT)
            program.end()
        s.flush()
        s.check_identity(lost=None)
        causes = dict(s.rows("SELECT cause, sum(calls) FROM losses GROUP BY cause"))
        check(causes.get("memory", 0) > 0 and "cgroup" not in causes, "causes", causes)
        # The hook's own code and data do not count towards the sixteenth of the address space that the hook may use.
        taken, code = sizes[1] - sizes[0], 16 * MIB
        check(taken <= limit // 16 + code, "the hook took", taken, "of", limit)
        print(f"{taken >> 10} KiB of {limit >> 10} for {threads} threads, {lost(s)} calls lost")


def restarts():
    """Starts and ends daemons and threads repeatedly. The hook reuses mappings that were made for earlier daemons and threads."""
    with Session() as s:
        s.start_daemon()
        program = Program(s, 50)
        sizes = []
        for _ in range(20):
            equal(program.ask("calls 100"), "failed 0", "calls")
            equal(program.ask("threads 5"), "gone", "threads that come and go")
            s.flush()
            sizes.append(tuple(map(int, program.ask("size").split())))
            s.stop_daemon()
            # A thread releases its lane while there is no daemon, or at its next call, whichever happens first.
            if len(sizes) % 2:
                program.ask("calls 1")
            s.start_daemon()
        program.end()
        s.flush()
        s.check_identity()
        kb, mappings = (max(column[10:]) - max(column[:4]) for column in zip(*sizes))
        check(kb <= 2048, "addresses grew by", kb, "KiB", sizes)
        check(mappings <= 64, "mappings grew by", mappings, sizes)
        print(f"20 daemons: {kb} KiB of addresses and {mappings} mappings more than at first")


def left_out():
    """Threads whose calls are excluded from recording must also find the next daemon, and their calls must be counted in its trace."""
    def skipped():
        s.flush()
        return s.value("SELECT ifnull(sum(skipped), 0) FROM totals WHERE name = 'cuDeviceGetCount'")

    with Session() as s:
        s.start_daemon()
        program = Program(s, 4, env={"CUDATRACE_CALLS": "!cuDeviceGetCount"})
        for _ in range(3):
            before = skipped()
            wait_for("calls to be counted", lambda: program.ask("calls 1") == "failed 0" and skipped() > before)
            equal(program.ask("calls 1"), "failed 0", "calls")  # by now each thread has found the daemon
            before = skipped()
            equal(program.ask("calls 1000"), "failed 0", "calls")
            equal(skipped(), before + 4000, "skipped")
            s.stop_daemon()
            s.start_daemon()
        program.end()
        s.flush()
        s.check_identity()
        print(f"{skipped()} counted by three daemons")


def words(map_, places, rng):
    """Writes to random words in `places`, which are pairs (offset, length)."""
    known = (0, 1, 255, 2**32 - 1, 2**63 - 1, 2**63, 2**64 - 1, 4096, 1 << 30)
    for _ in range(400):
        at, length = rng.choice(places)
        at += rng.randrange(length) & ~7
        old, = struct.unpack_from("<Q", map_, at)
        value = rng.choice((rng.choice(known), old ^ 1 << rng.randrange(64), (old + rng.randrange(-33, 33)) % 2**64))
        struct.pack_into("<Q", map_, at, value)


def written():
    """Another process writes arbitrary values to any word of the segment, its lanes and the control segment. The program's results do not
    change, and the program runs to completion."""
    rng = random.Random(seed())
    for _ in range(4):
        with Session() as s:
            s.start_daemon("--ring", "256K")
            program = Program(s, 6)
            # First, overwrite single words, while the segment still has the geometry that the hook gave it.
            for turn in range(30):
                paths = glob.glob(f"/dev/shm/cudatrace.{os.geteuid()}.{s.name}.{program.child.pid}.*")
                for path in [*paths, f"/dev/shm/cudatrace.{os.geteuid()}.{s.name}"]:
                    # The file may have been removed already, if the daemon has detached the segment.
                    with contextlib.suppress(FileNotFoundError), open(path, "r+b") as file, mmap.mmap(file.fileno(), 0) as map_:
                        if path not in paths:
                            words(map_, [(16, len(map_) - 16)], rng)
                            continue
                        if turn == 0:
                            struct.pack_into("<Q", map_, 40, 1 << 30)
                            continue
                        lanes = [(at, 512) for at in range(4096 + 2048 * 128, len(map_) - 4096, 4096 + (64 << 10))][:8]
                        words(map_, [(0, 1472), (4096, 64 * 128), *lanes], rng)
                equal(program.ask("calls 300"), "failed 0", "calls")
                equal(program.ask("threads 4"), "gone", "threads that come and go")
            program.end()
            s.daemon.kill()  # its trace contains the data that this test made up, so it is not checked
            s.daemon.wait()
            s.daemon = None
            for path in glob.glob(f"/dev/shm/cudatrace.{os.geteuid()}.{s.name}*"):
                os.unlink(path)


def removed():
    """The program's file in /dev/shm is removed, as systemd-logind does when a user logs out. The program keeps using its mapping."""
    with Session() as s:
        s.start_daemon()
        program = Program(s, 4)
        equal(program.ask("calls 10"), "failed 0", "calls")
        s.flush()
        path, = glob.glob(f"/dev/shm/cudatrace.{os.geteuid()}.{s.name}.{program.child.pid}.*")
        os.unlink(path)
        for _ in range(10):
            equal(program.ask("calls 1000"), "failed 0", "calls")
            s.flush()
        program.end()
        s.flush()
        s.check_identity()
        stored = s.value("SELECT sum(stored) FROM totals WHERE name = 'cuDeviceGetCount'")
        # When the daemon notices that the file was removed, the program creates another segment. Each thread loses its next call, which
        # makes the thread switch to the new segment.
        check(stored >= 40_040 - 2 * 4, "stored are", stored, "of 40,040")
        print(f"{stored} of 40040 stored without the file")


WAYS = {"shared": shared, "addresses": addresses, "files": files, "restarts": restarts, "left_out": left_out, "written": written, "removed": removed}
for way in sys.argv[1:] or WAYS:
    WAYS[way]()
