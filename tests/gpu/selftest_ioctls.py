"""Tests that a program's trace agrees with what ioctl_truth counted in the same run. The devices are simulated: their files are ordinary
files, which reject every request."""
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

    # ioctl_truth returns the exit status of a program that fails, or reports the signal that killed the program.
    equal(s.run(TRUTH, "--ptrace", "--out", out, "sh", "-c", "exit 7", env=env, status=None).returncode, 7, "its status")
    equal(s.run(TRUTH, "--ptrace", "--out", out, "sh", "-c", "kill -TERM $$", env=env, status=None).returncode, 128 + 15,
          "its status after a signal")
