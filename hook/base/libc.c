/* Calls the C library's functions at the addresses in its own symbol table (libc.h). */
#include "libc.h"

#include "compiler.h"
#include "denied_counter.h"
#include "machine.h"
#include "symbol.h"

#include <stdarg.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

static void *find_once(void *_Atomic *place, const char *name)
{
    void *found = atomic_load_explicit(place, memory_order_relaxed);
    if (CT_UNLIKELY(!found)) { /* any thread may be the first; all write the same value */
        found = ct_symbol_in_libc(name);
        atomic_store_explicit(place, found, memory_order_relaxed);
    }
    return found;
}

#define TAKEN(name)                                                                                          \
    ({                                                                                                       \
        static void *_Atomic place;                                                                          \
        (__typeof__(&name))(uintptr_t)find_once(&place, #name);                                              \
    })

/* The clock that is read without the processor's counter. */
static clockid_t coarse(clockid_t clock)
{
    return clock == CLOCK_MONOTONIC ? CLOCK_MONOTONIC_COARSE : CLOCK_REALTIME_COARSE;
}

/* Its stack frame stays out of clock_gettime(), which each reading of the clock calls. */
static __attribute__((noinline, cold)) void *find_clock(void)
{
    struct ct_object vdso;
    void *found = NULL;
    if (ct_symbol_object("linux-vdso.so.1", &vdso))
        found = ct_symbol_in(&vdso, CT_VDSO_CLOCK, NULL);
    return found ? found : ct_symbol_in_libc("clock_gettime");
}

/* Calls the kernel's function (vdso(7)) directly if there is one. With a valid clock, it cannot fail. */
int clock_gettime(clockid_t clock, struct timespec *time)
{
    static void *_Atomic place;
    void *found = atomic_load_explicit(&place, memory_order_relaxed);
    if (CT_UNLIKELY(!found)) {
        found = find_clock();
        atomic_store_explicit(&place, found, memory_order_relaxed);
    }
    if (CT_UNLIKELY(ct_counter_is_denied()))
        clock = coarse(clock);
    return ((__typeof__(&clock_gettime))(uintptr_t)found)(clock, time);
}

int dladdr(const void *address, Dl_info *info)
{
    return TAKEN(dladdr)(address, info);
}

int dlinfo(void *handle, int request, void *answer)
{
    return TAKEN(dlinfo)(handle, request, answer);
}

/* musl has no namespaces. */
void *dlmopen(Lmid_t namespace, const char *path, int flags)
{
    __typeof__(&dlmopen) next = TAKEN(dlmopen);
    return next ? next(namespace, path, flags) : NULL;
}

void *dlopen(const char *path, int flags)
{
    return TAKEN(dlopen)(path, flags);
}

int posix_fallocate(int fd, off_t offset, off_t bytes)
{
    return TAKEN(posix_fallocate)(fd, offset, bytes);
}

int pthread_key_create(pthread_key_t *key, void (*destroy)(void *))
{
    return TAKEN(pthread_key_create)(key, destroy);
}

int pthread_mutex_lock(pthread_mutex_t *mutex)
{
    return TAKEN(pthread_mutex_lock)(mutex);
}

int pthread_mutex_unlock(pthread_mutex_t *mutex)
{
    return TAKEN(pthread_mutex_unlock)(mutex);
}

int pthread_setcancelstate(int state, int *before)
{
    return TAKEN(pthread_setcancelstate)(state, before);
}

int pthread_setcanceltype(int type, int *before)
{
    return TAKEN(pthread_setcanceltype)(type, before);
}

int pthread_setspecific(pthread_key_t key, const void *value)
{
    return TAKEN(pthread_setspecific)(key, value);
}

long sysconf(int name)
{
    return TAKEN(sysconf)(name);
}

#undef snprintf /* a macro in a fortified build */
int snprintf(char *text, size_t bytes, const char *format, ...)
{
    va_list list;
    va_start(list, format);
    const int length = TAKEN(vsnprintf)(text, bytes, format, list);
    va_end(list);
    return length;
}

/* Some shells define their own getenv(). */
char *getenv(const char *name)
{
    const size_t bytes = strlen(name);
    for (char **variable = environ; variable && *variable; variable++) {
        if (strncmp(*variable, name, bytes) == 0 && (*variable)[bytes] == '=')
            return *variable + bytes + 1;
    }
    return NULL;
}
