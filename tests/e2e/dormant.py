"""Tests that without a daemon, no calls are recorded, and no files are created or changed. A daemon that is started later must record a
program that is already running."""
import os

from cudatrace_test import Session, WORKLOADS, check, equal, fifo

with Session() as s, fifo(s.dir, "hold") as hold:
    before = set(os.listdir("/dev/shm"))
    plain = s.run(WORKLOADS / "calls", "--calls", 2000, preload=False)
    traced = s.run(WORKLOADS / "calls", "--calls", 2000)
    equal((traced.stdout, traced.stderr), (plain.stdout, plain.stderr), "the output without a daemon")
    equal({n for n in os.listdir("/dev/shm") if s.name in n}, set(), "files without a daemon")

    # Programs that make no CUDA calls have no segment, even if a daemon is running.
    s.start_daemon()
    s.run("true")
    s.run("python3", "-c", "import threading; t = threading.Thread(target=print); t.start(); t.join()")
    s.flush()
    equal(s.value("SELECT count(*) FROM processes"), 0, "processes without a CUDA call")
    s.stop_daemon()

    # The program starts before the daemon, and makes calls until the hook finds a daemon.
    late = s.start(WORKLOADS / "calls", "--calls", 200, "--hold", hold)
    s.start_daemon()
    late_pids = []
    while not late_pids:
        check(late.poll() is None or late.returncode == 0, "the program failed")
        busy = s.run(WORKLOADS / "calls", "--calls", 200)
        s.flush()
        late_pids = s.rows("SELECT pid FROM processes")
    with open(hold, "wb") as go:
        go.write(b"\n")
    equal(late.wait(), 0, "its status")
    s.flush()
    s.check_identity()
