"""Tests the same as disk.py, but on a file system that really becomes full and is later enlarged, so that the errors come from the kernel.
The test needs the right to mount file systems."""
import os
import subprocess
import sys

from fault_test import DEADLINE_S, WORKLOADS, check, cudatrace_test, equal, mount_namespace, needs, promise, wait_for

if "CUDATRACE_MOUNTS" not in os.environ:
    needs("mount namespaces")
    os.execvpe("unshare", [*mount_namespace(), sys.executable, *sys.argv], dict(os.environ, CUDATRACE_MOUNTS="own"))


with cudatrace_test.Session() as s, promise("full-tmpfs"):
    folder = s.dir / "small"
    folder.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=1m", "none", folder], check=True)
    try:
        s.db = folder / "trace.db"
        s.start_daemon()
        program = WORKLOADS / "calls", "--threads", 2, "--calls", 4000
        wait_for("a full disk", lambda: s.run(*program) and s.cudatrace("flush", status=None).returncode == 1)
        now = s.status()
        check("full" in now["state"] and int(now["waiting"]) > 0, "status says", now)
        s.run(*program)
        done = s.cudatrace("flush", status=None)
        check(done.returncode == 1 and "full" in done.stderr, "flush said", done.stderr)
        subprocess.run(["mount", "-o", "remount,size=256m", folder], check=True)
        wait_for("recovery", lambda: s.status()["state"] == "ok")
        s.flush()
        s.check_identity(lost=0)
        s.check_truth()
        equal(s.value("PRAGMA integrity_check"), "ok", "integrity_check")
        # Fill the disk until there is no room even for a single line in the log. The daemon must log the messages that did not fit as soon
        # as there is room.
        rows = s.value("SELECT count(*) FROM calls")
        with open(folder / "filler", "wb", buffering=0) as filler:
            try:
                while filler.write(bytes(65536)):
                    pass
            except OSError:
                pass
        wait_for("a full disk", lambda: s.run(*program) and s.cudatrace("flush", status=None).returncode == 1)
        s.cudatrace("stop", status=1)
        equal(s.daemon.wait(DEADLINE_S), 1, "the daemon's exit status")
        (folder / "filler").unlink()
        s.start_daemon()
        s.flush()
        s.check_identity(lost=0)
        s.check_truth()
        check(s.value("SELECT count(*) FROM calls") >= rows + 8000, "calls of the full disk are missing")
        s.stop_daemon()
    finally:
        if s.daemon and s.daemon.poll() is None:
            s.daemon.kill()
            s.daemon.wait()
        subprocess.run(["umount", folder], check=True)
