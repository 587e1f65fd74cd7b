/* Limits the addresses and the shared memory that the hook takes from the program. SECURITY.md lists all its
 * resources. */
#ifndef CT_BOUND_H
#define CT_BOUND_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

/* Calls mmap() with a shared mapping of `fd`, or zeroed private pages if `fd` is -1. If `at` is not NULL,
 * maps there, over any existing mapping. Returns NULL with errno on failure. Without `at`, also fails if the
 * hook would exceed a sixteenth of the program's address limit, or this mapping a sixteenth of the remaining
 * addresses. Leaves errno unchanged on success. */
void *ct_bound_map(void *at, size_t bytes, int protection, int fd, off_t offset);
/* Moves a mapping placed by ct_bound_map() over another one. Returns false on failure. */
bool ct_bound_move(void *memory, size_t bytes, void *to);
/* Unmaps a mapping placed by ct_bound_map(). */
void ct_bound_unmap(void *memory, size_t bytes);

/* Returns zeroed pages for the hook's data about a program, or NULL if there are none. If system calls are
 * not allowed, takes the pages from the reserve. */
void *ct_pages_map(size_t bytes);
/* Unmaps pages of ct_pages_map() that no other thread has seen. Leaks them if system calls are not
 * allowed. */
void ct_pages_unmap(void *pages, size_t bytes);

/* FIRST: memory required for tracing. MORE: additional memory. */
enum ct_bound_need { CT_BOUND_FIRST, CT_BOUND_MORE };
/* True if that many bytes may be allocated in the file system of `fd`. `whole` is the number of bytes that
 * the growing ring already has. */
bool ct_bound_has_room(int fd, uint64_t bytes, uint64_t whole, enum ct_bound_need need);
/* True if the machine's memory and the limits of the process's control groups allow the allocation
 * (memory.c). Requires the process lock. */
bool ct_bound_has_memory(uint64_t bytes, uint64_t whole);

#endif
