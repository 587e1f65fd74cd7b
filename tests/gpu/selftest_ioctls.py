"""Tests that a program's trace agrees with ioctl_truth's counts from the same run. The devices are simulated by links to other devices,
which reject every request."""
import os
import sys

sys.dont_write_bytecode = True
HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [HERE, os.path.join(HERE, "../e2e")]
import compare
import compare_ioctls
from cudatrace_test import BUILD, WORKLOADS, Session, check, equal, needs

TRUTH = BUILD / "tests/gpu/ioctl_truth"

needs("ptrace")

with Session() as s:
    folder, out = s.dir / "devices", s.dir / "truth"
    folder.mkdir()
    for name, target in {"nvidiactl": "/dev/null", "nvidia0": "/dev/zero", "nvidia-uvm": "/dev/ptmx"}.items():
        (folder / name).symlink_to(target)
    env = {"CUDATRACE_DEVICES": folder, "SIMCUDA_IOCTLS": 1}
    s.start_daemon()
    done = s.run(TRUTH, "--ptrace", "--out", out, WORKLOADS / "calls", "--calls", 500, "--mix", "alloc", "--processes", 3,
                 "--threads", 3, env=env, status=None)
    equal(done.returncode, 0, done.stderr)
    s.flush()
    report = compare.Report()
    with compare.open_database(s.db) as database:
        compare_ioctls.check_ioctls(report, database, out)
    check(report.finish() == 0 and report.passed == 3, "the comparison failed")
    equal(s.value("SELECT count(DISTINCT process_id) FROM totals WHERE layer = 'ioctl'"), 3, "processes with ioctls")
    s.check_identity()

    # If the program fails, ioctl_truth must exit with the program's status. If a signal killed the program, ioctl_truth must exit with 128
    # plus the signal's number.
    equal(s.run(TRUTH, "--ptrace", "--out", out, "sh", "-c", "exit 7", env=env, status=None).returncode, 7, "its status")
    equal(s.run(TRUTH, "--ptrace", "--out", out, "sh", "-c", "kill -TERM $$", env=env, status=None).returncode, 128 + 15,
          "its status after a signal")
