"""Kills a program with SIGKILL during a call. Checks that the calls that it has published are stored, that the trace shows the open call,
and that the program's segment is removed."""
import os

from cudatrace_test import HungCall, Session, WORKLOADS, equal

with Session() as s:
    s.start_daemon()
    bystander = s.start(WORKLOADS / "calls", "--calls", 20000, "--threads", 2)
    with HungCall(s, "--calls", 5000) as victim:
        # While the program hangs, the trace shows its open call.
        s.flush()
        equal(s.rows("SELECT pid, name FROM open_calls JOIN processes USING (process_id) WHERE pid = ?", victim.pid),
              [(victim.pid, "cuCtxSynchronize")], "the open call of a live process")
        equal(s.value("SELECT state FROM processes WHERE pid = ?", victim.pid), "running", "its state")
        victim.kill()
    equal(bystander.wait(), 0, "the bystander's status")
    s.flush()
    equal(s.rows("SELECT pid, name FROM open_calls JOIN processes USING (process_id)"),
          [(victim.pid, "cuCtxSynchronize")], "the open calls after the end")
    equal(s.value("SELECT state FROM processes WHERE pid = ?", victim.pid), "killed", "the victim's state")
    equal(s.value("SELECT state FROM processes WHERE pid = ?", bystander.pid), "exited", "the bystander's state")
    equal([n for n in os.listdir("/dev/shm") if f".{s.name}.{victim.pid}." in n], [], "the victim's segment")
    s.check_identity()
    s.check_truth()
