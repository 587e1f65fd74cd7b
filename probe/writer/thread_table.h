/* The threads of a probed process, by thread id, and their lanes. */
#ifndef CT_PROBE_THREAD_TABLE_H
#define CT_PROBE_THREAD_TABLE_H

#include "calls.h"
#include "thread.h"

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

struct ct_thread {
    struct ct_thread *next;
    struct ct_thread_identity identity;
    uint32_t index;               /* index in the channel's map of threads, CT_PROBE_THREADS for none */
    struct ct_producer *producer; /* NULL: it has no lane */
    bool is_hooks;                /* the hook has recorded the call that began at this moment: */
    uint32_t hooks_start;         /* (CT_PROBE_DOUBT) */
    uint64_t last_end;            /* of its last record */
};

enum { CT_THREAD_BUCKETS = 1024 };
struct ct_thread_table {
    struct ct_thread **bucket;
};

/* Returns false if out of memory. */
bool ct_thread_table_begin(struct ct_thread_table *table);
/* Returns the thread, or NULL if it is unknown. */
struct ct_thread *ct_thread_table_find(const struct ct_thread_table *table, uint32_t tid);
/* Returns the thread, after adding it without a name if it is unknown. Returns NULL if out of memory. */
struct ct_thread *ct_thread_table_get(struct ct_thread_table *table, uint32_t tid);
/* Removes the thread, if it is known. */
void ct_thread_table_remove(struct ct_thread_table *table, uint32_t tid);
/* Calls `act` for each thread. */
void ct_thread_table_each(const struct ct_thread_table *table,
                          void (*act)(struct ct_thread *thread, void *data), void *data);
/* If this writer replaces another writer of the process `pid`, adds the threads that made calls before this
 * writer started. `shared` is the channel's map of threads. */
void ct_thread_table_adopt(struct ct_thread_table *table,
                           const struct ct_probe_thread shared[CT_PROBE_THREADS], pid_t pid);

#endif
