#include "tracer.h"

#include "clock.h"

#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdalign.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/ptrace.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { LOOK_NS = 100000000, SECOND_NS = 1000000000 };

/* The states of a tracer, in the lowest bits of a word. The other bits count the seizures. */
enum { IS_FREE, IS_SEIZING, IS_ABANDONED, STATES };
#define SEIZE_NS UINT64_C(2000000000)
/* Longer than any stop that proceeds. A tracer whose thread was frozen in our code carries on alone, until it
 * has restored the thread. */
#define TRACER_NS UINT64_C(60000000000)

/* Memory shared by the command and its tracer. */
struct task {
    int result;
    _Atomic unsigned state;
    alignas(max_align_t) char data[];
};

static struct task *own; /* the tracer's task */

static int seize(pid_t thread, long options)
{
    unsigned state = atomic_load(&own->state) / STATES * STATES + STATES + IS_SEIZING;
    atomic_store(&own->state, state);
    const int error = ptrace(PTRACE_SEIZE, thread, NULL, (void *)options) != 0 ? errno : 0;
    /* Once abandoned, the tracer must not touch the thread any more. It is about to be killed. */
    if (!atomic_compare_exchange_strong(&own->state, &state, state - IS_SEIZING)) {
        for (;;)
            pause();
    }
    return -error;
}

int ct_tracer_seize(pid_t thread, long options, bool *suspends_filters)
{
    /* The kernel permits this to root, unless root itself has a filter. */
    *suspends_filters = true;
    const int error = seize(thread, options | PTRACE_O_SUSPEND_SECCOMP);
    if (error != -EPERM && error != -EINVAL)
        return error;
    *suspends_filters = false;
    return seize(thread, options);
}

bool ct_tracer_sees_dispatch(pid_t thread)
{
    enum { GET_CONFIGURATION = 0x4211 }; /* linux/ptrace.h, struct ptrace_sud_config */
    struct {
        uint64_t mode, selector, offset, bytes;
    } configuration = { .mode = 0 };
    return ptrace((enum __ptrace_request)GET_CONFIGURATION, thread, (void *)sizeof(configuration),
                  &configuration) == 0 &&
           configuration.mode != 0;
}

void ct_tracer_hurry(bool hurries)
{
    static int before;
    if (hurries)
        before = sched_getscheduler(0);
    if (before != SCHED_OTHER && before != SCHED_BATCH && before != SCHED_IDLE)
        return;
    const struct sched_param priority = { .sched_priority =
                                              hurries ? sched_get_priority_min(SCHED_FIFO) : 0 };
    sched_setscheduler(0, hurries ? SCHED_FIFO : before, &priority);
}

/* Watches a tracer's state. */
struct watch {
    unsigned state;
    uint64_t since_ns;
};

/* Returns true if the tracer has been seizing the same thread for too long. The tracer is then abandoned. A
 * tracer that seizes has changed no thread yet, so it may be killed. */
static bool is_stuck(struct task *task, struct watch *watch)
{
    unsigned state = atomic_load(&task->state);
    const uint64_t now_ns = ct_monotonic_ns();
    if (state % STATES != IS_SEIZING || state != watch->state) {
        *watch = (struct watch){ .state = state, .since_ns = now_ns };
        return false;
    }
    return now_ns - watch->since_ns >= SEIZE_NS &&
           atomic_compare_exchange_strong(&task->state, &state, state - IS_SEIZING + IS_ABANDONED);
}

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
        own = task;
        task->result = act(task->data);
        _exit(EXIT_SUCCESS);
    }
    struct watch watch = { 0 };
    sigset_t child;
    sigemptyset(&child);
    sigaddset(&child, SIGCHLD);
    const uint64_t until_ns = ct_monotonic_ns() + TRACER_NS;
    while (waitpid(tracer, NULL, WNOHANG) == 0) {
        if (ct_monotonic_ns() > until_ns)
            return -ETIMEDOUT;
        if (is_stuck(task, &watch)) {
            kill(tracer, SIGKILL);
            waitpid(tracer, NULL, 0);
            return -ETIMEDOUT;
        }
        sigtimedwait(&child, NULL, &(struct timespec){ .tv_nsec = LOOK_NS });
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
    own = sent->task;
    sent->task->result = sent->act(sent->task->data);
    return NULL;
}

/* Runs the tracer as a thread. Under Yama's ptrace_scope 1, a process may trace its descendants, but a
 * separate tracer process may not. An abandoned thread ends with the command. */
static int send_thread(int (*act)(void *data), struct task *task)
{
    static struct sent sent;
    sent = (struct sent){ .act = act, .task = task };
    pthread_t thread;
    const int error = pthread_create(&thread, NULL, go, &sent);
    if (error)
        return -error;
    struct watch watch = { 0 };
    struct timespec until;
    do {
        if (is_stuck(task, &watch)) {
            pthread_detach(thread);
            return -ETIMEDOUT;
        }
        clock_gettime(CLOCK_REALTIME, &until);
        until.tv_nsec += LOOK_NS;
        until.tv_sec += until.tv_nsec / SECOND_NS;
        until.tv_nsec %= SECOND_NS;
    } while (pthread_timedjoin_np(thread, NULL, &until) == ETIMEDOUT);
    return task->result;
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
    if (atomic_load(&task->state) % STATES != IS_ABANDONED) /* a thread may still use it */
        munmap(task, room);
    return result;
}
