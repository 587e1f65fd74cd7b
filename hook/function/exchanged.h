/* Entries in other objects' tables that the hook has replaced with the addresses of its stubs. If a visit has
 * loaded the hook (proto/visit.h), the hook records the entries, so that it can restore them. */
#ifndef CT_EXCHANGED_H
#define CT_EXCHANGED_H

#include <stdbool.h>
#include <stddef.h>

/* Pages that the loader has protected. */
struct ct_sealed {
    void *from; /* NULL: no pages */
    size_t bytes;
};

/* Call ct_exchanged_begin() before writing entries, and ct_exchanged_end() afterwards. Several threads may
 * write at the same time. */
void ct_exchanged_begin(void);
void ct_exchanged_end(void);
/* Called in the child of a fork, where no other thread is writing. */
void ct_exchanged_fork_child(void);
/* Records that `ours` is about to replace `before` at `where`. `sealed` is the range of protected pages
 * around the entry, or NULL if the entry is writable. Returns false if there is no room for the record, in
 * which case the entry must not be changed. */
bool ct_exchanged_note(void **where, void *before, void *ours, const struct ct_sealed *sealed);

/* Restores the entries that still lead to the hook, and forgets all entries. Returns false and changes
 * nothing if another thread is writing entries or unloading an object. Takes no lock and is therefore safe in
 * a signal handler. */
bool ct_exchanged_put_back(void);

#endif
