/* Entries of other objects' tables into which the hook has written its stubs. After a visit (proto/visit.h)
 * the hook records them, so that it can restore them. */
#ifndef CT_EXCHANGED_H
#define CT_EXCHANGED_H

#include <stdbool.h>
#include <stddef.h>

/* Pages that the loader has protected. */
struct ct_sealed {
    void *from; /* NULL: no pages */
    size_t bytes;
};

/* Enclose writes to entries. Several threads may write at the same time. */
void ct_exchanged_begin(void);
void ct_exchanged_end(void);
/* In a fork's child, where no other thread writes. */
void ct_exchanged_fork_child(void);
/* Records that `ours` is about to replace `before` at `where`. `sealed` is the range of protected pages
 * around it, NULL for a writable entry. Returns false if there is no room to record it. The entry must then
 * stay. */
bool ct_exchanged_note(void **where, void *before, void *ours, const struct ct_sealed *sealed);

/* Restores the entries that still lead to the hook, and forgets all. Returns false and changes nothing while
 * another thread writes entries or unloads an object. Takes no lock, so it is safe in a signal handler. */
bool ct_exchanged_put_back(void);

#endif
