"""Attaches to and detaches from a program that is stopped at an instruction of the C library's allocator. The test single-steps the program
to the instruction, and leaves it stopped there. The program's results must stay correct, and its calls must be recorded from attach to
detach. The long tier tests every instruction. With --inline, the test also stops the program at each of the first instructions of the
driver's function, and in a signal handler that interrupts these instructions. Finally, a signal handler jumps out of the code that has loaded
the hook."""
import ctypes
import os
import pathlib
import signal
import subprocess

from attach_test import INLINE, Attach, attach, await_leave, detach, recorded, state_of, tracer_of
from cudatrace_test import DEADLINE_S, SHAPE, WORKLOADS, Session, by_tier, check, equal, needs, wait_for

SINGLESTEP, GETREGS, ATTACH, DETACH, SYSCALL = 9, 12, 16, 17, 24
WALL = 0x40000000
CALL_NUMBER, RIP = 15, 16  # words of struct user_regs_struct
RT_SIGPROCMASK = 14
STEPS_MOST = 100000
AREA = "memfd:cudatrace-visit"

ptrace = ctypes.CDLL(None, use_errno=True).ptrace
ptrace.restype, ptrace.argtypes = ctypes.c_long, [ctypes.c_long, ctypes.c_long, ctypes.c_void_p, ctypes.c_void_p]


def ask(request, pid, data=None):
    check(ptrace(request, pid, None, data) == 0, "ptrace", request, ":", os.strerror(ctypes.get_errno()))


def ranges(pid, name):
    """Returns the address ranges of a library's code."""
    lines = [line.split() for line in pathlib.Path(f"/proc/{pid}/maps").read_text().splitlines()]
    return [range(*(int(end, 16) for end in line[0].split("-"))) for line in lines if "x" in line[1] and f"/{name}" in " ".join(line[5:])]


class Program:
    def __init__(self, s):
        self.child = s.start(WORKLOADS / "stepped", preload=False, stdout=subprocess.PIPE, text=True)
        self.pid, self.round = self.child.pid, 0
        self.await_stop()

    def await_stop(self):
        equal(self.child.stdout.readline(), f"round {self.round}\n", "a round")
        wait_for("the program to stop itself", lambda: state_of(self.pid) == "T")
        self.round += 1

    def go_on(self):
        self.child.send_signal(signal.SIGCONT)

    def steps(self, request=SINGLESTEP):
        """Single-steps the program with ptrace, or stops it at the entry and the exit of each system call. Yields its registers at each
        stop."""
        registers = (ctypes.c_uint64 * 32)()
        ask(ATTACH, self.pid)
        os.waitpid(self.pid, WALL)
        while True:
            ask(request, self.pid)
            while os.WSTOPSIG(os.waitpid(self.pid, WALL)[1]) == signal.SIGSTOP:  # the program's own SIGSTOP, and ATTACH's
                ask(request, self.pid)
            ask(GETREGS, self.pid, registers)
            yield registers

    def leave(self):
        """Detaches ptrace from the program, which stays stopped at its current instruction until it receives SIGCONT."""
        ask(DETACH, self.pid)
        wait_for("the program to be stopped", lambda: state_of(self.pid) == "T")

    def count(self):
        """Single-steps the program until it calls the driver. Returns (the numbers of the steps in the C library, the number of the first
        step in the driver). The first step has the number 1."""
        driver, libc = ranges(self.pid, "libcuda.so"), ranges(self.pid, "libc.so")
        within = []
        for number, registers in enumerate(self.steps(), 1):
            at = registers[RIP]
            if any(at in code for code in driver):
                break
            check(number < STEPS_MOST, "it comes to no call of the driver")
            if any(at in code for code in libc):
                within.append(number)
        self.leave()
        return within, number

    def stop_at(self, number):
        for _, _ in zip(range(number), self.steps()):
            pass
        self.leave()

    def stop_at_signals_allowed(self):
        """Stops the program after the visit has restored the thread's signal mask."""
        area, stops = ranges(self.pid, AREA), 0
        for registers in self.steps(SYSCALL):
            stops += registers[CALL_NUMBER] == RT_SIGPROCMASK and any(registers[RIP] in code for code in area)
            if stops == 4:  # the entry and the exit of the call that blocks all signals, and of this one
                break
        self.leave()


def within_entry(s, p, first):
    """Stops the program at each of the first instructions of the driver's function. Attach replaces some of these instructions with a jump:
    in driver 580's functions, instructions 2 and 3, counting the endbr64 as instruction 0. Attach must move the thread out of the replaced
    bytes. Returns the number of calls that must be recorded, which does not include calls that had passed the jump before it was
    written."""
    calls = 0
    for number in range(6):
        p.stop_at(first + number)
        a = Attach(s, p.pid, "--stay")
        a.await_armed(p.pid)
        for _ in range(3):
            p.go_on()
            p.await_stop()
        a.end(number=None)
        detach(s, p.pid)
        calls += 3 if number < 2 else 2
    return calls


def within_handler(s, p, first):
    """Checks that attach writes no jump over instructions that a signal handler will return to."""
    p.stop_at(first + 2)
    p.child.send_signal(signal.SIGUSR1)
    p.go_on()
    equal(p.child.stdout.readline(), "handled\n", "the handler's line")
    wait_for("the handler to stop the program", lambda: state_of(p.pid) == "T")
    said = attach(s, p.pid, status=1)
    check("had a thread in the first instructions of a function" in said, said)
    p.go_on()
    p.await_stop()


def jumping(s, p):
    """Checks that attach notices that the process is recorded if a signal handler jumps out of the visit as soon as signals are allowed.
    Returns the number of calls that must be recorded. The call that the handler jumps out of does not begin."""
    a = Attach(s, p.pid, "--stay")
    a.await_armed(p.pid)
    wait_for("attach to let go of the program", lambda: tracer_of(p.pid) == 0)
    p.stop_at_signals_allowed()
    p.child.send_signal(signal.SIGUSR2)
    p.go_on()
    p.await_stop()
    a.end(number=None)
    p.go_on()
    p.await_stop()
    detach(s, p.pid)
    return 1


needs("ptrace")
with Session() as s:
    p = Program(s)
    for _ in range(3):  # the first rounds warm up the allocator and take other paths
        instructions, _ = p.count()
        p.go_on()
        p.await_stop()
    check(len(instructions) > 200, "hardly an instruction of the allocator is met:", len(instructions))
    tried = instructions[::len(instructions) // by_tier(10, 40, len(instructions))]
    for number in tried:
        p.stop_at(number)
        a = Attach(s, p.pid, "--stay")
        a.await_armed(p.pid)
        p.go_on()
        a.end(number=None)
        p.await_stop()
        p.stop_at(number)
        detach(s, p.pid)
        p.go_on()
        p.await_stop()
    calls = len(tried)
    if INLINE:
        _, first = p.count()  # again, because loading the hook has changed the allocator's path
        p.go_on()
        p.await_stop()
        calls += within_entry(s, p, first)
    if INLINE and SHAPE == "580-unknown":
        within_handler(s, p, first)
    calls += jumping(s, p)
    p.child.send_signal(signal.SIGTERM)
    p.go_on()
    equal(p.child.communicate(timeout=DEADLINE_S)[0], f"rounds {p.round}\n", "its end")
    equal(p.child.returncode, 0, "its exit status")
    equal(recorded(s, p.pid), calls, "calls from attach to detach")
    await_leave(s)
    print(f"{len(tried)} of {len(instructions)} instructions in the C library")
