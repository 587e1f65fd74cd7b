#include "background_task.h"

#include "demangle.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>

struct ct_task {
    int (*work)(void *data);
    void *data;
    pthread_t thread;
    pthread_mutex_t mutex;
    pthread_cond_t cond;
    bool is_wanted, stop; /* under the mutex */
    int result;           /* valid once is_done is set */
    _Atomic bool is_done;
};

static void *thread_main(void *data)
{
    struct ct_task *task = data;
    pthread_mutex_lock(&task->mutex);
    for (;;) {
        while (!task->is_wanted && !task->stop)
            pthread_cond_wait(&task->cond, &task->mutex);
        if (!task->is_wanted)
            break;
        task->is_wanted = false;
        pthread_mutex_unlock(&task->mutex);
        task->result = task->work(task->data);
        pthread_mutex_lock(&task->mutex);
        /* Pairs with the acquire in ct_task_is_done(). */
        atomic_store_explicit(&task->is_done, true, memory_order_release);
        pthread_cond_broadcast(&task->cond);
    }
    pthread_mutex_unlock(&task->mutex);
    return NULL;
}

struct ct_task *ct_task_create(const char *name, int (*work)(void *data), void *data)
{
    struct ct_task *task = calloc(1, sizeof(*task));
    if (!task)
        return NULL;
    *task = (struct ct_task){ .work = work,
                              .data = data,
                              .mutex = PTHREAD_MUTEX_INITIALIZER,
                              .cond = PTHREAD_COND_INITIALIZER,
                              .is_done = true };
    pthread_attr_t attributes;
    pthread_attr_init(&attributes);
    pthread_attr_setstacksize(&attributes, CT_DEMANGLE_STACK_BYTES);
    const int error = pthread_create(&task->thread, &attributes, thread_main, task);
    pthread_attr_destroy(&attributes);
    if (!error) {
        pthread_setname_np(task->thread, name);
        return task;
    }
    free(task);
    return NULL;
}

void ct_task_start(struct ct_task *task)
{
    pthread_mutex_lock(&task->mutex);
    atomic_store_explicit(&task->is_done, false, memory_order_relaxed);
    task->is_wanted = true;
    pthread_cond_broadcast(&task->cond);
    pthread_mutex_unlock(&task->mutex);
}

bool ct_task_is_done(const struct ct_task *task)
{
    return atomic_load_explicit(&task->is_done, memory_order_acquire);
}

int ct_task_wait(struct ct_task *task)
{
    pthread_mutex_lock(&task->mutex);
    while (!task->is_done)
        pthread_cond_wait(&task->cond, &task->mutex);
    pthread_mutex_unlock(&task->mutex);
    return task->result;
}

bool ct_task_is_own(const struct ct_task *task)
{
    return task && pthread_equal(pthread_self(), task->thread);
}

void ct_task_destroy(struct ct_task *task)
{
    if (!task)
        return;
    pthread_mutex_lock(&task->mutex);
    task->stop = true;
    pthread_cond_broadcast(&task->cond);
    pthread_mutex_unlock(&task->mutex);
    pthread_join(task->thread, NULL);
    pthread_mutex_destroy(&task->mutex);
    pthread_cond_destroy(&task->cond);
    free(task);
}
