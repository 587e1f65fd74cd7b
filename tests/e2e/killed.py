"""SIGKILL in the middle: what was published is stored, the open call is shown, the segment is gone."""
import os
import signal

from cudatrace_test import Session, WORKLOADS, equal, fifo

with Session() as s, fifo(s.dir, "blocked") as blocked:
    s.start_daemon()
    victim = s.start(WORKLOADS / "hang", "--calls", 5000,
                     env={"SIMCUDA_BLOCK": "cuCtxSynchronize", "SIMCUDA_BLOCK_NOTIFY": blocked})
    bystander = s.start(WORKLOADS / "calls", "--calls", 20000, "--threads", 2)
    with open(blocked, "rb") as inside:
        inside.read(1)
    # While it hangs, it is shown in what it hangs.
    s.flush()
    equal(s.rows("SELECT pid, name FROM open_calls JOIN processes USING (process_id) WHERE pid = ?", victim.pid),
          [(victim.pid, "cuCtxSynchronize")], "the open call of a live process")
    equal(s.value("SELECT state FROM processes WHERE pid = ?", victim.pid), "running", "its state")

    os.kill(victim.pid, signal.SIGKILL)
    victim.wait()
    equal(bystander.wait(120), 0, "the bystander's status")
    s.flush()
    equal(s.rows("SELECT pid, name FROM open_calls JOIN processes USING (process_id)"),
          [(victim.pid, "cuCtxSynchronize")], "the open calls after the end")
    equal(s.value("SELECT state FROM processes WHERE pid = ?", victim.pid), "killed", "the victim's state")
    equal(s.value("SELECT state FROM processes WHERE pid = ?", bystander.pid), "exited", "the bystander's state")
    equal([n for n in os.listdir("/dev/shm") if f".{s.name}.{victim.pid}." in n], [], "the victim's segment")
    s.check_identity()
    s.check_truth()
