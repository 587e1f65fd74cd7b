"""Tests that if /dev/shm is full, the program continues at its normal speed with correct results, and every call is stored or counted as
lost."""
import os
import subprocess
import sys

from cudatrace_test import Session, WORKLOADS, check, mount_namespace, needs

INSIDE = "CUDATRACE_TEST_FULL_SHM"
if INSIDE not in os.environ:
    # Mount a small /dev/shm in a private mount namespace.
    needs("mount namespaces")
    mount = 'mount -t tmpfs -o size=2560k none /dev/shm && exec "$0" "$@"'
    done = subprocess.run([*mount_namespace(), "sh", "-c", mount, sys.executable, __file__], env=dict(os.environ, **{INSIDE: "1"}))
    sys.exit(done.returncode)

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
