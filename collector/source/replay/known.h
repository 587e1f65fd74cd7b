/* Remembers what a recording has explained so far: processes, functions and threads, by the numbers that the
 * recorded trace gave them, with what the ledger knows them by now. */
#ifndef CT_KNOWN_H
#define CT_KNOWN_H

#include "dump_file.h"
#include "intern.h"
#include "ledger.h"

/* Entries by key. */
struct ct_known_table {
    struct ct_intern numbers;
    void **entry; /* entry[n - 1] is number n */
    size_t count, room;
};

struct ct_known {
    struct ct_known_table processes, segments, functions, threads, callees;
};

void ct_known_init(struct ct_known *known);
void ct_known_finish(struct ct_known *known);

/* Checks an event: that what it names was explained, and its numbers are such as the trace can have. False
 * where it is not so, or without memory. What it explains is known from here on. */
bool ct_known_learn(struct ct_known *known, const struct ct_dump_view *view);
/* Tells the ledger what an event explains that was learned. 0 or -1. */
int ct_known_tell(struct ct_known *known, struct ct_ledger *ledger, const struct ct_dump_view *view);
/* Tells all of it again, since the store's numbers are void. 0 or -1. */
int ct_known_tell_anew(struct ct_known *known, struct ct_ledger *ledger);

/* Return the caller and the callee of a call that was learned. */
struct ct_caller *ct_known_thread(const struct ct_known *known, int64_t segment_id, int64_t thread_id);
struct ct_callee *ct_known_callee(const struct ct_known *known, int64_t segment_id, int64_t function_id);

/* Saves the sums of the calls that were taken; what an event says behind the calls of its frame. 0 or -1. */
int ct_known_save(struct ct_known *known, struct ct_ledger *ledger);
int ct_known_save_event(struct ct_known *known, struct ct_ledger *ledger, const struct ct_dump_view *view);

#endif
