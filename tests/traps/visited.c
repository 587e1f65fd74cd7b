/* A program that a visit disturbs if it is careless: the visit's code runs inside a call of the program, on
 * its signals, its allocator and its stack. Makes a call for each line of its input. For a line with a c, it
 * makes the call as any other program does.
 *
 *     visited MODE
 *
 * In each mode, the program's allocator or its calls need something else:
 *   barrier     the allocator writes to a page that a handler of SIGSEGV makes writable
 *   pager       the allocator writes to a page of a file that a handler of SIGBUS makes longer
 *   misaligned  the calls are made with a stack that is not aligned to 16 bytes
 *   deep        the allocator uses 3 MiB of stack
 *   setxid      the allocator waits until another thread has called seteuid()
 *   thread      the calls are made in a thread, on memory that the program has chosen, in several mappings
 * A visit must leave the calls alone in these modes:
 *   split       the calls are made in a signal handler, on a stack that consists of several mappings
 *   coroutine   a signal handler switches to another stack and makes the calls there
 *   deeper      the calls are made with 5 MiB of stack in use
 *   within      the allocator makes the calls, and holds its lock
 *   library     the same, if the allocator is the library visited_allocator.c
 *   unshared    the calls are made by a thread with file descriptors of its own */
#include "visited.h"
#include "cuda_min.h"

#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <ucontext.h>
#include <unistd.h>

enum { FAILED = 9, PAGE_BYTES = 4096, STACK_BYTES = 1 << 20 };

static bool is_ready;
static char *page;
static int file = -1;
static volatile sig_atomic_t faults;

static void fail(const char *why)
{
    if (write(STDERR_FILENO, why, strlen(why)) > 0)
        _exit(FAILED);
}

static void ensure(bool holds, const char *why)
{
    if (!holds)
        fail(why);
}

/* ---- modes ---- */

static int call(void)
{
    int version = 0;
    const int result = cuDriverGetVersion(&version);
    return result == 0 && version <= 0 ? -1 : result;
}

static void touch_page(void)
{
    *(volatile char *)page = 1;
}

static void serve_fault(int number, siginfo_t *info, void *context)
{
    (void)number, (void)context;
    ensure((char *)info->si_addr == page, "a fault elsewhere\n");
    if (file < 0)
        mprotect(page, PAGE_BYTES, PROT_READ | PROT_WRITE);
    else
        ensure(ftruncate(file, PAGE_BYTES) == 0, "ftruncate() failed\n");
    faults = faults + 1;
}

static void serve(int number)
{
    sigaction(number, &(struct sigaction){ .sa_sigaction = serve_fault, .sa_flags = SA_SIGINFO | SA_RESTART },
              NULL);
    page = mmap(NULL, PAGE_BYTES, PROT_READ | PROT_WRITE, file < 0 ? MAP_PRIVATE | MAP_ANONYMOUS : MAP_SHARED,
                file, 0);
    ensure(page != MAP_FAILED, "mmap() failed\n");
}

static void prepare_barrier(void)
{
    serve(SIGSEGV);
}

static int call_with_barrier(void)
{
    mprotect(page, PAGE_BYTES, PROT_READ);
    return call();
}

static void prepare_pager(void)
{
    file = memfd_create("pages", MFD_CLOEXEC);
    serve(SIGBUS);
}

static int call_with_pager(void)
{
    ensure(ftruncate(file, 0) == 0, "ftruncate() failed\n");
    return call();
}

/* Calls as hand-written code might, with a stack pointer that is a multiple of 8 only. */
static int call_misaligned(void)
{
    int version = 0, result;
    __asm__ volatile("movq %%rsp, %%rbx\n\t"
                     "leaq -128(%%rsp), %%rsp\n\t" /* the red zone */
                     "andq $-16, %%rsp\n\t"
                     "subq $8, %%rsp\n\t"
                     "call *%2\n\t"
                     "movq %%rbx, %%rsp"
                     : "=a"(result)
                     : "D"(&version), "r"((CUresult(*)(int *))cuDriverGetVersion)
                     : "rbx", "rcx", "rdx", "rsi", "r8", "r9", "r10", "r11", "memory", "cc");
    return result == 0 && version <= 0 ? -1 : result;
}

static void use_stack(void)
{
    volatile char block[3 << 20];
    for (size_t i = 0; i < sizeof(block); i += PAGE_BYTES)
        block[i] = 1;
}

/* Gives a page other properties than its neighbours, so that it becomes a mapping of its own. */
static void split(char *within)
{
    ensure(madvise((char *)((uintptr_t)within & -(uintptr_t)PAGE_BYTES), PAGE_BYTES, MADV_DONTDUMP) == 0,
           "madvise() failed\n");
}

static void *call_in_thread(void *result)
{
    char block[4 * PAGE_BYTES];
    split(block + sizeof(block) / 2);
    *(int *)result = call();
    return NULL;
}

static int call_by_thread(void)
{
    static char *stack;
    pthread_attr_t attributes;
    pthread_t thread;
    int result = -1;
    if (!stack)
        stack = mmap(NULL, STACK_BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    pthread_attr_init(&attributes);
    pthread_attr_setstack(&attributes, stack, STACK_BYTES);
    ensure(pthread_create(&thread, &attributes, call_in_thread, &result) == 0, "no thread\n");
    pthread_join(thread, NULL);
    return result;
}

static volatile int result_of_call;

static void call_in_handler(int number)
{
    char block[4 * PAGE_BYTES];
    (void)number;
    split(block + sizeof(block) / 2);
    result_of_call = call();
}

static void prepare_split(void)
{
    signal(SIGUSR1, call_in_handler);
}

static int call_by_signal(void)
{
    result_of_call = -1;
    raise(SIGUSR1);
    return result_of_call;
}

static ucontext_t handler, coroutine;

static void call_in_coroutine(void)
{
    for (;;) {
        result_of_call = call();
        swapcontext(&coroutine, &handler);
    }
}

static void switch_stacks(int number)
{
    (void)number;
    swapcontext(&handler, &coroutine);
}

static void prepare_coroutine(void)
{
    getcontext(&coroutine);
    coroutine.uc_stack.ss_size = STACK_BYTES;
    coroutine.uc_stack.ss_sp =
        mmap(NULL, STACK_BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    makecontext(&coroutine, call_in_coroutine, 0);
    signal(SIGUSR1, switch_stacks);
}

static int call_deeper(void)
{
    volatile char block[5 << 20];
    for (size_t i = 0; i < sizeof(block); i += PAGE_BYTES)
        block[i] = 1;
    return call();
}

static pthread_barrier_t begins, ends; /* of a call by the other thread */

static void *call_unshared(void *unused)
{
    ensure(unshare(CLONE_FILES) == 0, "unshare() failed\n");
    for (;;) {
        pthread_barrier_wait(&begins);
        result_of_call = call();
        pthread_barrier_wait(&ends);
    }
    return unused;
}

static int call_by_unshared(void)
{
    pthread_barrier_wait(&begins);
    pthread_barrier_wait(&ends);
    return result_of_call;
}

static void prepare_unshared(void)
{
    pthread_t thread;
    pthread_barrier_init(&begins, NULL, 2);
    pthread_barrier_init(&ends, NULL, 2);
    ensure(pthread_create(&thread, NULL, call_unshared, NULL) == 0, "no thread\n");
    call_by_unshared();
}

/* In seteuid(), the C library waits for all threads. */
static __thread bool changes_user;

static void *change_user(void *unused)
{
    changes_user = true;
    for (;;) {
        pthread_barrier_wait(&begins);
        ensure(seteuid(geteuid()) == 0, "seteuid() failed\n");
        pthread_barrier_wait(&ends);
    }
    return unused;
}

static void await_change(void)
{
    if (changes_user)
        return;
    changes_user = true; /* a function of the allocator may call another */
    pthread_barrier_wait(&begins);
    pthread_barrier_wait(&ends);
    changes_user = false;
}

static void prepare_change(void)
{
    pthread_t thread;
    pthread_barrier_init(&begins, NULL, 2);
    pthread_barrier_init(&ends, NULL, 2);
    ensure(pthread_create(&thread, NULL, change_user, NULL) == 0, "no thread\n");
}

static int call_with_change(void)
{
    await_change();
    return call();
}

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static bool calls_within;

static void call_within(void)
{
    pthread_mutex_lock(&lock);
    if (calls_within) {
        calls_within = false;
        result_of_call = call();
    }
    pthread_mutex_unlock(&lock);
}

static int call_by_allocator(void)
{
    result_of_call = 0;
    calls_within = true;
    free(malloc(VISITED_BYTES));
    return result_of_call;
}

static const struct mode {
    const char *name;
    void (*prepare)(void);
    int (*call)(void);
    void (*allocate)(void); /* called by each function of the allocator */
} modes[] = {
    { "barrier", prepare_barrier, call_with_barrier, touch_page },
    { "pager", prepare_pager, call_with_pager, touch_page },
    { "misaligned", NULL, call_misaligned, NULL },
    { "deep", NULL, call, use_stack },
    { "setxid", prepare_change, call_with_change, await_change },
    { "thread", NULL, call_by_thread, NULL },
    { "split", prepare_split, call_by_signal, NULL },
    { "coroutine", prepare_coroutine, call_by_signal, NULL },
    { "deeper", NULL, call_deeper, NULL },
    { "within", NULL, call_by_allocator, call_within },
    { "library", NULL, call_by_allocator, NULL },
    { "unshared", prepare_unshared, call_by_unshared, NULL },
};
static const struct mode *mode;

/* ---- the allocator, which also serves the C library and the loader ---- */

#define ALLOCATOR(result, name, parameters, arguments)                                                       \
    extern result __libc_##name parameters;                                                                  \
    result name parameters                                                                                   \
    {                                                                                                        \
        if (is_ready && mode->allocate)                                                                      \
            mode->allocate();                                                                                \
        return __libc_##name arguments;                                                                      \
    }
#ifndef HAS_LIBRARY
ALLOCATOR(void *, malloc, (size_t bytes), (bytes))
ALLOCATOR(void *, calloc, (size_t count, size_t bytes), (count, bytes))
ALLOCATOR(void *, realloc, (void *block, size_t bytes), (block, bytes))
ALLOCATOR(void, free, (void *block), (block))
#endif

int main(int argc, char **argv)
{
    char line;
    for (size_t i = 0; argc == 2 && i < sizeof(modes) / sizeof(*modes); i++) {
        if (strcmp(argv[1], modes[i].name) == 0)
            mode = &modes[i];
    }
    ensure(mode && cuInit(0) == 0, "no such mode, or no driver\n");
    if (mode->prepare)
        mode->prepare();
    is_ready = true;
    dprintf(STDOUT_FILENO, "ready\n");
    for (bool is_plain = false; read(STDIN_FILENO, &line, 1) == 1; is_plain = line == 'c') {
        if (line != 'c')
            dprintf(STDOUT_FILENO, "%d\n", is_plain ? call() : mode->call());
    }
    is_ready = false;
    printf("faults %d\n", faults > 0);
    return 0;
}
