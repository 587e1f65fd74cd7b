"""A ring too small for a stopped daemon: what does not fit is counted, by function and thread, exactly."""
import signal

from cudatrace_test import Session, WORKLOADS, check, equal

with Session() as s:
    s.start_daemon("--ring", "64K")
    s.daemon.send_signal(signal.SIGSTOP)
    program = s.start(WORKLOADS / "calls", "--calls", 50000, "--threads", 2, "--mix", "training", stdout=-3)
    equal(program.wait(120), 0, "the program's status under a stopped daemon")
    s.daemon.send_signal(signal.SIGCONT)
    s.flush()
    s.check_identity(lost=None)
    s.check_truth()
    lost = s.value("SELECT sum(lost) FROM totals")
    check(lost > 50000, "most did not fit", lost)
    equal(s.rows("SELECT DISTINCT cause FROM losses"), [("full",)], "causes")
    equal(s.value("SELECT count(DISTINCT tid) FROM losses"), 2, "threads with losses")
    check(s.value("SELECT min(total_ns) FROM totals WHERE lost > 0") > 0, "lost time is counted")
