"""Lets one user fill all tables of the system daemon that a user can fill, at the same time. Another user's program must lose nothing, the
daemon's memory must stay bounded, and the user whose rows are refused must be notified."""
import os
import re
import subprocess

from fault_test import BUILD, SANITIZED, Session, check, equal, needs, promise, wait_for
from users import ALICE, BOB, Users

# The kinds of rows that the hogs produce, with the number of processes for each kind. The kind `names` produces functions that are never
# called.
HOGS = {"names": 400, "lanes": 5, "functions": 20, "statuses": 2, "objects": 2, "shapes": 2, "routes": 2, "allocations": 2,
        "kernels": 2, "threads": 2, "texts": 2, "fields": 2, "gpu_work": 2, "dropped_work": 1, "late": 1, "losses": 20, "open": 20}
MEMORY_KIB = 128 * 1024
CALLS = 60000


def begin(u, hog, kind, processes):
    fifo = u.s.dir / f"{kind}.begun"
    os.mkfifo(fifo)
    fifo.chmod(0o666)
    child = u.start(BOB, hog, "/dev/shm", u.s.name, kind, processes, fifo, preload=False, stdin=subprocess.PIPE)
    ends = os.open(fifo, os.O_RDWR)
    for _ in range(processes):
        equal(os.read(ends, 1), b"x", kind)
    os.close(ends)
    return child


def said(u, uid, command, status=None):
    done = u.run(uid, u.cudatrace, command, "--session", u.s.name, status=status)
    return " ".join((done.stdout + done.stderr).split())


def number(text, word):
    found = re.search(rf"\b{word} (\d+)", text)
    return int(found[1]) if found else 0


needs(shm_mib=500)
with Session() as s:
    u = Users(s)
    hog = u.copy(BUILD / "tests/faults/hog")
    # Each ring has room for all calls that a thread of Alice's program makes in one and a half seconds.
    s.start_daemon("--system", "--ring", "1M")
    hogs = [begin(u, hog, kind, processes) for kind, processes in HOGS.items()]
    with promise("every_table"):
        wait_for("threads of his to wait", lambda: number(said(u, BOB, "status", 0), "waiting_threads") > 0)
    with promise("every_table"):
        u.run(ALICE, u.calls, "--threads", 1, "--calls", CALLS, "--rate", 20000, "--mix", "getctx", preload=True)
        equal(said(u, ALICE, "flush", 0), "", "what her flush said")
        rows = s.rows("SELECT sum(stored), sum(lost), count(*) > 0 FROM totals JOIN processes USING (process_id) WHERE uid = ? AND "
                      "totals.name = 'cuCtxGetCurrent'", ALICE)
        equal(rows, [(CALLS, 0, 1)], "her calls: stored and lost")
    # Only Bob and root may be notified that some of Bob's rows are refused.
    with promise("every_table"):
        check("threads wait" in said(u, BOB, "doctor"), said(u, BOB, "doctor"))
        check("waiting_" not in said(u, ALICE, "status", 0), "what her status says")
        status = said(u, 0, "status", 0)
        check(number(status, "waiting_threads") > 0, status)
        check(f"threads of user {BOB} wait for others to end" in s.log(), s.log())
        check(f"functions of user {BOB} are counted as one" in s.log(), s.log())
        check("wait, because the daemon has no room" in said(u, 0, "flush", 1 if not status else 0), "what root's flush said")
    # Functions that were never called have no row in `totals`.
    with promise("every_table"):
        equal(s.value("SELECT count(*) FROM totals WHERE calls = 0"), 0, "functions without a call in totals")
        names = s.value("SELECT count(*) FROM functions WHERE name LIKE 'cuFake%'")
        check(names <= 8192, "made-up names in the trace:", names)
    memory = int(re.search(r"RssAnon:\s+(\d+)", open(f"/proc/{s.daemon.pid}/status").read())[1])  # without mapped files
    print("the daemon's memory:", memory, "KiB")
    with promise("every_table"):
        check(memory < MEMORY_KIB or SANITIZED, "the daemon's memory:", memory, "KiB")
    # After the hogs have exited, no calls may be waiting, and the calls of Bob's programs must be recorded as before.
    for child in hogs:
        child.stdin.close()
    for child in hogs:
        check(child.wait() in (0, -13), "a hog ended with", child.returncode)
    u.run(BOB, u.calls, "--threads", 1, "--calls", 1000, preload=True)
    with promise("every_table"):
        wait_for("his flush to be well again", lambda: u.run(BOB, u.cudatrace, "flush", "--session", s.name,
                                                             status=None).returncode == 0)
        check("no threads wait for room any more" in s.log(), s.log())
    equal(s.daemon.poll(), None, "the daemon")
