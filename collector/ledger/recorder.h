/* Records everything that is passed to a ledger, in the format of dump.h, so that the recording can be stored
 * elsewhere. A recording does not contain the sources' input. The calls in it are in their final order, with
 * their final times, and have the same form whichever source provided them.
 *
 * A batch is kept in memory until it is committed. If writing to the file fails, the recording ends after its
 * last complete batch, and the failure is logged. A NULL recorder records nothing. */
#ifndef CT_RECORDER_H
#define CT_RECORDER_H

#include "account.h"
#include "call.h"
#include "dump.h"
#include "message.h"

struct ct_recorder;

/* Opens the file, or creates it with access for the owner only. An existing file must belong to this user and
 * be an earlier recording. Returns 0, or -1 with a sentence in `message`. */
int ct_recorder_create(const char *path, const char *session, struct ct_recorder **recorder,
                       char message[CT_MESSAGE_BYTES]);
/* Overwrites the file. */
int ct_recorder_begin(struct ct_recorder *recorder, char message[CT_MESSAGE_BYTES]);
/* Removes a file that was created but not written to. */
void ct_recorder_destroy(struct ct_recorder *recorder);

/* ct_recorder_commit() writes the events since the last commit, and ct_recorder_forget() discards these
 * events. */
void ct_recorder_commit(struct ct_recorder *recorder, uint64_t until_ns);
void ct_recorder_forget(struct ct_recorder *recorder);

/* Records an event with its body and strings. The event's type determines the number of strings. */
void ct_recorder_event(struct ct_recorder *recorder, enum ct_dump_type type, const void *body,
                       const char *const *text);
/* Records a thread before its first event. If `name` is NULL, records the thread only if it has an ID and has
 * not been recorded since the last rollback. */
void ct_recorder_thread(struct ct_recorder *recorder, struct ct_caller *caller, const char *name);
/* These functions take the same arguments as ct_store_call(), ct_store_note() and ct_store_fact(). */
void ct_recorder_call(struct ct_recorder *recorder, const struct ct_call *call);
void ct_recorder_fact(struct ct_recorder *recorder, const struct ct_fact *fact);

#endif
