"""Tests that if a process's segment is truncated while the daemon reads it, the daemon stops reading the segment and logs this. No other
process is affected."""
import glob
import os

from cudatrace_test import HungCall, Session, WORKLOADS, check, equal

with Session() as s:
    s.start_daemon()
    with HungCall(s, "--calls", 3000) as held:
        s.flush()
        before = s.value("SELECT count(*) FROM calls")
        check(before >= 3000, "calls before the cut", before)
        (segment,) = glob.glob(f"/dev/shm/cudatrace.*.{s.name}.{held.pid}.*")
        os.truncate(segment, 4096)

        s.run(WORKLOADS / "calls", "--calls", 5000, "--threads", 2)
        s.flush()
        equal(s.daemon.poll(), None, "the daemon's status")
        check("stopped tracing process" in (s.dir / "daemon.log").read_text(), "the log", (s.dir / "daemon.log").read_text())
        check(not os.path.exists(segment), "the segment is still there")
        s.check_identity()
        check(s.value("SELECT count(*) FROM calls") >= before + 10000, "the bystander's calls")

        # The state of the process with the truncated segment is 'left' while the process runs, and 'exited' once it has exited.
        s.flush_until("its state", lambda: s.value("SELECT state FROM processes WHERE pid = ?", held.pid) == "left")
        held.kill()
    s.flush()
    equal(s.value("SELECT state FROM processes WHERE pid = ?", held.pid), "exited", "its state after its end")
