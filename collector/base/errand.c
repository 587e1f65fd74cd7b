#include "errand.h"

#include "demangle.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>

struct ct_errand {
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
    struct ct_errand *errand = data;
    pthread_mutex_lock(&errand->mutex);
    for (;;) {
        while (!errand->is_wanted && !errand->stop)
            pthread_cond_wait(&errand->cond, &errand->mutex);
        if (!errand->is_wanted)
            break;
        errand->is_wanted = false;
        pthread_mutex_unlock(&errand->mutex);
        errand->result = errand->work(errand->data);
        pthread_mutex_lock(&errand->mutex);
        /* Pairs with the acquire in ct_errand_is_done(). */
        atomic_store_explicit(&errand->is_done, true, memory_order_release);
        pthread_cond_broadcast(&errand->cond);
    }
    pthread_mutex_unlock(&errand->mutex);
    return NULL;
}

struct ct_errand *ct_errand_create(const char *name, int (*work)(void *data), void *data)
{
    struct ct_errand *errand = calloc(1, sizeof(*errand));
    if (!errand)
        return NULL;
    *errand = (struct ct_errand){ .work = work,
                                  .data = data,
                                  .mutex = PTHREAD_MUTEX_INITIALIZER,
                                  .cond = PTHREAD_COND_INITIALIZER,
                                  .is_done = true };
    pthread_attr_t attributes;
    pthread_attr_init(&attributes);
    pthread_attr_setstacksize(&attributes, CT_DEMANGLE_STACK_BYTES);
    const int error = pthread_create(&errand->thread, &attributes, thread_main, errand);
    pthread_attr_destroy(&attributes);
    if (!error) {
        pthread_setname_np(errand->thread, name);
        return errand;
    }
    free(errand);
    return NULL;
}

void ct_errand_start(struct ct_errand *errand)
{
    pthread_mutex_lock(&errand->mutex);
    atomic_store_explicit(&errand->is_done, false, memory_order_relaxed);
    errand->is_wanted = true;
    pthread_cond_broadcast(&errand->cond);
    pthread_mutex_unlock(&errand->mutex);
}

bool ct_errand_is_done(const struct ct_errand *errand)
{
    return atomic_load_explicit(&errand->is_done, memory_order_acquire);
}

int ct_errand_wait(struct ct_errand *errand)
{
    pthread_mutex_lock(&errand->mutex);
    while (!errand->is_done)
        pthread_cond_wait(&errand->cond, &errand->mutex);
    pthread_mutex_unlock(&errand->mutex);
    return errand->result;
}

bool ct_errand_is_own(const struct ct_errand *errand)
{
    return errand && pthread_equal(pthread_self(), errand->thread);
}

void ct_errand_destroy(struct ct_errand *errand)
{
    if (!errand)
        return;
    pthread_mutex_lock(&errand->mutex);
    errand->stop = true;
    pthread_cond_broadcast(&errand->cond);
    pthread_mutex_unlock(&errand->mutex);
    pthread_join(errand->thread, NULL);
    pthread_mutex_destroy(&errand->mutex);
    pthread_cond_destroy(&errand->cond);
    free(errand);
}
