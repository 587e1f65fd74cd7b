"""Tests a driver whose exported functions only resemble calls through a slot. Two names share one slot. Some slots are read-only or
misaligned, or point outside the driver. Some functions first test a different word from the one that real drivers test. The hook finds
these functions by name, and counts each call once. If the driver or another library makes a page read-only, neither the hook nor a visit
(proto/visit.h) writes to slots or pointers in that page."""
import ctypes
import signal
import subprocess
import sys

from trap_test import CUDATRACE, Session, can, check, compiled, equal, library, recorded
from visit import DONE, LEAVE, RECORD, load

FUNCTIONS = 12


def visited(hook, session, driver):
    """Makes the hook start and later stop recording, as `attach` does. Before recording stops, the driver write-protects a slot that the
    hook has exchanged."""
    cuda, visit = ctypes.CDLL(driver), load(hook)
    equal((visit(RECORD, session), cuda.cuInit(), cuda.cuCtxGetSharedMemConfig()), (DONE, 1, 10), "the visit")
    equal(cuda.protect_ten(), 0, "the driver's mprotect()")
    equal((visit(LEAVE, session), cuda.cuInit(), cuda.cuCtxGetSharedMemConfig()), (DONE, 1, 10), "its end")
    equal((visit(RECORD, session), cuda.cuInit(), cuda.cuCtxGetSharedMemConfig()), (DONE, 1, 10), "another visit")
    equal(visit(LEAVE, session), DONE, "its end")


def protects(driver):
    """Runs as the program that `attach` attaches to. Before the program's next call, the driver write-protects a slot that contains a
    thunk."""
    cuda = ctypes.CDLL(driver)
    print("ready", flush=True)
    input()
    equal((cuda.protect_ten(), cuda.cuInit(), cuda.cuCtxGetSharedMemConfig()), (0, 1, 10), "calls")
    print("called", flush=True)
    input()
    equal((cuda.cuInit(), cuda.cuCtxGetSharedMemConfig()), (1, 10), "more calls")


def attach(s, driver):
    program = s.start(sys.executable, __file__, driver, preload=False, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    equal(program.stdout.readline(), "ready\n", "the program")
    tracer = s.start(CUDATRACE, "attach", "--session", s.name, "--db", s.db, program.pid, preload=False, stderr=subprocess.PIPE, text=True)
    check("waiting for its next CUDA call" in tracer.stderr.readline(), "attach has put its thunks in")
    program.stdin.write("\n")
    program.stdin.flush()
    equal(program.stdout.readline(), "called\n", "the program")
    check("is recorded" in tracer.stderr.readline(), "the program is recorded")
    tracer.send_signal(signal.SIGINT)
    tracer.communicate()
    equal(tracer.returncode, 0, "the status of attach")
    program.communicate("\n")
    equal(program.returncode, 0, "the program's status")


def main():
    with Session() as s:
        (s.dir / "driver").mkdir()
        driver = library(s, "odd_slots.c", "driver/libcuda.so.1", "-DDRIVER", "-Wl,-soname,libcuda.so.1", "-Wl,-z,relro,-z,now")
        linked = ["-L", s.dir / "driver", "-l:libcuda.so.1"]
        program = compiled(s, "odd_slots.c", *linked)
        pointer = library(s, "odd_slots.c", "pointer.so", "-DLIBRARY", *linked)
        env = {"LD_LIBRARY_PATH": s.dir / "driver"}
        plain = s.run(program, pointer, preload=False, env=env).stdout
        equal(plain.count("\n"), FUNCTIONS + 1, "calls")
        s.start_daemon()
        equal(s.run(program, pointer, env=env).stdout, plain, "results")
        equal(s.run(program, pointer, env={**env, "CUDATRACE_WAY": "names"}).stdout, plain, "results by names")
        s.flush()
        s.check_identity()
        returned = dict(line.split() for line in plain.splitlines()[:FUNCTIONS])
        equal(recorded(s), {name: 2 for name in returned}, "calls in the trace")
        equal(dict(s.rows("SELECT name, status FROM calls")), {name: int(status) for name, status in returned.items()}, "results")

        s.run(sys.executable, __file__, s.hook, s.name, driver, preload=False)
        s.flush()
        equal(recorded(s, "%odd_slots.py%"), {"cuInit": 2, "cuCtxGetSharedMemConfig": 2}, "calls of the visits")
        if can("ptrace", "a program that is attached to"):
            attach(s, driver)


if __name__ == "__main__":
    if len(sys.argv) > 2:
        visited(*sys.argv[1:])
    elif len(sys.argv) > 1:
        protects(sys.argv[1])
    else:
        main()
