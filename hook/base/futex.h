/* Waits for changes of a word, within the process. For locks, see lock.h. */
#ifndef CT_FUTEX_H
#define CT_FUTEX_H

#include <linux/futex.h>
#include <stdatomic.h>
#include <stdint.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

/* Wakes all threads that wait for the word. */
static inline void ct_futex_wake(_Atomic uint32_t *word)
{
    syscall(SYS_futex, word, FUTEX_WAKE | FUTEX_PRIVATE_FLAG, INT32_MAX, NULL, NULL, 0);
}

/* Waits while the word has the value, but at most `ns` nanoseconds. May return early. */
static inline void ct_futex_wait(_Atomic uint32_t *word, uint32_t value, uint64_t ns)
{
    const struct timespec most = { .tv_sec = (time_t)(ns / 1000000000), .tv_nsec = (long)(ns % 1000000000) };
    syscall(SYS_futex, word, FUTEX_WAIT | FUTEX_PRIVATE_FLAG, value, &most, NULL, 0);
}

#endif
