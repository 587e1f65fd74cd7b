/* A program that sends itself a signal at every instruction of the hook. In each round, a tracer stops the
 * call one instruction later than in the previous round, and sends a signal whose handler makes a call of its
 * own.
 *
 *   plain         a call without decoded arguments, inside another
 *   launch        a launch inside a launch of another kernel that the hook remembers at the same place
 *   fork          the handler forks, and the interrupted launch continues in both; the child exits normally
 *   capture       a captured launch, each time of a kernel whose name must be sent, inside a plain call
 *   fork_late     the handler forks, and the child's call continues long after its parent has
 *   clone_late    the same with _Fork(), which runs no handlers
 *   alternate     like plain, but the handler runs on an alternate stack above the call's stack
 *   switch        like plain, but in a coroutine, and the handler makes its calls in another one above
 *   switch_above  the same, but the interrupted calls are on the thread's own stack
 *   storm         like switch_above, with a signal at each instruction of the same call, and further calls
 *   jump          the handler leaves a plain call by siglongjmp
 *   jump_launch   the same with a launch
 *   jump_decoded  the same with a call whose arguments are decoded
 *   jump_range    the same with a range */
#include "cuda_min.h"
#include "nvtx_client.h"

#include <dlfcn.h>
#include <link.h>
#include <setjmp.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/ptrace.h>
#include <sys/user.h>
#include <sys/wait.h>
#include <ucontext.h>
#include <unistd.h>

static uintptr_t hook_from, hook_to;

static int find_hook(struct dl_phdr_info *info, size_t bytes, void *unused)
{
    (void)bytes, (void)unused;
    for (int i = 0; strstr(info->dlpi_name, "libcudatrace") && i < info->dlpi_phnum; i++) {
        const ElfW(Phdr) *part = &info->dlpi_phdr[i];
        if (part->p_type == PT_LOAD && part->p_flags & PF_X) {
            hook_from = info->dlpi_addr + part->p_vaddr;
            hook_to = hook_from + part->p_memsz;
        }
    }
    return 0;
}

enum { FUNCTIONS = 400 };
static CUfunction functions[FUNCTIONS];
static pid_t (*forks)(void);
static bool is_child; /* in a forked child, where the driver returns errors */
static bool is_late;
static int late_child, late_pipe[2];
static int killed;
static CUfunction outer, inner;
static CUcontext current;
static CUstream stream;
/* Index of the first function that no record has named yet, or -1 to launch `inner`. */
static int unnamed = -1;

static void call(CUfunction function, unsigned int grid)
{
    const CUresult status = function ? cuLaunchKernel(function, grid, 1, 1, 1, 1, 1, 0, stream, NULL, NULL)
                                     : cuCtxGetCurrent(&current);
    if (status != CUDA_SUCCESS && !is_child)
        exit(4);
}

/* State that the program and its tracer share. */
static struct {
    long stop_at; /* send the signal at this instruction, counted in the hook within the call */
    long steps;   /* instructions counted before the signal */
    bool again;   /* the call took a different path than in earlier rounds, so the round must be repeated in
                   * single steps */
    bool storms;  /* send a signal at each instruction */
    bool jumps;   /* every round begins like the previous one, so its first instructions need not be stepped
                   * through */
    long rounds;
} * shared;

/* The calls that a handler leaves with siglongjmp(). */
static void interrupted_plain(void)
{
    int version;
    cuDriverGetVersion(&version);
}
static void interrupted_launch(void)
{
    cuLaunchKernel(functions[0], 3, 1, 1, 1, 1, 1, 0, NULL, NULL, NULL);
}
static void interrupted_decoded(void)
{
    cuStreamQuery(NULL);
}
static void interrupted_range(void)
{
    nvtx.MarkA("interrupted");
    nvtx.RangePushA("interrupted");
    nvtx.RangePop();
}
static void (*interrupted)(void); /* NULL: the handler returns */
static sigjmp_buf before;

/* Makes a call at or above the stack level of the interrupted call, so that the hook always records it. */
static inline __attribute__((always_inline)) void call_behind_a_jump(void)
{
    cuCtxGetCurrent(&current);
    if (interrupted != interrupted_range)
        return;
    while (nvtx.RangePop() >= 0)
        ;
    nvtx.MarkA("behind");
    if (nvtx.RangePushA("behind") != 0 || nvtx.RangePop() != 0)
        exit(8);
}

/* Two coroutines: one makes the calls that are interrupted, and the other, above, the handler's. */
enum { STACK_BYTES = 1 << 17, SWITCHED_CALLS = 50 };
static char *stacks[2];
static bool switches;
static ucontext_t start, handler, coroutines[2];

static void make_calls(void)
{
    for (int i = 0; i < SWITCHED_CALLS; i++)
        call(NULL, 1);
}

/* Above the first thread's stack, there is room because its place is random. */
static bool map_stacks(bool is_above)
{
    enum { ABOVE = 1 << 21 };
    const uintptr_t top = 0x7ffffffff000 - ABOVE;
    char *low = mmap(NULL, 2 * STACK_BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    char *high = is_above ? mmap((void *)top, STACK_BYTES, PROT_READ | PROT_WRITE,
                                 MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0)
                          : low + STACK_BYTES;
    stacks[0] = low;
    stacks[1] = high;
    return low != MAP_FAILED && high != MAP_FAILED && (!is_above || (uintptr_t)high > (uintptr_t)&high);
}

static void enter_coroutine(ucontext_t *from, int index, void (*function)(void))
{
    ucontext_t *coroutine = &coroutines[index];
    getcontext(coroutine);
    coroutine->uc_stack = (stack_t){ .ss_sp = stacks[index], .ss_size = STACK_BYTES };
    coroutine->uc_link = from;
    makecontext(coroutine, function, 0);
    swapcontext(from, coroutine);
}

static void on_signal(int number)
{
    if (switches) {
        if (shared->storms)
            call(NULL, 1);
        enter_coroutine(&handler, 1, make_calls);
        if (shared->storms)
            __asm__ volatile("int3" ::: "memory");
        return;
    }
    if (interrupted)
        siglongjmp(before, number);
    if (forks) {
        if (is_late && pipe(late_pipe) != 0)
            exit(11);
        const pid_t child = forks();
        int status = 0;
        char byte;
        is_child = child == 0;
        if (is_late) {
            close(late_pipe[!is_child ? 0 : 1]);
            if (is_child && read(late_pipe[0], &byte, 1) != 0)
                _exit(1);
            late_child = child;
            return;
        }
        killed += !is_child && waitpid(child, &status, 0) == child && !WIFEXITED(status);
        return;
    }
    call(unnamed >= 0 ? functions[unnamed++ % FUNCTIONS] : inner, 2);
}

enum { LATE_CALLS = 20, STORMS = 20 };

/* Lets the forked child continue. The collector reads the lane before and after the child continues, so that
 * any write by the child to its parent's lane would be detected. */
static void let_child_go_on(void)
{
    const char *flush = getenv("TEST_FLUSH");
    int status;
    if (flush && system(flush) != 0)
        exit(12);
    close(late_pipe[1]);
    killed += waitpid(late_child, &status, 0) != late_child || !WIFEXITED(status);
    late_child = 0;
    if (flush && system(flush) != 0)
        exit(12);
}

/* Makes one call for each instruction that a call executes in the hook. */
static void every_instruction(void)
{
    sigaction(SIGUSR1, &(struct sigaction){ .sa_handler = on_signal, .sa_flags = SA_ONSTACK }, NULL);
    shared->jumps = interrupted;
    if (interrupted)
        interrupted(); /* make the call once without interruption, because later calls are shorter */
    do {
        shared->rounds++;
        if (interrupted)
            call_behind_a_jump();
        else
            call(outer, 1); /* make the hook remember this kernel, and no other */
        __asm__ volatile("int3" ::: "memory");
        if (!interrupted)
            call(outer, 1);
        else if (sigsetjmp(before, 1) == 0)
            interrupted();
        if (is_child)
            _exit(0);
        __asm__ volatile("int3" ::: "memory");
        for (int i = 0; i < LATE_CALLS && is_late; i++)
            call(outer, 1);
        if (late_child > 0)
            let_child_go_on();
        if (shared->again)
            printf("missed in round %ld\n", shared->rounds - 1);
    } while (shared->storms ? shared->rounds < STORMS : shared->again || shared->steps == shared->stop_at++);
    if (shared->storms)
        shared->stop_at = shared->steps;
    if (interrupted)
        call_behind_a_jump();
}

/* Waits for the program to stop. Returns false if the program has exited. */
static bool stopped(pid_t program, int *status)
{
    while (waitpid(program, status, 0) == program && WIFSTOPPED(*status)) {
        if (WSTOPSIG(*status) != SIGCHLD)
            return true;
        ptrace(PTRACE_CONT, program, 0, 0);
    }
    return false;
}

static bool at_breakpoint(pid_t program)
{
    siginfo_t why;
    ptrace(PTRACE_GETSIGINFO, program, 0, &why);
    return why.si_code == SI_KERNEL;
}

/* The addresses of the hook's instructions that earlier rounds have found in the call, in order of execution.
 */
enum { WAY_MAX = 100000, STEPS_BEFORE = 20 };
static uintptr_t way[WAY_MAX];
static long way_length;

static struct user_regs_struct registers_of(pid_t program)
{
    struct user_regs_struct registers;
    ptrace(PTRACE_GETREGS, program, 0, &registers);
    return registers;
}

/* Uses a breakpoint to run to the instruction at index `place` in `way`, because single-stepping each round
 * would take quadratic time. Returns false if the call ended before that instruction. */
static bool run_to(pid_t program, int *status, long place)
{
    const uintptr_t address = way[place];
    const long code = ptrace(PTRACE_PEEKTEXT, program, address, 0);
    long passes = 0;
    for (long i = 0; i < place; i++)
        passes += way[i] == address;
    for (;; passes--) {
        ptrace(PTRACE_POKETEXT, program, address, (code & ~0xffL) | 0xcc);
        ptrace(PTRACE_CONT, program, 0, 0);
        const bool alive = stopped(program, status);
        ptrace(PTRACE_POKETEXT, program, address, code);
        struct user_regs_struct registers = registers_of(program);
        if (!alive || registers.rip != address + 1)
            return false;
        registers.rip = address;
        ptrace(PTRACE_SETREGS, program, 0, &registers);
        if (passes == 0)
            return true;
        ptrace(PTRACE_SINGLESTEP, program, 0, 0);
        stopped(program, status);
    }
}

/* Sends a signal, and returns when its handler has returned to the instruction. The handler contains a
 * breakpoint. Returns false if the program has exited. */
static bool run_handler(pid_t program, int *status, uintptr_t at)
{
    ptrace(PTRACE_CONT, program, 0, SIGUSR1);
    bool is_alive = stopped(program, status);
    while (is_alive && registers_of(program).rip != at) {
        ptrace(PTRACE_SINGLESTEP, program, 0, 0);
        is_alive = stopped(program, status);
    }
    return is_alive;
}

/* Steps through one call. On entry, the program is stopped before the call, and on return, it is stopped
 * after the call. */
static bool step_through(pid_t program, int *status)
{
    const long begin = shared->stop_at - STEPS_BEFORE;
    shared->steps = 0;
    if (begin >= 0 && begin < way_length && shared->jumps && !shared->again) {
        if (!run_to(program, status, begin)) {
            shared->again = true;
            return WIFSTOPPED(*status);
        }
        shared->steps = begin;
    }
    shared->again = false;
    do {
        const uintptr_t at = registers_of(program).rip;
        const bool here = at >= hook_from && at < hook_to;
        if (here && shared->steps < WAY_MAX) {
            way[shared->steps] = at;
            way_length = shared->steps + 1;
        }
        if (here && shared->steps == shared->stop_at && !shared->storms) {
            ptrace(PTRACE_CONT, program, 0, SIGUSR1);
            return stopped(program, status);
        }
        if (here && shared->storms && !run_handler(program, status, at))
            return false;
        shared->steps += here;
        ptrace(PTRACE_SINGLESTEP, program, 0, 0);
        if (!stopped(program, status))
            return false;
    } while (!at_breakpoint(program));
    return true;
}

/* Forks, and returns only in the child, which continues as the program. The parent becomes the tracer, and
 * exits with the program's status. */
static void trace(void)
{
    shared = mmap(NULL, sizeof(*shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    const pid_t program = fork();
    if (program == 0) {
        if (ptrace(PTRACE_TRACEME, 0, 0, 0) != 0)
            _exit(77);
        return;
    }
    int status;
    while (stopped(program, &status) && step_through(program, &status))
        ptrace(PTRACE_CONT, program, 0, 0);
    _exit(WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status));
}

/* Computes the index of the slot that the hook uses to remember a kernel. */
static uint64_t place_of(CUfunction function)
{
    return (uint64_t)(uintptr_t)function * UINT64_C(0x9e3779b97f4a7c15) >> 58;
}

static void two_of_one_place(CUmodule module)
{
    for (int i = 0; i < FUNCTIONS; i++) {
        char name[32];
        snprintf(name, sizeof(name), "kernel_%d", i);
        if (cuModuleGetFunction(&functions[i], module, name) != CUDA_SUCCESS)
            exit(5);
        for (int j = 0; j < i && !inner; j++) {
            if (place_of(functions[i]) == place_of(functions[j])) {
                outer = functions[j];
                inner = functions[i];
            }
        }
    }
}

static bool choose_what_is_left(const char *what)
{
    if (strncmp(what, "jump", 4) != 0)
        return true;
    interrupted = strstr(what, "launch")    ? interrupted_launch
                  : strstr(what, "decoded") ? interrupted_decoded
                  : strstr(what, "range")   ? interrupted_range
                                            : interrupted_plain;
    return interrupted != interrupted_range || nvtx_load(RTLD_DEFAULT);
}

int main(int argc, char **argv)
{
    char alternate[65536]; /* above the frames of all calls */
    const char *what = argc == 2 ? argv[1] : "";
    CUcontext context;
    CUdevice device;
    CUmodule module;
    dl_iterate_phdr(find_hook, NULL);
    trace();
    if (cuInit(0) || cuDeviceGet(&device, 0) || cuDevicePrimaryCtxRetain(&context, device) ||
        cuCtxSetCurrent(context) || cuModuleLoadData(&module, ".version 8.0\n"))
        return 3;
    const bool capture = strcmp(what, "capture") == 0;
    const bool is_alternate = strcmp(what, "alternate") == 0;
    shared->storms = strcmp(what, "storm") == 0;
    const bool is_above = shared->storms || strcmp(what, "switch_above") == 0;
    switches = is_above || strcmp(what, "switch") == 0;
    if (is_alternate &&
        sigaltstack(&(stack_t){ .ss_sp = alternate, .ss_size = sizeof(alternate) }, NULL) != 0)
        return 9;
    if (!choose_what_is_left(what))
        return 10;
    if (strcmp(what, "plain") != 0 && !switches && !is_alternate)
        two_of_one_place(module);
    is_late = strstr(what, "_late");
    if (strcmp(what, "fork") == 0 || strcmp(what, "fork_late") == 0)
        forks = fork;
    if (strcmp(what, "clone_late") == 0) {
        forks = (pid_t(*)(void))(uintptr_t)dlsym(RTLD_DEFAULT, "_Fork"); /* glibc 2.34 */
        if (!forks)
            return 77;
    }
    if (capture) {
        outer = NULL;
        unnamed = 0;
        if (cuStreamCreate(&stream, 0) || cuStreamBeginCapture(stream, CU_STREAM_CAPTURE_MODE_RELAXED))
            return 6;
    }
    if (switches && !map_stacks(is_above))
        return 78;
    if (switches && !is_above)
        enter_coroutine(&start, 0, every_instruction);
    else
        every_instruction();
    CUgraph graph;
    if (capture && cuStreamEndCapture(stream, &graph))
        return 7;
    if (killed)
        printf("%d children were killed\n", killed);
    /* Without the hook, a call executes none of the hook's instructions. */
    printf("%s: %s, %ld rounds\n", what,
           shared->stop_at > 50 || !hook_from ? "every instruction" : "too few instructions", shared->rounds);
    return 0;
}
