/* A program that initializes CUDA, then forbids itself all but a few system calls, and continues. Under the
 * filter, the program repeats calls that it made before, for longer than a second if requested. It also calls
 * new functions, makes calls from a thread that has made calls and from a thread that has not, allocates
 * memory, looks up symbols, opens ranges, and forks. It exits with status 7.
 *
 *   sandboxed WAY [long]
 *
 *   prctl        installs a filter for one thread with prctl(); a forbidden call kills the process
 *   errno        the same, but forbidden calls fail with EPERM
 *   nosys        the same, but forbidden calls fail with ENOSYS
 *   syscall      like prctl, but with syscall(SYS_prctl)
 *   seccomp      like prctl, but with syscall(SYS_seccomp)
 *   tsync        like seccomp, but for all threads
 *   inline       like seccomp, but by inline assembly; afterwards repeats only calls made before
 *   mild         installs a filter that forbids only unused system calls
 *   failed       tries to install a filter that the kernel rejects
 *   before       forbids sockets before the first call of the driver
 *   logged       the same with a filter that logs most system calls
 *   vforked      the child of vfork() installs a filter
 *   cloned       the child of a bare clone() installs a filter
 *   landlock     uses Landlock instead of a filter to forbid opening files */
#include "cuda_min.h"
#include "nvtx_client.h"

#include <dlfcn.h>
#include <errno.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define ALLOW(name)                                                                                          \
    BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_##name, 0, 1), BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW)
#define NUMBER BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr))

enum { LOOPS = 600, ALLOCATIONS = 50 };
static int count, version;

/* Without the hook, there is no library to load as an NVTX injection. */
static void load_nvtx(void)
{
    if (dlsym(RTLD_DEFAULT, "InitializeInjectionNvtx2") && !nvtx_load(RTLD_DEFAULT))
        exit(3);
}

static void open_ranges(void)
{
    for (int i = 0; nvtx.RangePushA && i < 3; i++)
        nvtx.RangePushA("a range");
    for (int i = 0; nvtx.RangePop && i < 3; i++)
        nvtx.RangePop();
}

static void step(const char *name)
{
    if (write(1, name, strlen(name)) < 0 || write(1, "\n", 1) < 0)
        _exit(3);
}

/* The filter's last instruction determines what happens at all other system calls. */
static struct sock_filter few[] = {
    NUMBER,
    ALLOW(read),
    ALLOW(write),
    ALLOW(exit),
    ALLOW(exit_group),
    ALLOW(rt_sigreturn),
    ALLOW(clone),
    ALLOW(wait4),
    ALLOW(set_robust_list),
    ALLOW(clock_gettime),
    ALLOW(mmap),
    ALLOW(munmap),
    ALLOW(brk),
    BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS),
};
/* If the hook did not see the filter being installed, it keeps making some system calls, such as the futex
 * call for its doorbell. */
static struct sock_filter few_and_futex[] = {
    NUMBER,
    ALLOW(read),
    ALLOW(write),
    ALLOW(exit_group),
    ALLOW(futex),
    ALLOW(mmap),
    ALLOW(munmap),
    ALLOW(brk),
    BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS),
};
static struct sock_filter mild[] = {
    NUMBER,
    BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_reboot, 0, 1),
    BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS),
    BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
};
static struct sock_filter no_sockets[] = {
    NUMBER,
    BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_socket, 0, 1),
    BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM),
    BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
};
static struct sock_filter wrong[] = { BPF_STMT(BPF_LD | BPF_W | BPF_ABS, 4096) };

#define PROGRAM(filter)                                                                                      \
    &(struct sock_fprog)                                                                                     \
    {                                                                                                        \
        sizeof(filter) / sizeof((filter)[0]), filter                                                         \
    }

static long by_instruction(long number, long a, long b, long c)
{
    long result;
#if defined(__x86_64__)
    __asm__ volatile("syscall" : "=a"(result) : "a"(number), "D"(a), "S"(b), "d"(c) : "rcx", "r11", "memory");
#else
    register long x8 __asm__("x8") = number, x0 __asm__("x0") = a, x1 __asm__("x1") = b, x2 __asm__("x2") = c;
    __asm__ volatile("svc 0" : "+r"(x0) : "r"(x8), "r"(x1), "r"(x2) : "memory");
    result = x0;
#endif
    return result;
}

static long confine(const char *way)
{
    const size_t last = sizeof(few) / sizeof(few[0]) - 1;
    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0)
        return -1;
    if (strcmp(way, "errno") == 0)
        few[last].k = SECCOMP_RET_ERRNO | EPERM;
    if (strcmp(way, "nosys") == 0)
        few[last].k = SECCOMP_RET_ERRNO | ENOSYS;
    if (strcmp(way, "syscall") == 0)
        return syscall(SYS_prctl, PR_SET_SECCOMP, SECCOMP_MODE_FILTER, PROGRAM(few), 0, 0);
    if (strcmp(way, "seccomp") == 0)
        return syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, PROGRAM(few));
    if (strcmp(way, "tsync") == 0)
        return syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, SECCOMP_FILTER_FLAG_TSYNC, PROGRAM(few));
    if (strcmp(way, "inline") == 0)
        return by_instruction(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, (long)PROGRAM(few_and_futex));
    if (strcmp(way, "mild") == 0)
        return prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, PROGRAM(mild));
    if (strcmp(way, "before") == 0)
        return prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, PROGRAM(no_sockets));
    if (strcmp(way, "logged") == 0) {
        few[last].k = SECCOMP_RET_LOG;
        return prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, PROGRAM(few));
    }
    if (strcmp(way, "failed") == 0) {
        errno = 0;
        return prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, PROGRAM(wrong)) != -1 || errno != EINVAL;
    }
    if (strcmp(way, "vforked") == 0 || strcmp(way, "cloned") == 0) {
        const pid_t child = way[0] == 'v' ? vfork() : (pid_t)syscall(SYS_clone, SIGCHLD, 0, 0, 0, 0);
        if (child == 0)
            _exit(prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, PROGRAM(few)) == 0 ? 5 : 6);
        int status;
        const bool ended =
            waitpid(child, &status, 0) == child && WIFEXITED(status) && WEXITSTATUS(status) == 5;
        const char *flush = getenv("TEST_FLUSH"); /* lets the collector see the state of the segment after the
                                                   * child has used it */
        return !ended || (flush && system(flush) != 0);
    }
    if (strcmp(way, "landlock") == 0) {
        const uint64_t handled[] = { 0x1fff };
        const long rules = syscall(444, handled, sizeof(handled), 0);
        if (rules < 0)
            exit(77);
        return syscall(446, rules, 0);
    }
    return prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, PROGRAM(few));
}

/* Each thread waits for a byte, and answers with a byte. */
struct worker {
    int to[2], from[2];
    int before;
};

static void *work(void *data)
{
    struct worker *worker = data;
    char byte;
    for (int i = 0; i < worker->before; i++)
        cuDeviceGetCount(&count);
    if (write(worker->from[1], "r", 1) != 1 || read(worker->to[0], &byte, 1) != 1)
        _exit(3);
    for (int i = 0; i < LOOPS; i++)
        cuDeviceGetCount(&count);
    if (write(worker->from[1], "d", 1) != 1 || read(worker->to[0], &byte, 1) != 0)
        _exit(3);
    return NULL;
}

static void ask(struct worker *worker, const char *byte)
{
    char answer;
    if ((byte && write(worker->to[1], byte, 1) != 1) || read(worker->from[0], &answer, 1) != 1)
        _exit(3);
}

static void start(struct worker *worker, int before)
{
    pthread_t thread;
    worker->before = before;
    if (pipe(worker->to) != 0 || pipe(worker->from) != 0 || pthread_create(&thread, NULL, work, worker) != 0)
        exit(3);
    ask(worker, NULL);
}

static void for_more_than_a_second(void)
{
    struct timespec from, now;
    clock_gettime(CLOCK_MONOTONIC, &from);
    do {
        cuDeviceGetCount(&count);
        clock_gettime(CLOCK_MONOTONIC, &now);
    } while ((now.tv_sec - from.tv_sec) * 1000 + (now.tv_nsec - from.tv_nsec) / 1000000 < 1100);
}

static void allocate(void)
{
    static CUdeviceptr places[ALLOCATIONS];
    for (int i = 0; i < ALLOCATIONS; i++)
        cuMemAlloc_v2(&places[i], 4096);
    for (int i = 0; i < ALLOCATIONS; i++)
        cuMemFree_v2(places[i]);
}

int main(int argc, char **argv)
{
    static struct worker known, newcomer;
    const char *way = argc > 1 ? argv[1] : "";
    CUdevice device;
    CUcontext context;
    const bool is_first = strcmp(way, "before") == 0 || strcmp(way, "logged") == 0;
    if (is_first && confine(way) != 0)
        return 4;
    if (cuInit(0) || cuDeviceGet(&device, 0) || cuDevicePrimaryCtxRetain(&context, device) ||
        cuCtxSetCurrent(context))
        return 3;
    cuDeviceGetCount(&count);
    for (int i = 0; i < 5; i++) /* make the hook allocate the memory that it needs to remember allocations */
        allocate();
    load_nvtx();
    start(&known, 1);
    start(&newcomer, 0);
    errno = 0;
    if (!is_first && confine(way) != 0)
        return 4;
    errno = 77;
    for (int i = 0; i < LOOPS; i++)
        cuDeviceGetCount(&count);
    step("loop");
    allocate();
    step("allocations");
    if (argc > 2)
        for_more_than_a_second();
    if (strcmp(way, "inline") != 0) {
        cuDriverGetVersion(&version);
        step("another function");
        ask(&known, "g");
        step("another thread");
        ask(&newcomer, "g");
        step("a thread's first calls");
        if (!dlsym(RTLD_DEFAULT, "cuMemAlloc_v2") || dlsym(RTLD_DEFAULT, "cuNoSuchFunction"))
            return 5;
        step("look-ups");
        open_ranges();
        step("ranges");
        int status = 0;
        const pid_t child = (pid_t)syscall(SYS_clone, 17, 0, 0, 0, 0);
        if (child == 0) {
            cuDeviceGetCount(&count);
            _exit(9);
        }
        step(waitpid(child, &status, 0) == child && WIFEXITED(status) && WEXITSTATUS(status) == 9
                 ? "a child"
                 : "a child that was killed");
    }
    step(errno == 77 ? "errno is the program's" : "errno was changed");
    _exit(7);
}
