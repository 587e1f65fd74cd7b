"""Tests that a process with a reused pid counts as a different process. Also tests that a process is identified correctly in a pid
namespace, with a separate /dev/shm, and when it is watched without a pidfd.

    pids.py reuse | namespace | own_shm | no_pidfd
"""
import contextlib
import errno
import os
import signal
import subprocess
import sys

from trap_test import HungCall, Session, WORKLOADS, check, equal, mount_namespace, needs, refuse_system_call

INSIDE = "CUDATRACE_TEST_INSIDE"
(trap,) = sys.argv[1:]
CALLS = [WORKLOADS / "calls", "--mix", "getctx", "--threads", 1, "--calls"]


def reuse(s):
    """Runs the test again in a separate pid namespace, where it can choose the next pid."""
    s.start_daemon()
    pids = []
    for calls in (100, 200, 300):
        # Run programs with the same pid one after another. Each program has exited before the next one starts.
        with open("/proc/sys/kernel/ns_last_pid", "w") as last:
            last.write("4999")
        program = s.start(*CALLS, calls, stdout=-3)
        equal(program.wait(), 0, "its status")
        pids.append(program.pid)
    equal(pids, [5000] * 3, "pids")
    s.flush()
    s.check_identity()
    seen = s.rows("SELECT pid, state, (SELECT sum(calls) FROM totals WHERE totals.process_id = p.process_id "
                  "AND name = 'cuCtxGetCurrent') FROM processes AS p ORDER BY started_ns")  # the daemon may have found two at once
    equal([row[:2] for row in seen], [(5000, "exited")] * 3, "processes")
    counts = [row[2] for row in seen]
    check(counts[1] - counts[0] == counts[2] - counts[1] > 0, "calls of each", seen)
    equal(s.value("SELECT count(DISTINCT started_ns) FROM processes"), 3, "starts")


def namespace(s):
    """Runs the daemon outside the programs' pid namespaces. In its own namespace, each program has pid 1 or 2."""
    s.start_daemon()
    for _ in range(2):
        s.run("unshare", "-p", "-f", "--mount-proc", *CALLS, 500)
    s.run("unshare", "-p", "-f", "--mount-proc", "sh", "-c", '"$0" "$@" & wait $!; exit $?', *CALLS, 500)
    # Give the program a pid that no process outside the namespace uses.
    free = next(pid for pid in range(30000, 300, -1) if not any(os.path.exists(f"/proc/{pid + i}") for i in range(5)))
    for _ in range(10):
        s.run("unshare", "-p", "-f", "--mount-proc", "sh", "-c",
              f'echo {free} >/proc/sys/kernel/ns_last_pid; "$0" "$@" & wait $!; exit $?', *CALLS, 500)
    with HungCall(s, "--calls", 100, within=("unshare", "-p", "-f", "--mount-proc", "--kill-child")) as victim:
        victim.kill()
    s.flush()
    s.check_identity()
    # The kernel does not notify the daemon when a process in another namespace exits, so the daemon has to poll.
    s.flush_until("the end of all processes", lambda: s.value("SELECT count(*) FROM processes WHERE state = 'running'") == 0)
    rows = s.rows("SELECT pid, state FROM processes WHERE cmdline LIKE '%getctx%'")
    equal(len(rows), 13, "programs")
    equal({state for _, state in rows}, {"exited"}, rows)
    check(s.value("SELECT count(*) FROM calls") >= 6600, "calls")
    equal(s.rows("SELECT name FROM open_calls"), [("cuCtxSynchronize",)], "the killed one's open call")
    equal(s.value("SELECT state FROM processes WHERE cmdline LIKE '%hang%'"), "killed", "the killed one's state")


def own_shm(s):
    """A container with a separate /dev/shm has no daemon. The hook stays dormant, and leaves no file."""
    s.start_daemon()
    plain = s.run(*CALLS, 500, preload=False)
    done = s.run(*mount_namespace(), "sh", "-c", 'mount -t tmpfs none /dev/shm && "$0" "$@" && ls -A /dev/shm', *CALLS, 500)
    equal((done.stdout, done.stderr), (plain.stdout, plain.stderr), "the output in there, /dev/shm being empty after it")
    s.flush()
    equal(s.value("SELECT count(*) FROM processes"), 0, "processes")


def open_files(pid):
    """Returns the names of the files that a process has open. Omits a descriptor that is closed while the list is being read."""
    files = []
    for fd in os.listdir(f"/proc/{pid}/fd"):
        with contextlib.suppress(FileNotFoundError):
            files.append(os.readlink(f"/proc/{pid}/fd/{fd}"))
    return files


def no_pidfd(s):
    """The daemon polls the processes in /proc, and notices at its next poll that a process has exited."""
    s.start_daemon(preexec_fn=lambda: refuse_system_call("pidfd_open", errno.EPERM))
    with HungCall(s, "--calls", 100) as victim:
        s.run(*CALLS, 500)
        s.flush()
        states = "SELECT state FROM processes ORDER BY cmdline LIKE '%hang%'"
        equal(s.rows(states), [("exited",), ("running",)], "states")
        equal(open_files(s.daemon.pid).count("anon_inode:[pidfd]"), 0, "pidfds of the daemon")
        os.kill(victim.pid, signal.SIGKILL)
        # Do not reap the process, because a zombie must also count as ended.
        os.waitid(os.P_PID, victim.pid, os.WEXITED | os.WNOWAIT)
        s.flush()
        equal(s.rows(states), [("exited",), ("killed",)], "states after the kill")
    equal([name for name in os.listdir("/dev/shm") if f".{s.name}." in name and not name.endswith(".sock")], [],
          "segments")
    s.check_identity()


if trap == "reuse" and INSIDE not in os.environ:
    needs("choosing pids")
    sys.exit(subprocess.run(["unshare", "-p", "-f", "--mount-proc", sys.executable, __file__, trap],
                            env=dict(os.environ, **{INSIDE: "1"})).returncode)
needs(*{"namespace": ["choosing pids"], "own_shm": ["mount namespaces"]}.get(trap, []))
with Session() as session:
    {"reuse": reuse, "namespace": namespace, "own_shm": own_shm, "no_pidfd": no_pidfd}[trap](session)
