#include "gpu_last.h"

#include "current.h"
#include "fork.h"
#include "futex.h"
#include "producer.h"
#include "program.h"
#include "symbol.h"
#include "system.h"

#include <errno.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <unistd.h>

static bool is_watched;
static pthread_t watcher;
static _Atomic uint32_t is_over; /* the recording has ended */

int ct_gpu_last_create(pthread_t *thread, void *(*run)(void *))
{
    typedef int create_function(pthread_t *, const pthread_attr_t *, void *(*)(void *), void *);
    create_function *const create = (create_function *)(uintptr_t)ct_symbol_of_library("pthread_create");
    if (!create)
        return ENOSYS;
    const uint64_t before = ct_system_block_signals();
    const int error = create(thread, NULL, run, NULL);
    ct_system_mask_signals(before);
    return error;
}

bool ct_gpu_last_is_alone(void)
{
    if (!ct_system_begin())
        return false;
    const bool is_alone = ct_program_threads(ct_fork_pid()) == 1;
    ct_system_end();
    return is_alone;
}

/* If the first thread called exit() as a system call, the process ends with its status and without exit
 * handlers. Since Linux 6.1, the kernel takes the status of the last thread instead of the first one's. */
static void end_as_first_thread(void)
{
    const int status = ct_program_first_status(ct_fork_pid());
    if (status != 0)
        syscall(SYS_exit_group, status);
}

/* Lets the program's exit handlers run in this thread as in one of the program's. */
static void become_the_programs(void)
{
    ct_self = &ct_dormant;
    ct_system_mask_signals(0);
}

static void *watch(void *unused)
{
    typedef void exit_function(int status);
    (void)unused;
    ct_self = &ct_untraced;
    const uint64_t until_ns = ct_now_ns() + CT_GPU_PATIENCE_NS;
    for (uint64_t now_ns; atomic_load(&is_over) == 0; ct_futex_wait(&is_over, 0, until_ns - now_ns)) {
        now_ns = ct_now_ns();
        if (now_ns < until_ns)
            continue;
        end_as_first_thread();
        become_the_programs();
        exit_function *const end_process = (exit_function *)(uintptr_t)ct_symbol_of_library("exit");
        if (end_process)
            end_process(EXIT_SUCCESS);
    }
    return NULL;
}

void ct_gpu_last_watch(void)
{
    is_watched = is_watched || ct_gpu_last_create(&watcher, watch) == 0;
}

void ct_gpu_last_end(void)
{
    typedef int join_function(pthread_t thread, void **result);
    join_function *const join = (join_function *)(uintptr_t)ct_symbol_of_library("pthread_join");
    atomic_store(&is_over, 1);
    ct_futex_wake(&is_over);
    if (is_watched && join)
        join(watcher, NULL);
    if (!ct_gpu_last_is_alone() || !ct_system_begin())
        return;
    end_as_first_thread();
    become_the_programs();
    ct_system_end();
}
