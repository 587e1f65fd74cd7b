"""Measures a daemon's resource usage when it is idle, with a thousand idle threads, and with a thousand threads making 100,000 calls per
second in total."""
import os
import subprocess
import sys

from cudatrace_test import Session
from figures import emit
from scene import Daemon, calls

LANES, QUIET_S, BUSY_S, BUSY_RATE = 1000, 10, 20, 100000
OWN_KIB_MAX = 64 * 1024


def usage(what, daemon, seconds, idle):
    share, wakeups, preempted = daemon.over(seconds)
    own, rings = daemon.memory()
    emit("daemon", f"{what}_cpu_share", [share], "cores", target=("<=", 0.01) if idle else None)
    emit("daemon", f"{what}_wakeups_per_s", [wakeups], "1/s")
    emit("daemon", f"{what}_preempted_per_s", [preempted], "1/s")
    emit("daemon", f"{what}_own_memory", [own], "KiB", target=("<=", OWN_KIB_MAX))
    emit("daemon", f"{what}_mapped_rings", [rings], "KiB")


def hold(s, processes):
    """Starts `processes` programs whose threads make their calls and then wait. Returns a function that lets the programs exit."""
    fifo = s.dir / f"hold.{processes}"
    os.mkfifo(fifo)
    program = s.start(*calls("--processes", processes, "--threads", LANES // processes, "--calls", 10, "--hold", fifo),
                      stdout=subprocess.PIPE, text=True)
    if not program.stdout.readline().endswith("ok\n"):
        sys.exit("daemon: a program failed")
    s.flush()

    def release():
        end = os.open(fifo, os.O_RDWR)
        os.write(end, b"\n" * processes)
        if program.wait(60) != 0:
            sys.exit("daemon: a program failed")
        os.close(end)
    return release


def run(_build, _options):
    with Session() as s:
        s.start_daemon()
        daemon = Daemon(s.daemon.pid)
        daemon.settle()
        usage("idle", daemon, QUIET_S, True)
        for processes in (1, LANES):
            release = hold(s, processes)
            daemon.settle()
            usage(f"idle_lanes_of_{processes}_processes", daemon, QUIET_S, True)
            release()
    with Session() as s:
        s.start_daemon()
        daemon = Daemon(s.daemon.pid)
        program = s.start(*calls("--threads", LANES, "--rate", BUSY_RATE // LANES, "--burst", 10, "--calls",
                                 BUSY_RATE // LANES * BUSY_S, "--mix", "training"), stdout=subprocess.DEVNULL)
        for part in range(4):
            usage(f"busy_{part + 1}_of_4", daemon, BUSY_S / 4 - 0.5, False)
        if program.wait(120) != 0:
            sys.exit("daemon: the program failed")
        s.flush()
        s.check_identity()
