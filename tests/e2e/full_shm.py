"""Tests that if /dev/shm is full, or a control group's memory limit is nearly reached, the program continues at its normal speed with
correct results, and every call is stored or counted as lost, with the cause."""
import os
import signal
import subprocess
import sys

from cudatrace_test import CUDATRACE, Session, WORKLOADS, check, mount_namespace, needs

INSIDE = "CUDATRACE_TEST_FULL_SHM"
# Mount a small /dev/shm in a private mount namespace, or the files of control groups that have no memory left.
GROUP = "".join(f" && echo {value} >/sys/fs/cgroup/{name}" for value, name in (
    (1 << 26, "memory.max"), (1 << 26, "memory.current"), ("inactive_file 0", "memory.stat"), (1 << 26, "memory/memory.limit_in_bytes"),
    (1 << 26, "memory/memory.usage_in_bytes"), ("total_inactive_file 0", "memory/memory.stat")))
MOUNTS = {"memory": "mount -t tmpfs -o size=2560k none /dev/shm",
          "cgroup": "mount -t tmpfs none /sys/fs/cgroup && mkdir /sys/fs/cgroup/memory" + GROUP}
if INSIDE not in os.environ:
    needs("mount namespaces")
    for cause, mount in MOUNTS.items():
        done = subprocess.run([*mount_namespace(), "sh", "-c", mount + ' && exec "$0" "$@"', sys.executable, __file__],
                              env=dict(os.environ, **{INSIDE: cause}))
        if done.returncode:
            sys.exit(done.returncode)
    sys.exit(0)

if os.environ[INSIDE] == "cgroup":
    with Session() as s:
        s.start_daemon()
        s.daemon.send_signal(signal.SIGSTOP)
        s.run(WORKLOADS / "calls", "--calls", 20000, "--mix", "getctx")
        s.daemon.send_signal(signal.SIGCONT)
        s.flush()
        s.check_identity(lost=None)
        s.check_truth()
        causes = dict(s.rows("SELECT cause, sum(calls) FROM losses GROUP BY cause"))
        check(causes.get("cgroup", 0) > 0 and set(causes) <= {"cgroup", "pressure"}, "causes", causes)
        # `run` explains the cause, and what to do.
        done = s.run(CUDATRACE, "run", "--session", s.name, "--", "sh", "-c", f"kill -STOP {s.daemon.pid}; {WORKLOADS}/calls --calls 20000; "
                     f"kill -CONT {s.daemon.pid}", preload=False)
        check("cgroup: the memory limit of the process's control group" in done.stderr and "memory.max" in done.stderr, "run", done.stderr)
    sys.exit(0)

with Session() as s:
    s.start_daemon()
    done = s.run(WORKLOADS / "calls", "--threads", 60, "--calls", 20000, "--mix", "getctx")
    s.flush()
    s.check_identity(lost=None)
    s.check_truth()
    lost = s.value("SELECT sum(lost) FROM totals")
    check(lost > 0, "nothing was refused", s.rows("SELECT count(*) FROM lane"))
    check(s.value("SELECT sum(calls) FROM losses WHERE cause = 'memory'") > 0, "causes",
          s.rows("SELECT cause, sum(calls) FROM losses GROUP BY cause"))
    print(lost, "of", s.value("SELECT sum(calls) FROM totals"), "lost")
