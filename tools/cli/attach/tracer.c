#include "tracer.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdalign.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

/* Memory shared by the command and its tracer. */
struct task {
    int result;
    alignas(max_align_t) char data[];
};

/* Runs the tracer as a separate process in its own session, so that signals and terminals that end or stop
 * the command do not affect the tracer. A thread would be killed with the command, possibly while it has
 * stopped a thread of the process. */
static int send_process(int (*act)(void *data), struct task *task)
{
    const pid_t tracer = fork();
    if (tracer < 0)
        return -errno;
    if (tracer == 0) {
        setsid();
        task->result = act(task->data);
        _exit(EXIT_SUCCESS);
    }
    while (waitpid(tracer, NULL, 0) < 0 && errno == EINTR) {
    }
    return task->result;
}

struct sent {
    int (*act)(void *data);
    struct task *task;
};

static void *go(void *data)
{
    const struct sent *sent = data;
    sent->task->result = sent->act(sent->task->data);
    return NULL;
}

/* Runs the tracer as a thread. Under Yama's ptrace_scope 1, a process may trace its descendants, but a
 * separate tracer process may not. */
static int send_thread(int (*act)(void *data), struct task *task)
{
    struct sent sent = { .act = act, .task = task };
    pthread_t thread;
    const int error = pthread_create(&thread, NULL, go, &sent);
    if (!error)
        pthread_join(thread, NULL);
    return error ? -error : task->result;
}

int ct_tracer_run(int (*act)(void *data), void *data, size_t bytes)
{
    const size_t room = offsetof(struct task, data) + bytes;
    struct task *task = mmap(NULL, room, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    sigset_t all, before;
    struct sigaction on_child;
    if (task == MAP_FAILED)
        return -errno;
    /* While SIGCHLD is ignored, waitpid() does not report exited children. */
    sigaction(SIGCHLD, &(struct sigaction){ .sa_handler = SIG_DFL }, &on_child);
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    task->result = -ECANCELED; /* the result in case the tracer is killed */
    memcpy(task->data, data, bytes);
    int result = send_process(act, task);
    if (result == -EPERM) /* nothing was done */
        result = send_thread(act, task);
    memcpy(data, task->data, bytes);
    sigtimedwait(&(sigset_t){ { 1UL << (SIGCHLD - 1) } }, NULL, &(struct timespec){ 0 });
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    sigaction(SIGCHLD, &on_child, NULL);
    munmap(task, room);
    return result;
}
