"""Kills the daemon repeatedly, at each of its test points, while programs are running. All daemons use the same database. Each call must be
stored or counted exactly once, and the programs must not be affected."""
import os
import signal
import subprocess

from daemon_test import Deadly, PROGRAMS, step
from fault_test import DEADLINE_S, FAULT_DAEMON, LONG, WORKLOADS, by_tier, check, equal, fifo, in_turns, points, promise

ALL = set(points(FAULT_DAEMON))
reached = set()

# Test points that a daemon reaches only in certain situations. The daemon reaches all other points under load.
MAKING = {"database.filled", "database.made"}
LEAVING = {"session.hidden", "process.detaching", "process.detached", "process.removing", "process.removed", "daemon.let_go",
           "daemon.store_closed", "database.plain", "session.closing", "session.removed", "command.removed"}
EXPIRING = {name for name in ALL if name.startswith("expire.")}
GIVING = {name for name in ALL if name.startswith("rings.")}
FILES = {"store.going_on", "store.went_on", "database.removing"}  # daemon_files.py
SYSTEM = {"owner.checking"}  # system.py
SUCCESSION = {"control_lock.waiting"}  # succession.py
ELSEWHERE = {"session.selecting", "watch.left_over", "lane.loss_saved"} | FILES | SYSTEM | SUCCESSION
LOAD = sorted(ALL - MAKING - EXPIRING - GIVING - ELSEWHERE - (LEAVING - {"process.removing", "process.removed"}))
FIRST_LOAD = by_tier(LOAD[::2], LOAD)
LATER = (2, 3, 5, 17, 100, 1000, 10000) if LONG else (3,)
LATER_LOAD = by_tier(LOAD[1::8], LOAD)
CALLS = 2000
EARLY_CALLS = by_tier(3, 15) * CALLS  # calls of each thread in the programs that the first daemon finds


def die(s, name, nth, *options):
    """Starts a daemon that runs under load and dies when it reaches the fault point `name` for the nth time."""
    if s.start_armed(name, nth, *options):
        s.flush_until_death(3, CALLS, None if nth == 1 else 40 if LONG else 4)
    if s.reap():
        reached.add(name)
    else:
        check(nth > 1, "the daemon did not come to", name)


def under_load(s, wanted, *options):
    """Starts a daemon for each (test point, n) in `wanted`. Each daemon dies the nth time it reaches its test point. Programs keep running
    when a daemon dies."""
    s.start_daemon(*options)
    # The first daemon finds these programs before it dies, so each of their calls must be stored or counted.
    for number, (command, _) in enumerate(PROGRAMS):
        child = s.start_program(number, EARLY_CALLS)
        if "--processes" not in command:  # the first process of such a program makes no calls
            s.exact.add(child.pid)
    s.flush_until("all programs", lambda: s.exact <= {pid for (pid,) in s.rows("SELECT pid FROM processes")})
    s.reap()
    for name, nth in wanted:
        die(s, name, nth, *options)
    s.start_daemon(*options)
    s.end_programs()
    s.flush()
    s.check_all()
    s.summary()


# First use rings that are too small for the calls made while no daemon is running, and then rings that are large enough.
with Deadly() as s, promise("daemon-killed", len(FIRST_LOAD)):
    under_load(s, [(name, 1) for name in ["lane.loss_saved"] + FIRST_LOAD], "--ring", "64K")
    check(s.value("SELECT sum(lost) FROM totals") > 0, "nothing was lost, so that losses were not put to the test")
with Deadly() as s, promise("daemon-killed-later", len(LATER_LOAD) * len(LATER)):
    under_load(s, [(name, nth) for nth in LATER for name in LATER_LOAD], "--ring", "64M")
    s.check_causes("absent", "signal")
    check(s.deaths >= len(LATER_LOAD) * len(LATER) // 3, "deaths at later passings:", s.deaths)

# Let calls expire after a second. The daemon removes old calls only once per second, and reaches some test points only in certain cases, so
# each daemon runs under load until it reaches its point.
with Deadly() as s, promise("daemon-killed-expiring", len(EXPIRING)):
    options = ("--keep", "1s", "--ring", "4M")
    for nth in (1, 2) if LONG else (1,):
        for name in sorted(EXPIRING):
            die(s, name, nth, *options)
    s.start_daemon(*options)
    s.end_programs()
    s.flush()
    s.check_all()
    check(s.value("SELECT sum(expired) FROM totals") > 0, "no call has gone")
    s.summary()


def give(name):
    """Makes a ring grow by a burst of calls while the daemon is stopped. A second after the daemon has been resumed, it frees the ring's
    memory, and dies while it does so."""
    with Deadly() as s, promise("daemon-killed-giving"):
        s.start_armed(name)
        with fifo(s.dir, "hold") as hold:
            s.daemon.send_signal(signal.SIGSTOP)
            program = s.start(WORKLOADS / "calls", "--calls", by_tier(20000, 50000), "--mix", "getctx", "--hold", hold, stdout=subprocess.PIPE)
            check(program.stdout.readline(), "the program ended")
            s.daemon.send_signal(signal.SIGCONT)
            yield
            s.daemon.wait(DEADLINE_S)
            check(s.reap(), "the daemon did not come to", name)
            reached.add(name)
            s.start_daemon()
            s.flush()
            hold.write_bytes(b"\n")
            equal(program.wait(DEADLINE_S), 0, "the program's status")
            program.stdout.close()
        s.flush()
        s.check_all()


in_turns(*map(give, sorted(GIVING)))

# Kill the daemon while it starts and creates the database. The next daemon must create the database again, or use it if it is already
# complete.
for name in sorted(MAKING | {"database.locked", "database.opened", "session.locked", "session.cleared", "session.opened",
                             "socket.binding", "command.listening"}):
    with Deadly() as s, promise("daemon-killed-starting"):
        check(not s.start_armed(name) and s.reap(), "the daemon did not come to", name)
        reached.add(name)
        s.start_daemon()
        s.exact.add(s.start_program(0, 500).pid)
        s.end_programs()
        s.flush()
        s.check_all()


# Kill the daemon while it exits. An exiting daemon makes the hooks detach, so that they can find another daemon. Here, the program makes no
# calls while no daemon is running.
for name in sorted(LEAVING):
    with Deadly() as s, promise("daemon-killed-leaving"):
        s.start_armed(name)
        program = s.start(WORKLOADS / "churn", "--threads", 10, "--modules", 10, "--forks", 2, "--warm", 100,
                          env={"SIMCUDA_FORK": "works"}, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        check(program.stdout.readline(), "the program ended")
        s.cudatrace("flush")
        s.daemon.send_signal(signal.SIGTERM)
        s.daemon.wait(DEADLINE_S)
        check(s.reap(), "the daemon did not come to", name)
        reached.add(name)
        s.start_daemon()
        while step(program) != "churn: ok\n":
            pass  # its steps are counted
        equal(program.wait(DEADLINE_S), 0, "the program's status")
        s.flush()
        s.check_all()
        check({pid for pid, _ in s.absent()} <= {program.pid}, "processes that miss calls")

# Kill the daemon while it changes the selection of calls. After that, all calls must be recorded until the selection is set again.
with Deadly() as s, promise("daemon-killed-setting"):
    s.start_armed("session.selecting", 2)
    s.cudatrace("set", "--calls", "cuMem*")
    equal(s.cudatrace("set", "--calls", "cuCtx*", status=None).returncode, 1, "the status of set")
    s.daemon.wait(DEADLINE_S)
    check(s.reap(), "the daemon did not come to session.selecting")
    reached.add("session.selecting")
    s.start_daemon()
    check("all calls are recorded until" in s.log(), "said nothing")
    equal(s.status()["calls"], "*", "what is recorded")
    s.exact.add(s.start_program(0, 500).pid)
    s.end_programs()
    s.flush()
    s.check_all()
    equal(s.value("SELECT sum(skipped) FROM totals"), 0, "calls left out")
    s.cudatrace("set", "--calls", "cuMem*")
    s.start_program(0, 500)
    s.end_programs()
    s.flush()
    s.check_all()
    check(s.value("SELECT sum(skipped) FROM totals") > 0, "nothing is left out")

# Test the segment of a program that was killed while it created the segment. The daemon removes such a file, and if the daemon dies before
# it has done so, a later daemon removes it.
with Deadly() as s, promise("daemon-killed-removing"):
    gone = subprocess.run(["sh", "-c", "echo $$"], capture_output=True, text=True).stdout.strip()
    left = f"/dev/shm/cudatrace.{os.geteuid()}.{s.name}.{gone}.1"
    open(left, "w").close()
    os.utime(left, (1, 1))
    check(not s.start_armed("watch.left_over") and s.reap(), "the daemon did not come to watch.left_over")
    reached.add("watch.left_over")
    s.start_daemon()
    check(not os.path.exists(left), "it is still there")

equal(ALL - reached - FILES - SYSTEM - SUCCESSION - (set(LOAD) - set(FIRST_LOAD)), set(), "test points that no daemon died at")
