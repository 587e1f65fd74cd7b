"""Makes the database's disk fail and recover in every phase of a daemon's life. The programs must not notice. The daemon must keep running,
log the failure once, store the calls that the rings have kept, and count the other calls. The database must stay intact."""
import collections
import contextlib
import os
import random
import re
import signal
import sqlite3
import subprocess
import time

from disk_test import FAULTS, JOURNAL, LOG, MAIN, SHM, Disk
from fault_test import (CUDATRACE, DEADLINE_S, FAULT_DAEMON, LONG, WORKLOADS, HungCall, Session, by_tier, causes, check, equal, fifo,
                        in_turns, promise, wait_for)
from series_test import check_series, check_truth, file, files

CALLS = (WORKLOADS / "calls", "--threads", 2, "--calls", 500)
OUTPUT = re.compile(r"calls: processes=1 threads=2 calls=1000 failed=\d+ ok\n")
ALL = MAIN | LOG | SHM | JOURNAL
BEGINS, ENDS = "calls stay in shared memory", "can be written again"

# For each fault, this table contains its message, the phases of a daemon's life when the fault must strike, and the phases when the daemon
# must fail because of it. A fault strikes when SQLite performs the failing operation. In all other phases, the daemon may not notice the
# fault, but must then have stored all calls.
Fault = collections.namedtuple("Fault", "says strikes fails")
WRITING = "create first middle checkpoint stop", "create first middle stop"
WANTED = {
    "full": Fault("database or disk is full", *WRITING),
    "short": Fault("database or disk is full", *WRITING),
    "quota": Fault("Disk quota exceeded", *WRITING),
    "write": Fault("Input/output error", *WRITING),
    "readonly": Fault("readonly database", *WRITING),
    "fsync": Fault("Input/output error", "create first middle checkpoint stop", "create"),
    "read": Fault("Input/output error", "create first middle stop open", "open"),
    "truncate": Fault("Input/output error", "middle checkpoint stop", ""),
    "shm": Fault("No space left on device", "create grown open", "create grown open"),
    "open": Fault("Too many open files", "create open", "create open"),
    "dead": Fault("Input/output error", "create first middle checkpoint stop open", "create open first middle stop"),
}
equal(sorted(WANTED), sorted(FAULTS[1:]), "faults of both tables")


def env(disk):
    return dict(os.environ, **disk.env)


def log_lines(s):
    lines = s.log().splitlines()
    return sum(BEGINS in line for line in lines), sum(ENDS in line for line in lines)


def run_program(s):
    done = s.run(*CALLS)
    check(OUTPUT.fullmatch(done.stdout) and done.stderr == "", "the program said", done.stdout, done.stderr)


def run_long_program(s):
    """Makes enough calls to cause a checkpoint, which copies the log into the database."""
    s.run(WORKLOADS / "calls", "--threads", 2, "--calls", by_tier(4000, 30000), "--mix", "copy")


def check_whole(s, lost=0):
    """Checks that the database and its sums are intact, and that each call that has returned is stored or counted."""
    s.check_identity(lost=lost)
    s.check_truth()
    equal(s.value("PRAGMA integrity_check"), "ok", "integrity_check")
    equal(s.rows("PRAGMA foreign_key_check"), [], "foreign_key_check")


def look_between_batches(s):
    """Returns (the daemon's status, the number of stored calls), or None if a batch was stored between the two queries. This can happen
    because the daemon retries every second, and a part of the calls may fit."""
    now, stored = s.status(), s.value("SELECT ifnull(sum(stored), 0) FROM totals")
    return (now, stored) if s.status()["batches"] == now["batches"] else None


def is_well(s):
    now = s.status()
    return now["checkpoints"] == now["state"] == "ok"


def fail_while_running(s, disk, name, moment, kinds=ALL, left=0):
    """Makes the disk fail, runs programs until the fault has struck, and then ends the fault. Checks the messages, and that no calls are
    missing afterwards."""
    fault, before = WANTED[name], log_lines(s)
    unread = name == "dead" and kinds == MAIN
    run = run_program if moment in ("first", "middle") else run_long_program
    disk.fail(name, kinds, left)
    run(s)
    wait_for(f"a {name} that strikes at {moment}", lambda: disk["hits"] > 0 or run(s))
    if moment == "checkpoint":
        wait_for("status to say why the log grows, or what cannot be read", lambda: not is_well(s) or run(s))
    done = s.cudatrace("flush", status=None)
    if done.returncode == 0:
        check(left > 0 or moment not in fault.fails, name, "went by unnoticed at", moment)
        check_whole(s)
    elif unread:
        check(fault.says in done.stderr, "flush said", done.stderr, "and not", fault.says)
    else:
        equal((done.returncode, done.stderr.count("\n")), (1, 1), f"status and lines of {done.stderr!r}")
        check(fault.says in done.stderr, "flush said", done.stderr, "and not", fault.says)
        now, stored = wait_for("no batch between two looks", lambda: look_between_batches(s))
        check(fault.says in now["state"], "status says", now)
        missing = sum(s.truth().values()) - stored
        # If there is too little shared memory for all calls of a long program that are waiting to be stored, some of them are lost.
        waiting = int(now["waiting"])
        check(0 < waiting == missing or "memory" in causes() and waiting < missing, missing, "calls are missing; status says", now)
        check(re.fullmatch(r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d", now["since"]), "since", now)
        run_program(s)
        equal(s.cudatrace("flush", status=None).returncode, 1, "the second flush")
        begun, ended = log_lines(s)
        check(begun == ended + 1 and (ended == before[1] or moment == "grown"), "what the log says while it fails", begun, ended)
    disk.mend()
    s.flush()
    now = s.status()
    equal((now["state"], now["waiting"]), ("ok", "0"), "the state behind it")
    begun, ended = log_lines(s)
    check(begun == ended, "what the log says after it", begun, ended)
    # The daemon considers a fault ended when it has written a batch. During the fault, a batch can also succeed because it still fits into
    # a log that cannot grow, or because all pages that it reads are in memory. The failure is then logged again.
    check(begun <= before[0] + 1 or moment == "grown" or unread, "the log says it", begun - before[0], "times")
    run_program(s)
    s.flush()
    check_whole(s)


def without_mode(content):
    """Returns the contents of a database file without the header fields for the journal mode, the change counters and SQLite's version."""
    return content[:18] + content[20:24] + content[28:92] + content[100:]


def fail_to_start(s, disk, name, moment):
    """Tests a daemon that cannot create or open its database. The daemon must either print one line and exit without changing the database,
    or serve normally."""
    files = {path.name: without_mode(path.read_bytes()) for path in s.dir.glob("trace.db*")}
    disk.fail(name)
    done = s.start(FAULT_DAEMON, "--foreground", "--session", s.name, "--db", s.db, preload=False, env=disk.env,
                   stderr=subprocess.PIPE, text=True)
    served = s.wait_until_served(daemon=done, may_end=True)
    hits = disk.mend()
    check(hits > 0 or moment not in WANTED[name].strikes, name, "did not strike at", moment)
    if served:
        check(moment not in WANTED[name].fails, name, "let the daemon start at", moment)
        s.cudatrace("stop")
    said = done.communicate(timeout=DEADLINE_S)[1]
    if not served:
        equal((done.returncode, said.count("\n")), (1, 1), f"status and lines of {said!r}")
        check(WANTED[name].says in said, "the daemon said", said)
        check(all(without_mode(path.read_bytes()) == files[path.name] for path in s.dir.glob("trace.db") if path.name in files),
              "the database has changed")
        if moment == "create":
            equal([path.name for path in s.dir.glob("trace.db*")], [], "files left of a database that was not made")


def stop_while_failing(s, disk, name):
    """Stops the daemon while the disk is failing. Checks that the next daemon stores all calls that could not be stored, including the
    calls of a process that is still running."""
    disk.fail(name)
    run_program(s)
    hold = s.dir / "hold"
    os.mkfifo(hold)
    held = s.start(*CALLS, "--hold", hold, stdout=subprocess.PIPE, text=True)
    check(OUTPUT.fullmatch(held.stdout.readline()), "the held program's line")
    done = s.cudatrace("stop", status=None)
    ended = s.daemon.wait(DEADLINE_S)
    check(done.returncode == ended, "stop ended with", done.returncode, "and the daemon with", ended)
    if ended:
        equal(ended, 1, "the daemon's exit status")
        check(WANTED[name].says in done.stderr and "next daemon" in done.stderr, "stop said", done.stderr)
    else:
        check("stop" not in WANTED[name].fails, name, "went by unnoticed at the stop")
    check(disk.mend() > 0 or "stop" not in WANTED[name].strikes, name, "did not strike at the stop")
    s.daemon = None
    s.start_daemon(env=env(disk))
    s.flush()
    check_whole(s)
    hold.write_text("\n")
    equal(held.wait(DEADLINE_S), 0, "the held program's status")
    s.flush()
    check_whole(s)


@contextlib.contextmanager
def reading(s):
    """Keeps a read transaction open, so that SQLite cannot restart the log from its beginning."""
    run_program(s)
    s.flush()
    with contextlib.closing(sqlite3.connect(f"file:{s.db}?mode=ro", uri=True)) as reader:
        reader.execute("BEGIN")
        reader.execute("SELECT count(*) FROM call").fetchall()
        yield


def life(name, seed=0):
    """Tests a fault in every phase of the lives of a daemon and its successor. If `seed` is not 0, the fault begins after a random number
    of operations."""
    some = random.Random(seed)
    with Session() as s:
        disk = Disk(s.dir)
        left = 0 if seed == 0 else some.randrange(100000 if name in ("full", "short") else 60)
        with promise("disk-start"):
            fail_to_start(s, disk, name, "create")
        s.start_daemon(env=env(disk))
        for moment, kinds, later in (("first", ALL, left), ("middle", ALL, left // 3), ("checkpoint", MAIN, left // 10)):
            if moment in WANTED[name].strikes:
                with promise(f"disk-{name}"):
                    fail_while_running(s, disk, name, moment, kinds, later)
        with promise("disk-stop"):
            stop_while_failing(s, disk, name)
        s.stop_daemon()
        with promise("disk-start"):
            fail_to_start(s, disk, name, "open")
        s.start_daemon(env=env(disk))
        run_program(s)
        s.flush()
        check_whole(s)


def losses():
    """Makes more calls during a fault than the rings can hold. Checks that the calls that do not fit are counted as lost, and that the
    daemon recovers without being sent a command."""
    with Session() as s, promise("disk-losses"):
        disk = Disk(s.dir)
        s.start_daemon("--ring", "64K", env=env(disk))
        disk.fail("full")
        s.run(WORKLOADS / "calls", "--threads", 2, "--calls", 20000)
        equal(s.cudatrace("flush", status=None).returncode, 1, "flush")
        waiting = int(s.status()["waiting"])
        disk.mend()
        yield
        wait_for("recovery", lambda: s.status()["state"] == "ok")
        s.flush()
        check_whole(s, lost=None)
        stored, lost = s.rows("SELECT sum(stored), sum(lost) FROM totals")[0]
        check(lost > 0 and stored == waiting, "stored", stored, "lost", lost, "waited", waiting)
        equal(s.value("SELECT sum(calls) FROM losses WHERE cause = 'full'"), lost, "losses by cause")


def hung_call():
    """Tests a fault while an open call is the only thing to be written. A flush that does not write the open call must not count as
    recovery."""
    with Session() as s, promise("disk-said-once"):
        disk = Disk(s.dir)
        s.start_daemon(env=env(disk))
        disk.fail("full")
        with HungCall(s, stdout=subprocess.DEVNULL) as held:
            for _ in range(2):
                equal(s.cudatrace("flush", status=None).returncode, 1, "flush")
            equal(log_lines(s), (1, 0), "what the log says while it fails")
            disk.mend()
            s.flush()
            equal(s.rows("SELECT name FROM open_calls"), [("cuCtxSynchronize",)], "open calls")
            held.release()
        s.flush()
        equal(log_lines(s), (1, 1), "what the log says")
        s.check_identity(lost=0)


def hung_call_retried():
    """Tests that the daemon retries without a command while an open call is the only thing to be written."""
    with Session() as s, promise("disk-said-once"):
        disk, aside = Disk(s.dir), s.dir / "aside.db"
        s.start_daemon(env=env(disk))
        with HungCall(s, stdout=subprocess.DEVNULL) as held:
            s.flush()
            s.db.rename(aside)
            yield
            wait_for("a failure", lambda: s.status()["state"] != "ok")
            disk.fail("full")
            aside.rename(s.db)
            yield
            wait_for("two retries", lambda: disk["hits"] >= 2)
            equal(log_lines(s), (1, 0), "what the log says while it fails")
            disk.mend()
            s.flush()
            equal(s.rows("SELECT name FROM open_calls"), [("cuCtxSynchronize",)], "open calls")
            held.release()


def checkpoint():
    """Tests that calls are still stored if SQLite's log cannot be copied into the database, and that `status` reports the failure."""
    with Session() as s, promise("disk-checkpoint"):
        disk = Disk(s.dir)
        s.start_daemon(env=env(disk))
        disk.fail("full", MAIN)
        run_long_program(s)
        s.flush()
        wait_for("a failed checkpoint", lambda: s.status()["checkpoints"] != "ok" or run_long_program(s))
        now = s.status()
        check(now["state"] == "ok" and "full" in now["checkpoints"], "status says", now)
        s.flush()
        check_whole(s)
        # Kill the daemon while all rows are still in the log and the disk is still failing.
        s.daemon.kill()
        s.daemon.wait()
        disk.mend()
        check_whole(s)
        s.start_daemon(env=env(disk))
        s.flush_until("a checkpoint", lambda: s.db.stat().st_size > s.value("SELECT count(*) FROM calls") * 10 or
                      run_long_program(s))
        equal(s.status()["checkpoints"], "ok", "the log behind it")
        check_whole(s)


def expire():
    """Tests that if old calls cannot be deleted, they are kept until they can be deleted again."""
    with Session() as s, promise("disk-expire"):
        disk = Disk(s.dir)
        s.start_daemon("--keep", "1s", env=env(disk))
        run_program(s)
        s.flush()
        disk.fail("write", LOG)
        yield
        wait_for("a failure", lambda: s.status()["state"] != "ok")
        rows = s.value("SELECT count(*) FROM calls")
        hits = disk["hits"]
        yield
        wait_for("a retry", lambda: disk["hits"] > hits)
        equal(s.value("SELECT count(*) FROM calls"), rows, "rows while it fails")
        equal(log_lines(s), (1, 0), "what the log says while it fails")
        disk.mend()
        yield
        wait_for("an end of old calls", lambda: s.value("SELECT count(*) FROM calls") == 0)
        check_whole(s)


def under_run():
    """Tests a fault under `cudatrace run`, which must still return the command's exit status, and report that the trace is incomplete. The
    next run must store the missing calls."""
    with Session() as s, promise("disk-run"):
        disk = Disk(s.dir)
        run_env = dict(disk.env, CUDATRACE_DAEMON=FAULT_DAEMON)
        with fifo(s.dir, "go") as go:
            script = f"read line < {go}; {' '.join(map(str, CALLS))}; exit 7"
            ran = s.start(CUDATRACE, "run", "--session", s.name, "--db", s.db, "--", "sh", "-c", script, preload=False,
                          env=run_env, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
            with open(go, "w") as begin:
                disk.fail("full")
                begin.write("\n")
            out, said = ran.communicate(timeout=DEADLINE_S)
        equal(ran.returncode, 7, "the status")
        check(OUTPUT.fullmatch(out), "it printed", out)
        check("the trace is incomplete" in said and "full" in said, "run said", said)
        disk.mend()
        s.trace(*CALLS, env=run_env)
        check_whole(s)
        equal(s.rows("SELECT DISTINCT state FROM processes WHERE exe LIKE '%calls'"), [("exited",)], "states")


def grown_log():
    """Tests a log that a reader keeps from being reset, so that it grows until there is no room for its index."""
    with Session() as s, promise("disk-shm"):
        disk = Disk(s.dir)
        s.start_daemon(env=env(disk))
        with reading(s):
            fail_while_running(s, disk, "shm", "grown")


def next_file():
    """Tests that if no descriptor is available for the trace's next file, the daemon continues in the current file, and can switch to the
    next one later."""
    with Session() as s, promise("disk-open"):
        disk = Disk(s.dir)
        s.start_daemon(env=env(disk))
        run_program(s)
        disk.fail("open")
        s.daemon.send_signal(signal.SIGHUP)
        s.flush_until("the next file's failure", lambda: "cannot continue the trace in its next file" in s.log())
        check(WANTED["open"].says in s.log() and disk["hits"] > 0, "the log says", s.log())
        run_program(s)
        s.flush()
        equal(files(s), [1], "files")
        check_whole(s)
        disk.mend()
        s.daemon.send_signal(signal.SIGHUP)
        s.flush_until("the next file", lambda: s.status()["file"] == str(file(s, 2)))
        run_program(s)
        s.flush()
        check_series(s)
        check_truth(s)


def replaced(how):
    """Moves or deletes the database while the daemon is running. The daemon must report this, and write nothing more to a file that has
    lost its name. The next daemon must store the calls that were made in the meantime."""
    with Session() as s, contextlib.ExitStack() as stack, promise("disk-replaced"):
        disk, aside = Disk(s.dir), s.dir / "aside.db"
        s.start_daemon(env=env(disk))
        run_program(s)
        s.flush()
        before = s.truth()
        if how == "delete":
            for path in s.dir.glob("trace.db*"):
                path.unlink()
        elif how == "delete it alone":  # another process is still reading it, and holds its -shm
            stack.enter_context(reading(s))
            before = s.truth()
            s.db.unlink()
        else:
            s.db.rename(aside)
        if how == "replace":
            s.db.write_text("Dear reader")
        yield
        wait_for("the daemon's notice", lambda: "moved, deleted or replaced" in s.status()["state"])
        run_program(s)
        done = s.cudatrace("flush", status=None)
        check(done.returncode == 1 and "moved, deleted or replaced" in done.stderr, "flush said", done.stderr)
        if how == "move":  # the file returns, and the daemon continues
            aside.rename(s.db)
            s.flush()
            check_whole(s)
            equal(log_lines(s), (1, 1), "what the log says")
            s.db.rename(aside)
            run_program(s)
        stopping = s.start(CUDATRACE, "stop", "--session", s.name, preload=False, stderr=subprocess.DEVNULL)
        yield  # the daemon waits five seconds for the reader to end
        equal(stopping.wait(DEADLINE_S), 1, "stop")
        equal(s.daemon.wait(DEADLINE_S), 1, "the daemon's exit status")
        if "delete" not in how:  # it has all stored rows, including those of the log
            connection_rows = s.value("SELECT count(*) FROM calls", db=aside)
            check(connection_rows >= sum(before.values()), "the file that was moved has", connection_rows)
            equal(s.value("PRAGMA integrity_check", db=aside), "ok", "its integrity_check")
        if how == "replace":
            equal(s.db.read_text(), "Dear reader", "what stands in its place")
            s.db.unlink()
        s.start_daemon(env=env(disk))
        s.flush()
        s.check_identity(lost=0)
        equal(s.value("PRAGMA integrity_check"), "ok", "integrity_check")
        truth = s.truth()
        stored = s.totals() if "delete" in how else collections.Counter(s.totals()) + collections.Counter(
            {key: calls for *key_, calls in s.rows(
                "SELECT pid, totals.name, sum(calls) FROM totals JOIN processes USING (process_id) "
                "WHERE layer = 'driver' GROUP BY pid, totals.name", db=aside) for key in [tuple(key_)]})
        wanted = {key: calls for key, calls in truth.items() if "delete" not in how or key not in before}
        equal(dict(stored), wanted, "calls in both files")


PAGE = 4096


def overwritten():
    """Overwrites a page of the database that the daemon does not read again. Checks that the daemon notices this, and that the log names
    the file."""
    with Session() as s, promise("disk-overwritten"):
        s.start_daemon(env=env(Disk(s.dir)))

        def grown():
            run_program(s)
            s.flush()
            return s.db.stat().st_size > 40 * PAGE

        wait_for("a file of some pages", grown)

        # The daemon cannot notice a write that occurs while it is copying the log into the file, so the test may have to write several
        # times.
        def noticed():
            with open(s.db, "r+b") as file:
                file.seek(20 * PAGE)
                file.write(bytes(PAGE))
            run_program(s)
            return f'another program has written the database "{s.db}"' in s.log()

        wait_for("the daemon's notice", noticed)
        s.cudatrace("stop", status=None)
        s.daemon.wait(DEADLINE_S)


def shm_cut():
    """Truncates SQLite's shared-memory file. Checks that the daemon's last line in the log names the file, and that the next daemon
    continues."""
    with Session() as s, promise("disk-shm-cut"):
        s.start_daemon(env=env(Disk(s.dir)))
        run_program(s)
        s.flush()
        os.truncate(f"{s.db}-shm", 0)
        run_program(s)
        equal(s.daemon.wait(DEADLINE_S), -signal.SIGBUS, "how the daemon ended")
        check(f"error: killed by SIGBUS: {s.db}-shm was truncated" in s.log(), s.log())
        s.start_daemon(env=env(Disk(s.dir)))
        s.flush()
        check_whole(s)


def in_turn(number, test, *arguments):
    """Makes a test case for in_turns() that yields `number` times and then runs the test."""
    for _ in range(number):
        yield
    began = time.monotonic()
    test(*arguments)
    print(test.__name__, *arguments, f"{time.monotonic() - began:.1f} s")


# SQLite handles these faults in the same way as `full`, so the short tier leaves them out.
ALIKE = ("short", "quota", "write")
LIVES = [(name, seed) for name in WANTED if name not in by_tier(ALIKE, ()) for seed in range(11 if LONG else 1)]
for repetition in range(3 if LONG else 1):
    in_turns(*map(replaced, ("delete it alone", "move", "delete", "replace")), expire(), hung_call_retried(), losses(),
             *(in_turn(0, test) for test in (hung_call, checkpoint, under_run, grown_log, next_file, overwritten, shm_cut)),
             *(in_turn(1, life, *arguments) for arguments in LIVES if repetition == 0))
