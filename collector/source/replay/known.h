/* Keeps everything that a recording has defined so far. Finds processes, functions and threads by the IDs
 * that they have in the recorded trace, and holds their current state in the ledger. */
#ifndef CT_KNOWN_H
#define CT_KNOWN_H

#include "dump_file.h"
#include "intern.h"
#include "ledger.h"

/* Entries by key. */
struct ct_known_table {
    struct ct_intern numbers;
    void **entry; /* entry number n is entry[n - 1] */
    size_t count, room;
};

struct ct_known {
    struct ct_known_table processes, segments, functions, threads, rows, callees;
};

void ct_known_init(struct ct_known *known);
void ct_known_finish(struct ct_known *known);

/* Checks an event, and learns its definitions. Returns false if the event refers to something undefined, if
 * it contains a number that is impossible in a trace, or if out of memory. */
bool ct_known_learn(struct ct_known *known, const struct ct_dump_view *view);
/* Passes the definitions of a learned event to the ledger. Returns 0 or -1. */
int ct_known_tell(struct ct_known *known, struct ct_ledger *ledger, const struct ct_dump_view *view);
/* Passes all definitions to the ledger again, because the store's IDs have become invalid. Returns 0 or
 * -1. */
int ct_known_tell_anew(struct ct_known *known, struct ct_ledger *ledger);

/* Return the caller and the callee of a call whose event was learned. */
struct ct_caller *ct_known_thread(const struct ct_known *known, int64_t segment_id, int64_t thread_id);
struct ct_callee *ct_known_callee(const struct ct_known *known, int64_t segment_id, int64_t function_id);

/* ct_known_save() passes the sums of the calls that were taken to the ledger, and ct_known_save_event()
 * passes an event that follows the calls of its frame. Both return 0 or -1. */
int ct_known_save(struct ct_known *known, struct ct_ledger *ledger);
int ct_known_save_event(struct ct_known *known, struct ct_ledger *ledger, const struct ct_dump_view *view);

#endif
