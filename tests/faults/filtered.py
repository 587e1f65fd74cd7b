"""Installs a system call filter for all threads while the thread of a GPU recording is between the end of the recording and its own end.
The thread must make no system call that the filter forbids."""
import sys

from fault_test import Session, at_point, equal

# The first call begins a recording, which ends at once, because there is no library for it next to the hook. Its thread waits at the test
# point until the variable is removed. The filter kills the process at fcntl(), with which the hook opens files.
PROGRAM = """
import ctypes, os, struct, sys
c, driver = ctypes.CDLL(None, use_errno=True), ctypes.CDLL("libcuda.so.1")
assert driver.cuInit(0) == 0
def names():
    found = []
    for task in os.listdir("/proc/self/task"):
        try:
            found.append(open(f"/proc/self/task/{task}/comm").read().strip())
        except OSError:  # ended
            pass
    return found
assert "cudatrace-gpu" in names(), names()
FCNTL, SECCOMP = (72, 317) if os.uname().machine == "x86_64" else (25, 277)
FILTER, ALL_THREADS, NO_NEW_PRIVS = 1, 1, 38
KILL_PROCESS, ALLOW, LOAD, EQUAL, RETURN = 0x80000000, 0x7fff0000, 0x20, 0x15, 0x06
code = struct.pack("HBBI" * 4, LOAD, 0, 0, 0, EQUAL, 0, 1, FCNTL, RETURN, 0, 0, KILL_PROCESS, RETURN, 0, 0, ALLOW)
text = ctypes.create_string_buffer(code)
program = ctypes.create_string_buffer(struct.pack("HxxxxxxQ", 4, ctypes.addressof(text)))
assert c.prctl(NO_NEW_PRIVS, 1, 0, 0, 0) == 0
result = c.syscall(SECCOMP, FILTER, ALL_THREADS, program)
assert result == 0, ctypes.get_errno()
c.unsetenv(b"CUDATRACE_TEST_POINT")
while "cudatrace-gpu" in names():
    pass
print("ended", flush=True)
os._exit(0)
"""

with Session() as s:
    s.start_daemon()
    done = s.run(sys.executable, "-c", PROGRAM, env={"CUDATRACE_GPU": "kernels", **at_point("gpu.idle", action="wait")})
    equal(done.stdout, "ended\n", "the program")
    s.flush()
    equal(s.rows("SELECT name, sum(calls) FROM totals WHERE layer = 'driver' GROUP BY name"), [("cuInit", 1)], "calls")
