#include "guard.h"

#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <sys/mman.h>
#include <unistd.h>

/* The list is changed under the lock with SIGBUS impossible in between (no guarded memory is touched), and read
 * by the handler of the thread that touched it. Guards are only added and removed by the worker thread, which
 * is also the one that reads guarded memory; the lock serves the tests. */
static struct ct_guard *guards;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static void handle(int number, siginfo_t *info, void *context)
{
    (void)context;
    const uintptr_t fault = (uintptr_t)info->si_addr;
    for (struct ct_guard *guard = guards; guard; guard = guard->next) {
        const uintptr_t begin = (uintptr_t)guard->map;
        if (fault < begin || fault >= begin + guard->bytes)
            continue;
        const uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE);
        if (mmap((void *)(fault & ~(page - 1)), page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED,
                 -1, 0) != MAP_FAILED) {
            guard->poisoned = true;
            return;
        }
    }
    /* Not ours: the default action, as if there were no handler. */
    signal(number, SIG_DFL);
    raise(number);
}

void ct_guard_install(void)
{
    struct sigaction action = { .sa_sigaction = handle, .sa_flags = SA_SIGINFO };
    sigemptyset(&action.sa_mask);
    sigaction(SIGBUS, &action, NULL);
}

void ct_guard_add(struct ct_guard *guard, void *map, size_t bytes)
{
    *guard = (struct ct_guard){ .map = map, .bytes = bytes };
    pthread_mutex_lock(&lock);
    guard->next = guards;
    guards = guard;
    pthread_mutex_unlock(&lock);
}

void ct_guard_remove(struct ct_guard *guard)
{
    pthread_mutex_lock(&lock);
    for (struct ct_guard **link = &guards; *link; link = &(*link)->next) {
        if (*link == guard) {
            *link = guard->next;
            break;
        }
    }
    pthread_mutex_unlock(&lock);
}
