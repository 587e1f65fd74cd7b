"""Tests visits (proto/visit.h), which make a hook that was loaded from an unnamed file into a running process start and stop recording,
repeatedly and under load. Every call between a start and the next stop must be recorded. After the last visit, no part of the hook may be
active."""
import ctypes
import os
import sys
import threading

from cudatrace_test import SHAPE, Session, by_tier, check, equal, fifo

ROUNDS, CALLS = by_tier(10, 30, 200), by_tier(300, 1000)
RECORD, LEAVE = 1, 2
DONE, BUSY, STRANGER, NO_DAEMON, NO_SLOTS, THERE, MORE = 1, 2, 3, 4, 5, 7, 9
THREADS, LANES_PER_VISIT = 100, 32


class Visit(ctypes.Structure):
    _fields_ = [("version", ctypes.c_uint32), ("bytes", ctypes.c_uint32), ("request", ctypes.c_uint32), ("slot_count", ctypes.c_uint32),
                ("slots", ctypes.c_uint64), ("producer", ctypes.c_uint64), ("exec_ns", ctypes.c_uint64),
                ("session", ctypes.c_char * 64), ("shm_dir", ctypes.c_char * 256),
                ("layers", ctypes.c_char * 128), ("calls", ctypes.c_char * 1024), ("sample", ctypes.c_char * 32),
                ("gpu_library", ctypes.c_char * 512)]


def load(path):
    descriptor = os.memfd_create("libcudatrace.so", os.MFD_CLOEXEC)
    with open(path, "rb") as file:
        os.write(descriptor, file.read())
    hook = ctypes.CDLL(f"/proc/thread-self/fd/{descriptor}")
    os.close(descriptor)

    def visit(request, session, version=5):
        asked = Visit(version=version, bytes=ctypes.sizeof(Visit), request=request, session=session.encode())
        while (answer := hook.cudatrace_visit(ctypes.byref(asked))) == BUSY:
            pass
        return answer
    return visit


def leave_in_parts(call, visit, session):
    """Checks that the hook leaves the lanes of many threads in several visits, and that another command can make it record in between."""
    begun, done = threading.Barrier(THREADS + 1), threading.Barrier(THREADS + 1)

    def work():
        begun.wait()
        call()
        done.wait()

    for visits in THREADS // LANES_PER_VISIT, 1:
        equal(visit(RECORD, session), DONE, "the answer")
        threads = [threading.Thread(target=work) for _ in range(THREADS)]
        for thread in threads:
            thread.start()
        begun.wait()
        done.wait()
        for thread in threads:
            thread.join()
        for _ in range(visits):
            equal(visit(LEAVE, session), MORE, "the answer while there are lanes")
    equal(visit(RECORD, session), DONE, "the answer before the hook has left")
    call()
    while (answer := visit(LEAVE, session)) == MORE:
        pass
    equal(answer, DONE, "the answer at the end")


def target(hook, session, held):
    cuda, number, done = ctypes.CDLL("libcuda.so.1"), ctypes.c_int(), threading.Event()
    equal(cuda.cuInit(0), 0, "cuInit")
    visit = load(hook)

    def others():
        while not done.is_set():
            cuda.cuDeviceGetCount(ctypes.byref(number))

    threads = [threading.Thread(target=others) for _ in range(4)]
    for thread in threads:
        thread.start()
    wanted = DONE if SHAPE else NO_SLOTS
    equal(visit(RECORD, "nobody-serves-it"), NO_DAEMON if SHAPE else NO_SLOTS, "without a daemon")
    equal(visit(RECORD, session, version=0), STRANGER, "a visit of another version")
    for _ in range(ROUNDS):
        equal(visit(RECORD, session), wanted, "the answer")
        if SHAPE:
            equal(visit(RECORD, session), THERE, "the answer to the same again")
        for _ in range(CALLS):
            cuda.cuDriverGetVersion(ctypes.byref(number))
        equal(visit(LEAVE, session), DONE, "the answer")
        for _ in range(10):
            cuda.cuDriverGetVersion(ctypes.byref(number))
    if SHAPE:
        leave_in_parts(lambda: cuda.cuDeviceGetCount(ctypes.byref(number)), visit, session)
    done.set()
    for thread in threads:
        thread.join()
    print("done", flush=True)
    with open(held, "rb") as file:
        file.read()


def main():
    with Session() as s, fifo(s.dir, "held") as held:
        s.start_daemon()
        child = s.start(sys.executable, __file__, s.hook, s.name, held, preload=False, stdout=-1, text=True)
        equal(child.stdout.readline(), "done\n", "the line of the process")
        s.flush()
        calls = ROUNDS * CALLS if SHAPE else 0
        equal(s.rows("SELECT calls, stored FROM totals WHERE name = 'cuDriverGetVersion'"), [(calls, calls)] if SHAPE else [],
              "calls from record to leave")
        equal(s.rows("SELECT cause, calls FROM losses WHERE cause <> 'absent'"), [], "losses")
        equal(s.rows("SELECT pid, state FROM processes"), [(child.pid, "detached")] if SHAPE else [], "the process")
        equal([name for name in os.listdir("/dev/shm") if f".{s.name}.{child.pid}." in name], [], "segments")
        with open(held, "wb"):
            pass
        equal(child.wait(), 0, "its status")
        truth = s.truth()
        equal(truth[child.pid, "cuDriverGetVersion"], ROUNDS * (CALLS + 10), "calls that the driver counted")
        counted = s.totals().get((child.pid, "cuDeviceGetCount"), 0)
        check(counted <= truth[child.pid, "cuDeviceGetCount"], "calls of others:", counted, truth)
        s.check_sums()


if __name__ == "__main__":
    if len(sys.argv) > 1:
        target(*sys.argv[1:])
    else:
        main()
