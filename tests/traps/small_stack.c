/* A program for newer_driver.c that calls functions missing from the hook's table. The program runs on the
 * small stack of a coroutine, and memory above that stack is not accessible. The functions are called from
 * frames at various distances from the end of the stack. With "filtered", the coroutine first forbids all
 * system calls except write and exit_group. */
#include <dlfcn.h>
#include <errno.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <ucontext.h>
#include <unistd.h>

enum { STACK_BYTES = 128 * 1024, DISTANCES = 40, WANTED = 2 * DISTANCES };

typedef long new_function(long, long, double, long, long, long, long, long, long, long, long, double, long,
                          long, long, long, long, long);
static new_function *many;
static int (*few)(int *before, int *after);
static int before, after, right;
static long wanted;
static ucontext_t outside, inside;

static long call(void)
{
    return many(1, 2, 3.0, 4, 5, 6, 7, 8, 9, 10, 11, 12.0, 13, 14, 15, 16, 17, 18);
}

static void calls(void)
{
    right += few(&before, &after) == 0;
    right += call() == wanted;
}

/* The call is compiled to a jump, so that the function's return address is the highest word on the stack. */
static void ends_in_a_call(void)
{
    few(&before, &after);
}

static void filtered(void)
{
    static struct sock_filter filter[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_write, 1, 0),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_exit_group, 0, 1),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS),
    };
    struct sock_fprog program = { sizeof(filter) / sizeof(filter[0]), filter };
    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0 ||
        prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) != 0)
        _exit(77);
    calls();
    _exit(right == 2 && write(1, "filtered: right\n", 16) == 16 ? 0 : 1);
}

static void run(char *stack, size_t bytes, void (*function)(void))
{
    getcontext(&inside);
    inside.uc_stack.ss_sp = stack;
    inside.uc_stack.ss_size = bytes;
    inside.uc_link = &outside;
    makecontext(&inside, function, 0);
    swapcontext(&outside, &inside);
}

int main(int argc, char **argv)
{
    void *driver = dlopen("libcuda.so.1", RTLD_NOW);
    many = (new_function *)dlsym(driver, "cuNewFunction");
    few = (int (*)(int *, int *))dlsym(driver, "cuNewForks");
    int (*init)(unsigned) = (int (*)(unsigned))dlsym(driver, "cuInit");
    char *stack = mmap(NULL, STACK_BYTES + 65536, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (!many || !few || !init || init(0) != 0 || stack == MAP_FAILED ||
        mprotect(stack + STACK_BYTES, 65536, PROT_NONE) != 0)
        return 2;
    wanted = call();
    if (argc > 1 && strcmp(argv[1], "filtered") == 0)
        run(stack, STACK_BYTES, filtered);
    for (size_t distance = 0; distance < DISTANCES; distance++) {
        run(stack, STACK_BYTES - 16 * distance, calls);
        run(stack, STACK_BYTES - 16 * distance, ends_in_a_call);
    }
    printf("right: %d of %d\n", right, WANTED);
    return right != WANTED;
}
