/* A recording of all that a ledger is told, as dump.h lays it out, so that it can be stored again elsewhere.
 * It is made here, behind the sources, and not of what they read: calls are in their final order, with their
 * final times, and the same of all sources.
 *
 * A batch is kept in memory until it is committed. Where the file cannot be written the recording ends, with
 * a line in the log, and with its last whole batch. NULL records nothing. */
#ifndef CT_RECORDER_H
#define CT_RECORDER_H

#include "account.h"
#include "call.h"
#include "dump.h"
#include "message.h"

struct ct_recorder;

/* Opens the file, or makes it for nobody else to read; what is no earlier recording of ours is left alone. 0
 * or -1 with a sentence. */
int ct_recorder_create(const char *path, const char *session, struct ct_recorder **recorder,
                       char message[CT_MESSAGE_BYTES]);
/* Writes over what it has. */
int ct_recorder_begin(struct ct_recorder *recorder, char message[CT_MESSAGE_BYTES]);
/* A file that was made, and not begun, goes again. */
void ct_recorder_destroy(struct ct_recorder *recorder);

/* Writes what was told since the last commit, or forgets it. */
void ct_recorder_commit(struct ct_recorder *recorder, uint64_t until_ns);
void ct_recorder_forget(struct ct_recorder *recorder);

/* Records what the ledger is told: the body of the event, and the texts that it has by its type. */
void ct_recorder_event(struct ct_recorder *recorder, enum ct_dump_type type, const void *body,
                       const char *const *text);
/* Records a thread before what it did. `name` NULL: unless this recording knows it since a batch was taken
 * back. */
void ct_recorder_thread(struct ct_recorder *recorder, struct ct_caller *caller, const char *name);
void ct_recorder_call(struct ct_recorder *recorder, const struct ct_call *call);

#endif
