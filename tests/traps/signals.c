/* A signal at every instruction of the hook: a tracer stops a call before one of them, another for each call,
 * and sends a signal whose handler makes a call of its own.
 *
 *   plain    a call without arguments that are read, inside another
 *   launch   a launch inside one of another kernel, which the hook remembers at the same place
 *   fork     the handler forks, and the interrupted launch goes on in both; the child's ends well
 *   capture  a captured launch, each time of a kernel whose name is to be sent, inside a plain call */
#include "cuda_min.h"

#include <link.h>
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
static bool forks, is_child; /* whose driver answers with an error */
static int killed;
static CUfunction outer, inner;
static CUcontext current;
static CUstream stream;
static int unnamed =
    -1; /* of the functions, the first whose name no record has named; -1: inner is launched */

static void call(CUfunction function, unsigned int grid)
{
    const CUresult status = function ? cuLaunchKernel(function, grid, 1, 1, 1, 1, 1, 0, stream, NULL, NULL)
                                     : cuCtxGetCurrent(&current);
    if (status != CUDA_SUCCESS && !is_child)
        exit(4);
}

/* Shared by the program and its tracer. */
static struct {
    long stop_at; /* which of a call's instructions in the hook the signal precedes */
    long steps;   /* as many as were counted before it */
} * shared;

static void on_signal(int number)
{
    (void)number;
    if (forks) {
        const pid_t child = fork();
        int status = 0;
        is_child = child == 0;
        killed += !is_child && waitpid(child, &status, 0) == child && !WIFEXITED(status);
        return;
    }
    call(unnamed >= 0 ? functions[unnamed++ % FUNCTIONS] : inner, 2);
}

/* One call for each of its instructions in the hook. */
static void every_instruction(void)
{
    signal(SIGUSR1, on_signal);
    do {
        call(outer, 1); /* what is remembered of a kernel is remembered of this one */
        __asm__ volatile("int3" ::: "memory");
        call(outer, 1);
        if (is_child)
            _exit(0);
        __asm__ volatile("int3" ::: "memory");
    } while (shared->steps == shared->stop_at++);
}

/* Waits for the program to stop; false when it has ended. */
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

/* The program stands before a call, and afterwards behind it. */
static bool step_through(pid_t program, int *status)
{
    shared->steps = 0;
    do {
        struct user_regs_struct registers;
        ptrace(PTRACE_GETREGS, program, 0, &registers);
        const bool here = registers.rip >= hook_from && registers.rip < hook_to;
        if (here && shared->steps == shared->stop_at) {
            ptrace(PTRACE_CONT, program, 0, SIGUSR1);
            return stopped(program, status);
        }
        shared->steps += here;
        ptrace(PTRACE_SINGLESTEP, program, 0, 0);
        if (!stopped(program, status))
            return false;
    } while (!at_breakpoint(program));
    return true;
}

/* Returns in the program; its tracer ends with it. */
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

/* As the hook chooses the place where it remembers a kernel. */
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

int main(int argc, char **argv)
{
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
    if (strcmp(what, "plain") != 0)
        two_of_one_place(module);
    forks = strcmp(what, "fork") == 0;
    if (capture) {
        outer = NULL;
        unnamed = 0;
        if (cuStreamCreate(&stream, 0) || cuStreamBeginCapture(stream, CU_STREAM_CAPTURE_MODE_RELAXED))
            return 6;
    }
    every_instruction();
    CUgraph graph;
    if (capture && cuStreamEndCapture(stream, &graph))
        return 7;
    if (killed)
        printf("%d children were killed\n", killed);
    /* Without the hook, none. */
    printf("%s: %s\n", what,
           shared->stop_at > 50 || !hook_from ? "every instruction" : "too few instructions");
    return 0;
}
