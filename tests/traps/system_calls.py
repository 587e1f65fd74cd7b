"""Tests that the hook makes no system call to record a call. If a program makes ten times as many calls, all additional system calls must
serve to extend rings, to search for a daemon once a second, or to ring the doorbell. This must be the case with and without a daemon. No
thread may wait for one of the hook's locks by yielding the processor, because a real-time thread would then wait forever. strace counts the
system calls."""
import re
import sys

from trap_test import LINKED, Session, WORKLOADS, check, compiled, equal, needs

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


# A program whose threads repeatedly make their first calls at the same time. Each thread takes the process's lock.
FIRST_CALLS = """#include "cuda_min.h"
#include <pthread.h>
#include <stdio.h>
enum { ROUNDS = 40, THREADS = 24 };
static pthread_barrier_t barrier;
static void *first_calls(void *unused)
{
    int n;
    pthread_barrier_wait(&barrier);
    cuDeviceGetCount(&n);
    cuDriverGetVersion(&n);
    pthread_barrier_wait(&barrier);
    return unused;
}
int main(void)
{
    pthread_t threads[THREADS];
    if (cuInit(0) || pthread_barrier_init(&barrier, NULL, THREADS))
        return 1;
    for (int round = 0; round < ROUNDS; round++) {
        for (int i = 0; i < THREADS; i++)
            if (pthread_create(&threads[i], NULL, first_calls, NULL))
                return 1;
        for (int i = 0; i < THREADS; i++)
            pthread_join(threads[i], NULL);
    }
    puts("ok");
}
"""


def contend(s):
    program = compiled(s, FIRST_CALLS, *LINKED, "-pthread", output="first_calls")
    trace = s.dir / "strace.txt"
    done = s.run("strace", "-f", "-e", "trace=sched_yield", "-o", trace, program)
    equal(done.stdout, "ok\n")
    equal(trace.read_text().count("sched_yield"), 0, "threads that yielded")


needs("strace", "ptrace")
with Session() as s:
    if sys.argv[1] == "traced":
        s.start_daemon()
        compare(s)
        s.flush()
        s.check_identity(lost=0)
    elif sys.argv[1] == "contended":
        s.start_daemon()
        contend(s)
        s.flush()
        s.check_identity(lost=0)
    else:
        compare(s)
