/* Records everything passed to a ledger, in the format of dump.h, so that it can be stored again elsewhere.
 * The input of the sources is not copied. Calls are therefore in their final order, with their final times,
 * and in one form for all sources.
 *
 * A batch is kept in memory until it is committed. If the file cannot be written, the recording ends after
 * its last complete batch, with a line in the log. A NULL recorder records nothing. */
#ifndef CT_RECORDER_H
#define CT_RECORDER_H

#include "account.h"
#include "call.h"
#include "dump.h"
#include "message.h"

struct ct_recorder;

/* Opens the file, or creates it with access only for the owner. Refuses a file that is not an earlier
 * recording of ours. Returns 0, or -1 with a sentence in `message`. */
int ct_recorder_create(const char *path, const char *session, struct ct_recorder **recorder,
                       char message[CT_MESSAGE_BYTES]);
/* Overwrites the file. */
int ct_recorder_begin(struct ct_recorder *recorder, char message[CT_MESSAGE_BYTES]);
/* Removes a file that was created but not begun. */
void ct_recorder_destroy(struct ct_recorder *recorder);

/* Write the events since the last commit, or discard them. */
void ct_recorder_commit(struct ct_recorder *recorder, uint64_t until_ns);
void ct_recorder_forget(struct ct_recorder *recorder);

/* Records an event with its body and as many texts as its type has. */
void ct_recorder_event(struct ct_recorder *recorder, enum ct_dump_type type, const void *body,
                       const char *const *text);
/* Records a thread before its first event. If `name` is NULL, does so only if the thread has a number and was
 * not recorded since the last rollback. */
void ct_recorder_thread(struct ct_recorder *recorder, struct ct_caller *caller, const char *name);
/* Take what ct_store_call(), ct_store_note() and ct_store_fact() take, in the same order. */
void ct_recorder_call(struct ct_recorder *recorder, const struct ct_call *call);
void ct_recorder_fact(struct ct_recorder *recorder, const struct ct_fact *fact);

#endif
