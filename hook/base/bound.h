/* Limits how much address space and shared memory the hook takes from the program. SECURITY.md lists all
 * resources that the hook uses. */
#ifndef CT_BOUND_H
#define CT_BOUND_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

/* Maps the file `fd` as shared memory, or zeroed private pages if `fd` is -1. If `at` is not NULL, maps at
 * that address, replacing any existing mapping. Without `at`, also fails if the hook's mappings would exceed
 * a sixteenth of the address limit in total, or if this mapping would exceed a sixteenth of the remaining
 * addresses. Returns NULL with errno set on failure, and leaves errno unchanged on success. */
void *ct_bound_map(void *at, size_t bytes, int protection, int fd, off_t offset);
/* Moves a mapping placed by ct_bound_map() to the address `to`, replacing the mapping there. Returns false on
 * failure. */
bool ct_bound_move(void *memory, size_t bytes, void *to);
/* Unmaps a mapping placed by ct_bound_map(). */
void ct_bound_unmap(void *memory, size_t bytes);

/* Returns zeroed pages for the hook's data about a program, or NULL if out of memory. If system calls are not
 * allowed, takes the pages from the reserve. */
void *ct_pages_map(size_t bytes);
/* Unmaps pages from ct_pages_map() that no other thread has seen. Leaks them if system calls are not
 * allowed. */
void ct_pages_unmap(void *pages, size_t bytes);

/* CT_BOUND_FIRST means that nothing can be traced without the memory, and CT_BOUND_MORE that tracing can
 * continue without it. */
enum ct_bound_need { CT_BOUND_FIRST, CT_BOUND_MORE };
/* True if `bytes` bytes may be allocated in the file system of `fd`. `whole` is the current size in bytes of
 * the ring that needs them. */
bool ct_bound_has_room(int fd, uint64_t bytes, uint64_t whole, enum ct_bound_need need);
/* Returns 0 if the machine's memory and the process's control group limits allow the allocation (memory.c).
 * Otherwise, returns ENOSPC for the machine's memory, or ENOMEM for a control group's limit. Requires the
 * process lock. */
int ct_bound_memory(uint64_t bytes, uint64_t whole);

#endif
