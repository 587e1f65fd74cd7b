/*
 * sim_driver.c: the driver as a whole, with its initialisation, its one lock, its clock, its handling of
 * forks, and the functions that concern the driver itself.
 */
#include "sim_op.h"

#include <errno.h>
#include <sys/prctl.h>
#include <time.h>

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t changed = PTHREAD_COND_INITIALIZER;

void driver_lock(void)
{
    pthread_mutex_lock(&lock);
}

void driver_release(void)
{
    pthread_mutex_unlock(&lock);
}

void driver_wait(void)
{
    pthread_cond_wait(&changed, &lock);
}

void driver_broadcast(void)
{
    pthread_cond_broadcast(&changed);
}

/* The lock is held while the process forks, so that all objects are consistent in the child. */
void driver_before_fork(void)
{
    driver_lock();
}

void driver_after_fork_parent(void)
{
    driver_release();
}

void driver_after_fork_child(void)
{
    lock = (pthread_mutex_t)PTHREAD_MUTEX_INITIALIZER;
    changed = (pthread_cond_t)PTHREAD_COND_INITIALIZER;
    worker_after_fork();
}

int64_t clock_now_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

/* By default, Linux may wake a sleeping thread 50 us late, which is longer than many GPU kernels take. */
void clock_sleep_until_ns(int64_t until_ns)
{
    if (until_ns <= clock_now_ns())
        return;
    const int slack = prctl(PR_GET_TIMERSLACK);
    prctl(PR_SET_TIMERSLACK, 1);
    const struct timespec until = { .tv_sec = until_ns / 1000000000, .tv_nsec = until_ns % 1000000000 };
    while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &until, NULL) == EINTR)
        ;
    prctl(PR_SET_TIMERSLACK, slack);
}

CUresult sim_cuInit(unsigned int flags)
{
    if (entry_is_forked())
        return CUDA_ERROR_NOT_INITIALIZED;
    if (flags != 0)
        return CUDA_ERROR_INVALID_VALUE;
    ioctls_of_init();
    entry_initialised();
    return CUDA_SUCCESS;
}

CUresult sim_cuDriverGetVersion(int *version)
{
    if (!version)
        return CUDA_ERROR_INVALID_VALUE;
    *version = SIM_DRIVER_VERSION;
    return CUDA_SUCCESS;
}
