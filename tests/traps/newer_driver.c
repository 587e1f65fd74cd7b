/* The libcuda.so.1 of a driver that is newer than the hook's table. The driver has unknown functions,
 * including one that is not even exported. Like the real cuInit, the cuInit in this file forks, executes a
 * helper, and registers atfork handlers. The driver also has a table for cuGetExportTable, and exported
 * data. */
#include <pthread.h>
#include <spawn.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

extern char **environ;

static int forks_before, forks_after;

static void before_fork(void)
{
    forks_before++;
}

static void after_fork(void)
{
    forks_after++;
}

static int wait_for(pid_t child)
{
    int status = -1;
    return child > 0 && waitpid(child, &status, 0) == child && status == 0 ? 0 : 999;
}

/* Starts a program as the real driver starts nvidia-modprobe, by fork, exec and wait. Then starts the program
 * again with vfork, and with posix_spawn. */
int cuInit(unsigned flags)
{
    char *const argv[] = { (char *)"true", NULL };
    pid_t child = fork();
    if (child == 0) {
        execv("/bin/true", argv);
        _exit(127);
    }
    if (wait_for(child) != 0)
        return 999;
    child = vfork();
    if (child == 0) {
        execv("/bin/true", argv);
        _exit(127);
    }
    if (wait_for(child) != 0 || posix_spawn(&child, "/bin/true", NULL, NULL, argv, environ) != 0 ||
        wait_for(child) != 0)
        return 999;
    pthread_atfork(before_fork, after_fork, NULL);
    return (int)flags;
}

int cuDriverGetVersion(int *version)
{
    *version = 99000;
    return 0;
}

/* Returns how often the driver's own atfork handlers have run, for the test. */
int cuNewForks(int *before, int *after)
{
    *before = forks_before;
    *after = forks_after;
    return 0;
}

/* A function with more arguments than any existing function has, some of them floating-point numbers. */
long cuNewFunction(long a, long b, double x, long c, long d, long e, long f, long g, long h, long i, long j,
                   double y, long k, long l, long m, long n, long o, long p)
{
    const long all[] = { a, b, (long)x, c, d, e, f, g, h, i, j, (long)y, k, l, m, n, o, p };
    long sum = 0;
    for (size_t at = 0; at < sizeof all / sizeof all[0]; at++)
        sum = sum * 3 + all[at];
    return sum;
}

__attribute__((visibility("hidden"))) int cuUnexported(int a, int b)
{
    return a * 100 + b;
}

int cudbgNewState = 4711;

static int in_table(int a)
{
    return a + 1;
}

struct export_table {
    size_t bytes;
    int (*function)(int);
    uint64_t more[6];
};
static const struct export_table table = { sizeof table, in_table, { 1, 2, 3, 4, 5, 6 } };

int cuGetExportTable(const void **out, const void *id)
{
    (void)id;
    *out = &table;
    return 0;
}

static int find(const char *name, void **out)
{
    static const struct {
        const char *name;
        void *pointer;
    } known[] = {
        { "cuNewFunction", (void *)cuNewFunction },
        { "cuUnexported", (void *)cuUnexported },
        { "cuInit", (void *)cuInit },
    };
    for (size_t i = 0; i < sizeof known / sizeof known[0]; i++) {
        if (strcmp(name, known[i].name) == 0) {
            *out = known[i].pointer;
            return 0;
        }
    }
    return 500;
}

int cuGetProcAddress_v2(const char *name, void **out, int version, uint64_t flags, int *status)
{
    (void)version;
    (void)flags;
    if (status)
        *status = 0;
    return find(name, out);
}
