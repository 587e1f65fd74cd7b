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

/* Shared by the command and its tracer. */
struct errand {
    int result;
    alignas(max_align_t) char data[];
};

/* The tracer is a separate process in its own session. Signals and terminals that end or stop the command do
 * not affect it. A thread would end with the command, in the middle of a stop. */
static int send_process(int (*act)(void *data), struct errand *errand)
{
    const pid_t tracer = fork();
    if (tracer < 0)
        return -errno;
    if (tracer == 0) {
        setsid();
        errand->result = act(errand->data);
        _exit(EXIT_SUCCESS);
    }
    while (waitpid(tracer, NULL, 0) < 0 && errno == EINTR) {
    }
    return errand->result;
}

struct sent {
    int (*act)(void *data);
    struct errand *errand;
};

static void *go(void *data)
{
    const struct sent *sent = data;
    sent->errand->result = sent->act(sent->errand->data);
    return NULL;
}

/* With ptrace_scope 1 (Yama), a process may trace its descendants, but a separate tracer may not. */
static int send_thread(int (*act)(void *data), struct errand *errand)
{
    struct sent sent = { .act = act, .errand = errand };
    pthread_t thread;
    const int error = pthread_create(&thread, NULL, go, &sent);
    if (!error)
        pthread_join(thread, NULL);
    return error ? -error : errand->result;
}

int ct_tracer_run(int (*act)(void *data), void *data, size_t bytes)
{
    const size_t room = offsetof(struct errand, data) + bytes;
    struct errand *errand = mmap(NULL, room, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    sigset_t all, before;
    struct sigaction on_child;
    if (errand == MAP_FAILED)
        return -errno;
    /* While SIGCHLD is ignored, waitpid() does not report the end of a child. */
    sigaction(SIGCHLD, &(struct sigaction){ .sa_handler = SIG_DFL }, &on_child);
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    errand->result = -ECANCELED; /* the result of a killed tracer */
    memcpy(errand->data, data, bytes);
    int result = send_process(act, errand);
    if (result == -EPERM) /* nothing was done */
        result = send_thread(act, errand);
    memcpy(data, errand->data, bytes);
    sigtimedwait(&(sigset_t){ { 1UL << (SIGCHLD - 1) } }, NULL, &(struct timespec){ 0 });
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    sigaction(SIGCHLD, &on_child, NULL);
    munmap(errand, room);
    return result;
}
