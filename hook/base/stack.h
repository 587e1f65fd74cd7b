/* Properties of the calling thread's stack. When a call is made, all earlier frames at its address or below
 * have ended. */
#ifndef CT_STACK_H
#define CT_STACK_H

#include <stdbool.h>
#include <stdint.h>

/* True if a call at stack address `frame` proves that a signal handler has jumped out of the function whose
 * frame is at stack address `holder`. In a coroutine, a call proves nothing, because the handler may have
 * switched to the coroutine, and may return. If the function's frame has certainly ended, `holder` is 0. */
bool ct_stack_left(uintptr_t holder, uintptr_t frame);

/* True if the calling thread is certainly in no signal handler, in no fork handler, and not within an
 * allocator of the program's that calls the driver, perhaps with a lock held. Only then may the hook
 * allocate memory with malloc(), create threads, or call the loader, since the program itself could do so. A
 * signal handler may have interrupted malloc(), the loader or fork() while this thread held their locks, or
 * without locks if there is only one thread. Returns false if the stack is unknown, as in a coroutine. May be
 * called in any context. */
bool ct_stack_is_plain(void);

#endif
