"""Attaches to processes in unusual states: their first thread has exited."""
import os
import subprocess
import sys

from attach_test import Attach, await_leave, detach, recorded, state_of
from cudatrace_test import DEADLINE_S, Session, equal, needs, wait_for


# Its first thread exits, and its second makes a call for each line.
WITHOUT_FIRST = """
import ctypes, os, sys, threading
driver, number, EXIT = ctypes.CDLL("libcuda.so.1"), ctypes.c_int(), 60
def work():
    for line in sys.stdin:
        print(driver.cuDriverGetVersion(ctypes.byref(number)), flush=True)
    os._exit(0)
threading.Thread(target=work).start()
ctypes.CDLL(None).syscall(EXIT, 0)
"""


def without_first(s):
    """Checks that a process whose first thread has exited is recorded, and can be detached."""
    child = s.start(sys.executable, "-c", WITHOUT_FIRST, preload=False, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    wait_for("the first thread to exit", lambda: state_of(child.pid) == "Z")
    thread = max(int(name) for name in os.listdir(f"/proc/{child.pid}/task"))

    def call():
        child.stdin.write("\n")
        child.stdin.flush()
        equal(child.stdout.readline(), "0\n", "the result of a call")

    for turn in 1, 2:
        a = Attach(s, child.pid, "--stay")
        a.await_armed(thread)
        call()
        a.end(number=None)
        call()
        detach(s, child.pid)
        equal(recorded(s, child.pid), 2 * turn, "calls")
    child.communicate(timeout=DEADLINE_S)
    equal(child.returncode, 0, "its exit status")


TESTS = {test.__name__: test for test in (without_first,)}

needs("ptrace")
for name in sys.argv[1:] or TESTS:
    with Session() as session:
        TESTS[name](session)
        await_leave(session)
    print(name, flush=True)
