/* Tells in whose memory the calling thread works: the child of a fork that ran no handlers has its parent's
 * state in it, the child of vfork() its parent's memory itself. */
#ifndef CT_FORK_H
#define CT_FORK_H

#include "compiler.h"

#include <stdbool.h>
#include <stdint.h>

enum ct_fork_memory { CT_MEMORY_OWN, CT_MEMORY_BORROWED, CT_MEMORY_INHERITED };
enum ct_fork_memory ct_fork_memory(void);
/* Asks the kernel whether it is borrowed: between ct_system_begin() and end. It takes and changes
 * nothing of the process's, which would stay behind in its parent. */
bool ct_fork_is_borrower(void);
/* The process that the memory's state is of. */
int32_t ct_fork_pid(void);

/* Set when the thread has called vfork() (trampoline_<cpu>.S), and may be its child; whether that has put a
 * filter on. */
extern CT_LOCAL __thread uint32_t ct_vforked;
enum { CT_VFORK_CALLED = 1, CT_VFORK_FILTERED = 2 };

/* Before all others of these. */
void ct_fork_begin(void);
/* In a child: the memory is its own from now on. */
void ct_fork_forget(void);

#endif
