"""Tests that all calls of a burst are stored if there is enough memory. The daemon must then free the memory that the burst took in
/dev/shm, even while the thread is asleep. The ring of a thread that makes few calls must not grow, so that many such threads need little
memory."""
import glob
import os
import subprocess

from cudatrace_test import Session, WORKLOADS, check, equal, have_shm, wait_for

BURST = 600_000


def held(s, program, *arguments):
    """Starts a program that makes its calls and then waits. Returns (the program, the path of its segment, the FIFO that lets it exit)."""
    hold = f"{s.dir}/hold"
    os.mkfifo(hold)
    child = s.start(WORKLOADS / program, *arguments, "--hold", hold, stdout=subprocess.PIPE)
    child.stdout.readline()
    path, = glob.glob(f"/dev/shm/cudatrace.{os.geteuid()}.{s.name}.{child.pid}.*")
    return child, path, hold


def kib(path):
    return os.stat(path).st_blocks // 2


def let_go(child, hold):
    with open(hold, "w"):
        pass
    equal(child.wait(), 0, "the program's status")
    child.stdout.close()
    os.unlink(hold)


if have_shm(1500, "a burst"):
    with Session() as s:
        s.start_daemon()
        child, path, hold = held(s, "calls", "--calls", BURST, "--mix", "getctx")
        s.flush()
        equal(s.value("SELECT ifnull(sum(lost), 0) FROM totals"), 0, "calls lost")
        wait_for("the burst's memory", lambda: kib(path) < 4096)
        let_go(child, hold)
        s.flush()
        s.check_identity()

with Session() as s:
    s.start_daemon()
    child, path, hold = held(s, "calls", "--calls", 1, "--threads", 200, "--mix", "getctx")
    s.flush()
    check(kib(path) < 200 * 64, "200 threads took", kib(path), "KiB")
    let_go(child, hold)
    s.flush()
    s.check_identity()
