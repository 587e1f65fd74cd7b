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

/* Record what the ledger is told by the functions of ledger.h. */
void ct_recorder_process(struct ct_recorder *recorder, const struct ct_account *account,
                         const struct ct_process_facts *facts);
void ct_recorder_function(struct ct_recorder *recorder, int64_t function_id,
                          const struct ct_function_name *name);
void ct_recorder_thread(struct ct_recorder *recorder, struct ct_caller *caller, const char *name);
void ct_recorder_call(struct ct_recorder *recorder, const struct ct_call *call);
void ct_recorder_lane(struct ct_recorder *recorder, struct ct_caller *caller, uint32_t lane,
                      uint64_t position);
void ct_recorder_loss(struct ct_recorder *recorder, const struct ct_account *account,
                      const struct ct_loss_facts *facts);
void ct_recorder_unsent(struct ct_recorder *recorder, const struct ct_account *account, uint32_t entry,
                        int64_t function_id, const struct ct_unsent_facts *facts);
void ct_recorder_nothing_open(struct ct_recorder *recorder, const struct ct_account *account);
void ct_recorder_open(struct ct_recorder *recorder, struct ct_caller *caller, uint32_t depth,
                      int64_t function_id, uint64_t start_ns);
void ct_recorder_end(struct ct_recorder *recorder, int64_t process_id, uint64_t ended_ns, const char *state);
void ct_recorder_meta(struct ct_recorder *recorder, const char *key, int64_t value);

#endif
