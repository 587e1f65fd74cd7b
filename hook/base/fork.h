/* Determines which process's memory the calling thread uses. The child of a fork inherits its parent's state
 * if no atfork handlers ran, and the child of vfork() shares its parent's memory. */
#ifndef CT_FORK_H
#define CT_FORK_H

#include "compiler.h"

#include <stdbool.h>
#include <stdint.h>

enum ct_fork_memory { CT_MEMORY_OWN, CT_MEMORY_BORROWED, CT_MEMORY_INHERITED };
enum ct_fork_memory ct_fork_memory(void);
/* Checks with the kernel whether the calling thread uses its parent's memory, as the child of vfork() does.
 * Must be called between ct_system_begin() and ct_system_end(). Does not write to memory, since the parent
 * would see the change. */
bool ct_fork_is_borrower(void);
/* Returns the pid of the process that owns the state in memory. */
int32_t ct_fork_pid(void);

/* Nonzero if the thread has called vfork() (trampoline_<cpu>.S) and may be in the child. FILTERED means that
 * the child has installed a filter. */
extern CT_LOCAL __thread uint32_t ct_vforked;
enum { CT_VFORK_CALLED = 1, CT_VFORK_FILTERED = 2 };

/* Must be called before any other function in this header. */
void ct_fork_begin(void);
/* In the child of a fork, marks the memory as the child's own. */
void ct_fork_forget(void);

#endif
