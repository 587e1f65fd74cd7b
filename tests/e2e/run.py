"""`cudatrace run` passes the command through, and leaves every event in one closed file."""
import os
import signal
import subprocess
import sys

from cudatrace_test import CUDATRACE, Session, WORKLOADS, check, equal

with Session() as s:
    done = s.trace(WORKLOADS / "calls", "--threads", 2, "--calls", 1000)
    equal(sorted(os.listdir(s.dir)), ["counts", "trace.db"], "what a run leaves behind")
    plain = s.run(WORKLOADS / "calls", "--threads", 2, "--calls", 1000, preload=False,
                  env={"SIMCUDA_COUNTS": ""})
    equal((done.stdout, done.stderr), (plain.stdout, plain.stderr), "the traced program's output")
    s.check_identity()
    equal(s.value("SELECT count(*) FROM processes WHERE state = 'exited' AND ended_ns > started_ns"), 1, "exited")

    # Exit statuses and signals are the command's own.
    s.trace("sh", "-c", "exit 37", status=37)
    s.trace("sh", "-c", "kill -TERM $$", status=-signal.SIGTERM)
    s.trace("sh", "-c", "kill -SEGV $$", status=-signal.SIGSEGV)
    check("No such file" in s.trace("/nowhere/program", status=127).stderr, "a missing command says so")
    s.trace("/etc/passwd", status=126)

    # Standard input goes through; what the command inherits is what it would have without.
    equal(s.trace("cat", input="hello\n").stdout, "hello\n", "standard input")
    equal(s.trace("sh", "-c", "ls /proc/self/fd | wc -l").stdout,
          s.run("sh", "-c", "ls /proc/self/fd | wc -l", preload=False).stdout, "open descriptors")

    # A signal for run goes to the command.
    held = subprocess.Popen([str(CUDATRACE), "run", "--session", s.name, "--db", str(s.db), "--", "sh", "-c",
                             "trap 'exit 9' TERM; echo ready; while :; do read -r x; done"],
                            stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=s.env(preload=False))
    equal(held.stdout.readline(), b"ready\n", "the held command")
    held.send_signal(signal.SIGTERM)
    held.stdin.write(b"\n")
    held.stdin.flush()
    equal(held.wait(60), 9, "the status after a forwarded signal")
    held.stdin.close()
    held.stdout.close()

    # Several at once share one daemon and one trace.
    before = s.value("SELECT count(*) FROM processes")
    many = [s.start(CUDATRACE, "run", "--session", s.name, "--db", s.db, "--", WORKLOADS / "calls", "--calls", 500,
                    preload=False, stdout=subprocess.DEVNULL) for _ in range(8)]
    equal([p.wait(120) for p in many], [0] * 8, "eight concurrent runs")
    equal(s.value("SELECT count(*) FROM processes") - before, 8, "their processes")
    s.check_identity()
    s.check_truth()
sys.exit(0)
