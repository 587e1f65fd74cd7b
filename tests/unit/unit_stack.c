/* Tests in which contexts ct_stack_is_plain() lets the hook allocate memory and create threads, and in which
 * a call proves that another function has been left (hook/base/stack.c). */
#include "stack.h"

#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <ucontext.h>
#include <unistd.h>

enum { STACK_BYTES = 1 << 18, DEPTH = 100 };

static int failures, answers;

static void expect(bool wanted, const char *where)
{
    answers++;
    if (ct_stack_is_plain() == wanted)
        return;
    printf("%s: %splain\n", where, wanted ? "not " : "");
    failures++;
}

static void expect_proof(bool wanted, const char *where)
{
    const uintptr_t frame = (uintptr_t)__builtin_frame_address(0);
    if (ct_stack_left(frame - 1000, frame) == wanted && !ct_stack_left(frame, frame - 1000))
        return;
    printf("%s: %sproof\n", where, wanted ? "no " : "");
    failures++;
}

static __attribute__((noinline)) int deeper(int depth, bool wanted, const char *where)
{
    volatile char frame[1000];
    frame[0] = (char)depth;
    if (depth > 0)
        return deeper(depth - 1, wanted, where) + frame[0];
    expect(wanted, where);
    return 0;
}

static void on_signal(int number)
{
    (void)number;
    deeper(DEPTH, false, "a signal handler");
}

static void interrupt_with(int flags)
{
    sigaction(SIGUSR1, &(struct sigaction){ .sa_handler = on_signal, .sa_flags = flags }, NULL);
    raise(SIGUSR1);
}

static void on_fork(void)
{
    expect(false, "a fork handler");
}

/* Forks, because fork handlers cannot be removed. */
static void fork_with_handlers(void)
{
    int status;
    if (fork() == 0) {
        pthread_atfork(on_fork, on_fork, on_fork);
        const pid_t child = fork();
        expect(true, "after a fork");
        if (child > 0)
            waitpid(child, &status, 0);
        _exit(failures > 0 || (child > 0 && (!WIFEXITED(status) || WEXITSTATUS(status) != 0)));
    }
    wait(&status);
    failures += !WIFEXITED(status) || WEXITSTATUS(status) != 0;
}

static ucontext_t outside, inside;
static void in_coroutine(void)
{
    expect(false, "a coroutine");
    expect_proof(false, "a coroutine");
    swapcontext(&inside, &outside);
}

/* The pages around a coroutine's stack are not readable, as those of most such stacks. */
static void enter_coroutine(void)
{
    char *stack = mmap(NULL, 3 * STACK_BYTES, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    mprotect(stack + STACK_BYTES, STACK_BYTES, PROT_READ | PROT_WRITE);
    getcontext(&inside);
    inside.uc_stack.ss_sp = stack + STACK_BYTES;
    inside.uc_stack.ss_size = STACK_BYTES;
    makecontext(&inside, in_coroutine, 0);
    swapcontext(&outside, &inside);
}

static void *run(void *where)
{
    static char alternate[STACK_BYTES];
    deeper(DEPTH, true, where);
    expect_proof(true, where);
    interrupt_with(0);
    sigaltstack(&(stack_t){ .ss_sp = alternate, .ss_size = sizeof(alternate) }, NULL);
    interrupt_with(SA_ONSTACK);
    sigaltstack(&(stack_t){ .ss_flags = SS_DISABLE }, NULL);
    enter_coroutine();
    fork_with_handlers();
    expect(true, "after all");
    return NULL;
}

int main(void)
{
    pthread_t thread;
    pthread_attr_t attributes;
    run("the first thread");
    pthread_create(&thread, NULL, run, "a thread");
    pthread_join(thread, NULL);
    pthread_attr_init(&attributes);
    pthread_attr_setstack(&attributes, aligned_alloc(4096, 4 * STACK_BYTES), 4 * STACK_BYTES);
    pthread_create(&thread, &attributes, run, "a thread on memory of the program");
    pthread_join(thread, NULL);
    if (answers < 3 * 5) {
        printf("only %d answers\n", answers);
        failures++;
    }
    return failures ? EXIT_FAILURE : EXIT_SUCCESS;
}
