#include "stack.h"

#include "system.h"

#include <signal.h>

/* A signal handler's calls are below the interrupted call on the stack, unless the handler runs on an
 * alternate stack. */
bool ct_stack_left(uintptr_t holder, uintptr_t frame)
{
    stack_t stack;
    if (frame < holder || !ct_system_begin())
        return false;
    const bool left = sigaltstack(NULL, &stack) == 0 && !(stack.ss_flags & SS_ONSTACK);
    ct_system_end();
    return left;
}
