/* The bounds of what the hook takes of the program's own: addresses and shared memory. SECURITY.md has the
 * table of all that it takes. */
#ifndef CT_BOUND_H
#define CT_BOUND_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

/* mmap(), at `at` if that is not NULL, in place of whatever is there: of a file, shared, or of
 * zeroed private pages where `fd` is -1. NULL with errno where there is none, or when the hook would have
 * more than a sixteenth of the program's limit of addresses, or of what is left of it. errno is as it was
 * otherwise. */
void *ct_bound_map(void *at, size_t bytes, int protection, int fd, off_t offset);
/* Moves what ct_bound_map() placed by itself into the place of something that it did. False where that cannot
 * be done. */
bool ct_bound_move(void *memory, size_t bytes, void *to);
/* Unmaps something that ct_bound_map() placed by itself. */
void ct_bound_unmap(void *memory, size_t bytes);

/* Zeroed pages, for what the hook remembers of a program; NULL when there are none. Where no system call may
 * be made, they come from the reserve. */
void *ct_pages_map(size_t bytes);
/* Gives such pages back that nobody else has seen. */
void ct_pages_unmap(void *pages, size_t bytes);

/* Needs that a file system may meet: what tracing cannot do without, or more of what it has already. */
enum ct_bound_need { CT_BOUND_FIRST, CT_BOUND_MORE };
/* True if so many bytes may be taken of the file system that `fd` is on, for something that has `whole` bytes
 * then. */
bool ct_bound_has_room(int fd, uint64_t bytes, uint64_t whole, enum ct_bound_need need);
/* The same of the machine's memory, and of what the control group of the process may have: memory.c. The
 * process lock is held. */
bool ct_bound_has_memory(uint64_t bytes, uint64_t whole);

#endif
