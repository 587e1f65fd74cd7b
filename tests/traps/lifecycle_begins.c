/* Ways for a process to begin or to turn into another one: forks, started programs, closed descriptors,
 * changed users. */
#include "lifecycle.h"

#include <fcntl.h>
#include <spawn.h>
#include <stdbool.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>

extern char **environ;

static void *fork_many(void *unused)
{
    for (int i = 0; i < TIMES; i++) {
        const pid_t child = fork();
        if (child == 0) {
            calls(20);
            for (int which = 0; which < 6; which++)
                call_new(i + which);
            in_thread(one_call, NULL);
            if (i % 2)
                _exit(i % 5);
            exit(i % 5);
        }
        ENSURE(child > 0);
        const int status = status_of(child);
        if (status != (i % 5) << 8)
            printf("child %d: %x\n", i, status);
    }
    return unused;
}

int way_fork_busy(void)
{
    start();
    fflush(stdout);
    be_busy();
    in_thread(fork_many, NULL);
    end_busy();
    printf("forked\n");
    return 0;
}

int way_calls(void)
{
    start();
    calls(50);
    return 0;
}

int way_fork_exec(void)
{
    start();
    for (int i = 0; i < 5; i++) {
        const pid_t child = fork();
        if (child == 0) {
            call();
            execl(self, self, "calls", (char *)NULL);
            _exit(98);
        }
        printf("%d ", status_of(child));
        calls(10);
    }
    return 0;
}

/* Forks a child that makes no calls and outlives its parent. The child waits until the FIFO `hold` in the
 * scratch folder is closed. */
int way_orphan(void)
{
    char path[4200], byte;
    snprintf(path, sizeof path, "%s/hold", folder);
    start();
    calls(10);
    if (fork() > 0)
        return 0;
    const int fd = open(path, O_RDONLY);
    _exit(fd < 0 || read(fd, &byte, 1) != 0);
}

/* ---- vfork: the child runs in its parent's memory ---- */

static int vfork_and_call(void)
{
    const pid_t child = vfork();
    if (child == 0) {
        const bool fine = call() == CUDA_SUCCESS && call() == CUDA_SUCCESS;
        _exit(fine ? 5 : 6);
    }
    return WEXITSTATUS(status_of(child));
}

static void *vfork_in_thread(void *sum)
{
    *(int *)sum += vfork_and_call();
    calls(10);
    return NULL;
}

/* Calls vfork() in a thread that has already made calls and in threads that have not, while other threads are
 * busy. */
int way_vfork_calls(void)
{
    int sum = 0;
    start();
    be_busy();
    for (int i = 0; i < 20; i++) {
        sum += vfork_and_call();
        calls(10);
        in_thread(vfork_in_thread, &sum);
    }
    end_busy();
    printf("vforked: %d\n", sum);
    return 0;
}

/* Calls vfork(), and makes the process's first call in the child. */
int way_vfork_first(void)
{
    const pid_t child = vfork();
    if (child == 0) {
        int version;
        _exit(cuDriverGetVersion(&version) == CUDA_SUCCESS ? 5 : 6);
    }
    printf("%d\n", WEXITSTATUS(status_of(child)));
    start();
    calls(30000);
    return 0;
}

/* ---- started programs ---- */

int way_spawn(void)
{
    char command[4200], line[64] = "";
    char *const arguments[] = { (char *)(uintptr_t)self, (char *)(uintptr_t) "calls", NULL };
    pid_t child;
    start();
    ENSURE(posix_spawn(&child, self, NULL, NULL, arguments, environ) == 0);
    printf("spawned: %d\n", status_of(child));
    snprintf(command, sizeof command, "'%s' calls; echo said", self);
    FILE *pipe = popen(command, "r");
    ENSURE(pipe && fgets(line, sizeof line, pipe));
    printf("opened: %d, %s", pclose(pipe), line);
    snprintf(command, sizeof command, "'%s' calls && exit 3", self);
    printf("by system: %d\n", system(command));
    calls(10);
    return 0;
}

static int execute(const char *path, const char *first, const char *second)
{
    be_known();
    fflush(stdout);
    execl(path, path, first, second, (char *)NULL);
    return 98;
}

static void *execute_self(void *unused)
{
    calls(10);
    execute(self, "calls", NULL);
    return unused;
}

int way_exec_thread(void)
{
    start();
    const pthread_t other = started(busy_caller, NULL);
    in_thread(execute_self, NULL);
    pthread_join(other, NULL);
    return 1;
}

int way_exec_plain(void)
{
    start();
    calls(10);
    return execute("/bin/sh", "-c", "exit 7");
}

int way_exec_killed(void)
{
    start();
    calls(10);
    return execute("/bin/sh", "-c", "kill -9 $$");
}

/* ---- descriptors ---- */

enum { OWN = 40, LAST_FD = 1024 };

/* Opens the program's own files, which get the numbers of all descriptors that were open before. */
static void take_descriptors(int own[OWN])
{
    char path[4200];
    for (int i = 0; i < OWN; i++) {
        snprintf(path, sizeof path, "%s/own.%d", folder, i);
        own[i] = open(path, O_RDWR | O_CREAT | O_TRUNC, 0600);
        ENSURE(own[i] >= 0 && write(own[i], "own", 3) == 3);
    }
}

static int changed(const int own[OWN])
{
    int count = 0;
    for (int i = 0; i < OWN; i++) {
        struct stat status;
        char text[4] = "";
        count += fstat(own[i], &status) != 0 || status.st_size != 3 || pread(own[i], text, 3, 0) != 3 ||
                 strcmp(text, "own") != 0;
    }
    return count;
}

static void close_all(void)
{
    for (int fd = 0; fd < LAST_FD; fd++)
        close(fd);
    ENSURE(open("/dev/null", O_RDWR) == 0 && dup(0) == 1 && dup(0) == 2);
}

/* Turns the process into a daemon, which forks, starts a session, and closes all descriptors. */
static void be_daemon(bool late, const char *answer)
{
    char text[64];
    int own[OWN];
    if (fork() > 0)
        _exit(0);
    if (late)
        start();
    close_all();
    take_descriptors(own);
    if (!late)
        start();
    calls(20000);
    in_thread(one_call, NULL);
    for (int i = 0; i < 6; i++)
        call_new(i);
    calls(20000);
    snprintf(text, sizeof text, "%d files changed\n", changed(own));
    const int fd = open(answer, O_WRONLY);
    ENSURE(fd >= 0 && write(fd, text, strlen(text)) > 0);
    exit(4);
}

int way_daemon(void)
{
    char answer[4200], text[64];
    snprintf(answer, sizeof answer, "%s/answer", folder);
    ENSURE(mkfifo(answer, 0600) == 0);
    prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0);
    for (int late = 0; late < 2; late++) {
        const pid_t child = fork();
        if (child == 0) {
            setsid();
            be_daemon(late, answer);
        }
        status_of(child);
        const int fd = open(answer, O_RDONLY);
        const ssize_t n = read(fd, text, sizeof text - 1);
        text[n > 0 ? n : 0] = '\0';
        close(fd);
        int status = -1;
        ENSURE(wait(&status) > 0);
        printf("ended with %d: %s", status >> 8, text);
    }
    unlink(answer);
    return 0;
}

/* Closes all descriptors with close_range(), in a process that has not forked. Threads keep no descriptor
 * open between calls. */
int way_close_range(void)
{
    int own[OWN];
    start();
    calls(100);
    syscall(SYS_close_range, 3U, ~0U, 0U);
    take_descriptors(own);
    calls(30000);
    for (int i = 0; i < 20; i++)
        in_thread(one_call, NULL);
    for (int i = 0; i < 6; i++)
        call_new(i);
    printf("%d files changed\n", changed(own));
    return 0;
}

/* ---- another user ---- */

static void call_as_another(int (*become)(uid_t uid))
{
    start();
    calls(100);
    printf("%d\n", become(65534));
    for (int i = 0; i < 6; i++)
        call_new(i);
    calls(100000);
    in_thread(one_call, NULL);
}

int way_seteuid(void)
{
    call_as_another(seteuid);
    printf("%d\n", seteuid(0));
    calls(100);
    return 0;
}

int way_setuid(void)
{
    call_as_another(setuid);
    return 0;
}
