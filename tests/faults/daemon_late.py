"""Tests a daemon that is stopped by a signal, a daemon that starts after the programs, and a daemon that starts long after the previous one
died. Programs must not wait for the daemon, and every missing call must be either counted or reported as missing."""
import os
import signal
import socket
import subprocess
import time

from daemon_test import Deadly, step
from fault_test import CUDATRACE, DEADLINE_S, FAULT_DAEMON, LONG, WORKLOADS, by_tier, check, equal, fifo, points, promise, wait_for

STOPPING = ["merged.taken", "batch.saved", "lane.tail", "lane.loss_seen", "process.lane_published"]
STOPPING += by_tier([], ["batch.begun", "store.deferred", "batch.committed", "batch.published"])
if LONG:
    STOPPING = sorted(name for name in set(points(FAULT_DAEMON)) if name.split(".")[0] in ("batch", "merged", "store", "lane", "process")
                      and name not in ("process.detaching", "process.detached", "process.removing", "process.removed", "lane.loss_saved",
                                       "store.going_on", "store.went_on"))  # daemon_files.py


def check_losses_by_function(s, programs):
    """Checks that calls were lost, and that the trace contains the number and the total time of the lost calls of each program. For copies,
    it must also contain the number of bytes."""
    for pid in programs:
        lost, lost_ns = s.rows("SELECT sum(unsent.lost), sum(lost_ns) FROM unsent JOIN segment USING (segment_id) JOIN process "
                               "USING (process_id) WHERE pid = ?", pid)[0]
        check(lost > 0 and lost_ns > 0, "lost calls and their time", lost, lost_ns)
        by_cause = s.value("SELECT sum(losses.calls) FROM losses JOIN processes USING (process_id) WHERE pid = ? AND "
                           "cause <> 'pressure'", pid)
        equal(by_cause, lost, "lost by cause and by function")
    check(s.value("SELECT sum(lost_bytes) FROM unsent JOIN function USING (function_id) WHERE name GLOB 'cuMemcpy*'") > 0,
          "bytes of lost copies")


# The first programs make the daemon reach the test point where it stops. The later programs must run to completion while the daemon is
# stopped, because a program must never wait for the daemon.
for name in STOPPING:
    with Deadly() as s, promise("daemon-stopped"):
        s.start_armed(name, 1 if name.startswith(("merged", "process", "store", "lane")) else 3, "--ring", "64K", action="stop")
        for number in (0, 2, 3):
            s.exact.add(s.start_program(number, by_tier(3000, 30000)).pid)
        s.is_stopped()
        later = [s.start_program(number, by_tier(14000, 30000)).pid for number in (0, 2, 3)]
        s.exact.update(later)
        s.end_programs()
        s.daemon.send_signal(signal.SIGCONT)
        s.flush()
        s.check_all()
        check_losses_by_function(s, later)
        # Now the rings have room again, so further calls must be stored.
        s.exact.add(s.start_program(0, 500).pid)
        s.end_programs()
        s.flush()
        s.check_all()

# Stop the daemon for more than a minute. A program that makes calls at a fixed rate must exit on time, as it would without a daemon.
if LONG:
    with Deadly() as s, promise("daemon-stopped"):
        s.start_daemon("--ring", "64K")
        s.daemon.send_signal(signal.SIGSTOP)
        s.is_stopped()
        began = time.monotonic()
        program = s.start(WORKLOADS / "calls", "--threads", 2, "--mix", "training", "--rate", 20000, "--burst", 20,
                          "--calls", 20000 * 66, stdout=subprocess.DEVNULL)
        equal(program.wait(DEADLINE_S), 0, "the program's status")
        print(f"stopped for {time.monotonic() - began:.1f} s, of which the program has to take 66")
        s.daemon.send_signal(signal.SIGCONT)
        s.flush()
        s.exact.add(program.pid)
        s.check_all()
        check_losses_by_function(s, s.exact)

def all_report(s, commands, what):
    """Checks that each of the commands, which run at the same time, fails and reports this."""
    asking = [s.start(CUDATRACE, command, "--session", s.name, *rest, preload=False, stdout=subprocess.PIPE,
                      stderr=subprocess.PIPE, text=True) for command, *rest in commands]
    for command, tool in zip(commands, asking):
        with promise("daemon-stopped-tools"):
            out, said = tool.communicate(timeout=DEADLINE_S)
            equal((tool.returncode, out), (1, ""), command)
            check(what in said, command, "said", said)


# The commands must report that the daemon does not respond, and exit.
with Deadly() as s:
    s.start_daemon()
    s.exact.add(s.start_program(0, 500).pid)
    s.end_programs()
    s.daemon.send_signal(signal.SIGSTOP)
    s.is_stopped()
    commands = (["status"], ["flush"], ["stop"], ["set", "--sample", "2"], ["sql", "SELECT 1"], ["run", "--", "true"])
    all_report(s, commands, f"(process {s.daemon.pid}) is stopped")
    equal(s.cudatrace("sql", "--db", s.db, "--format", "csv", "SELECT 1 AS one").stdout.split(), ["one", "1"], "sql with --db")
    done = s.run(CUDATRACE, "report", "--db", s.db, "processes", preload=False)
    check(f"(process {s.daemon.pid}) is stopped; resume it with `kill -CONT {s.daemon.pid}`; until then" in done.stderr, done.stderr)
    # When the daemon is resumed, it executes the `stop` request that was sent to it, and exits.
    s.daemon.send_signal(signal.SIGCONT)
    equal(s.daemon.wait(DEADLINE_S), 0, "the daemon's status")
    s.start_daemon()
    # Stop the daemon while `cudatrace run` is running a command. `run` must still return the command's status.
    with promise("daemon-stopped-tools"), fifo(s.dir, "stopped") as stopped:
        job = s.start(CUDATRACE, "run", "--session", s.name, "--", "sh", "-c", f"read line < {stopped}; exit 7", preload=False,
                      stderr=subprocess.PIPE, text=True)
        with open(stopped, "w") as go:
            s.daemon.send_signal(signal.SIGSTOP)
            s.is_stopped()
            go.write("\n")
        _, said = job.communicate(timeout=DEADLINE_S)
        equal(job.returncode, 7, "the status of run")
        check(f"the daemon (process {s.daemon.pid}) is stopped; resume it with `kill -CONT {s.daemon.pid}`; " in said, said)
    s.daemon.send_signal(signal.SIGCONT)
    s.flush()
    s.check_all()

# The commands must report a process that accepts connections instead of the daemon, but never answers.
with Deadly() as s, socket.socket(socket.AF_UNIX) as mute:
    mute.bind(f"/dev/shm/cudatrace.{os.geteuid()}.{s.name}.sock")
    mute.listen(64)
    commands = (["status"], ["flush"], ["stop"], ["set", "--sample", "2"], ["set", "--gpu", "on"], ["sql", "SELECT 1"])
    all_report(s, commands, f"the daemon of session '{s.name}' (process {os.getpid()}) does not respond")
    os.unlink(mute.getsockname())


def start_churn(s):
    """Starts a program that makes some calls each time it reads a line, until its input ends."""
    program = s.start(WORKLOADS / "churn", "--threads", 1 << 30, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                      stderr=subprocess.DEVNULL, text=True)
    check(program.stdout.readline(), "the program ended")
    return program


def end_churn(program):
    program.stdin.close()
    equal(program.wait(DEADLINE_S), 1, "the status of a program that is told no step")


def step_until(s, program, sql):
    """Makes the program continue until the daemon has found it. A hook looks for a daemon at most once a second, when the program makes a
    call."""
    wait_for("the daemon to find the program", lambda: s.value(sql, program.pid) or not step(program) or s.flush())


# Start the daemon after the program. The trace must report that calls before the daemon's start are missing.
with Deadly() as s, promise("daemon-late"):
    program = start_churn(s)
    early = sum(s.truth().values())
    check(early > 5000, "hardly a call was made", early)
    s.start_daemon()
    step_until(s, program, "SELECT count(*) FROM processes WHERE pid = ?")
    step(program)
    end_churn(program)
    s.exact.add(s.start_program(0, 500).pid)
    s.end_programs()
    s.flush()
    s.check_all()
    rows = s.rows("SELECT pid, tid, calls, first_ns < last_ns, last_ns = started_ns FROM losses JOIN processes USING (process_id) "
                  "WHERE cause = 'absent'")
    equal(rows, [(program.pid, None, None, 1, 1)], "what is said to be missing")
    seen = sum(calls for (pid, _), calls in s.totals().items() if pid == program.pid)
    truth = sum(calls for (pid, _), calls in s.truth().items() if pid == program.pid)
    check(0 < seen <= truth - early, "calls in the trace, of all, before the daemon:", seen, truth, early)

# Kill a daemon, and start the next one after the programs have ended. Calls that fit into the rings must be stored, and the others must be
# counted.
with Deadly() as s, promise("daemon-killed-long-ago"):
    s.start_daemon("--ring", "64K")
    program = start_churn(s)
    s.flush()
    s.exact.add(program.pid)
    s.daemon.kill()
    s.daemon.wait()
    for _ in range(20):
        step(program)
    end_churn(program)
    s.start_program(0, 500)  # no daemon runs to see it
    s.end_programs()
    s.start_daemon("--ring", "64K")
    s.flush()
    s.check_all()
    equal(s.rows("SELECT pid FROM processes"), [(program.pid,)], "processes")
    found = set(s.rows("SELECT DISTINCT cause FROM losses"))
    check(found and found <= {("full",), ("pressure",)}, "causes", found)
    s.summary()

# Stop a daemon, and start another one while the program is still running. The trace must report that calls between the two daemons are
# missing.
with Deadly() as s, promise("daemon-between"):
    s.start_daemon()
    program = start_churn(s)
    s.flush()
    s.stop_daemon()
    step(program)
    s.start_daemon()
    step_until(s, program, "SELECT count(*) > 1 FROM segment JOIN process USING (process_id) WHERE pid = ?")
    step(program)
    end_churn(program)
    s.flush()
    s.check_all()
    equal({pid for pid, _ in s.absent()}, {program.pid}, "processes that miss calls")
