"""The hook makes no system call for a call: a program that makes ten times as many makes no more than pieces of ring, a look
for the daemon each second and the doorbell take, without a daemon and with one. strace counts."""
import re
import sys

from trap_test import Session, WORKLOADS, check, needs

FEW, MANY = 4000, 40000


def system_calls(s, calls):
    summary = s.dir / "strace.txt"
    done = s.run("strace", "-f", "-c", "-o", summary, WORKLOADS / "calls", "--calls", calls, status=None)
    check(done.returncode == 0 and done.stdout.endswith("ok\n"), done.stdout, done.stderr)
    return {name: int(count) for count, name in re.findall(r"^ *[\d.]+ +[\d.]+ +\d+ +(\d+) .*?(\w+)$", summary.read_text(), re.M)
            if name != "total"}


def compare(s):
    few, many = system_calls(s, FEW), system_calls(s, MANY)
    check(few.get("execve") == 1, "strace counted", few)
    more = {name: count - few.get(name, 0) for name, count in many.items()}
    check(sum(more.values()) < (MANY - FEW) / 100, f"for {MANY - FEW} calls more:", more)


needs("strace", "ptrace")
with Session() as s:
    if sys.argv[1] == "traced":
        s.start_daemon()
        compare(s)
        s.flush()
        s.check_identity(lost=0)
    else:
        compare(s)
