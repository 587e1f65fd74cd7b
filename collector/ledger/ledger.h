/* The only path into a trace. The ledger takes the merged calls and the sources' facts about processes, keeps
 * sums by function, status and duration, and passes everything to the store. A recording contains everything
 * that was passed to the ledger (recorder.h). To read, sources use the store directly.
 *
 * For use by one thread. For each batch, call ct_store_begin(), then any other functions, and finally commit,
 * or roll back after an error. Functions return 0, or -1 with the error set in the store. */
#ifndef CT_LEDGER_H
#define CT_LEDGER_H

#include "account.h"
#include "merge.h"
#include "process_rows.h"
#include "store.h"

struct ct_recorder;

struct ct_ledger {
    struct ct_store *store;
    struct ct_recorder *recorder; /* NULL: no recording */
    struct ct_merge merge;        /* the owner of a batch begins the merge and adds the streams */
};

/* ct_ledger_rollback() undoes everything since ct_store_begin(). After a rollback, the owner of an account
 * calls ct_account_revert(), and the owner of a callee sets function_id to 0. */
int ct_ledger_commit(struct ct_ledger *ledger);
void ct_ledger_rollback(struct ct_ledger *ledger);
/* Frees the ledger's memory, and ends the recording after writing the events since the last commit. */
void ct_ledger_finish(struct ct_ledger *ledger);

/* Takes at most `rows_max` calls from the merge. Sets *rows to the number of calls taken. */
int ct_ledger_calls(struct ct_ledger *ledger, uint64_t rows_max, uint64_t *rows);

/* Creates the rows of a process if it has none, or if the store's IDs have changed. */
int ct_ledger_register(struct ct_ledger *ledger, struct ct_account *account,
                       const struct ct_process_facts *facts);
/* Returns whether the account was registered since the store's IDs last changed. */
static inline bool ct_account_is_registered(const struct ct_ledger *ledger, const struct ct_account *account)
{
    return account->generation == ct_store_generation(ledger->store);
}
/* Discards the sums of this batch. */
void ct_account_revert(struct ct_account *account);
void ct_account_finish(struct ct_account *account);

/* Set the callee's function_id. If the function is not in the trace yet, ct_ledger_find_function() sets
 * function_id to 0, whereas ct_ledger_make_function() adds the function. A failure aborts the batch. */
void ct_ledger_find_function(struct ct_ledger *ledger, struct ct_callee *callee,
                             const struct ct_function_name *name);
void ct_ledger_make_function(struct ct_ledger *ledger, struct ct_callee *callee,
                             const struct ct_function_name *name);

/* Writes a thread's sums. */
void ct_ledger_sum_up(struct ct_ledger *ledger, struct ct_caller *caller);
/* Discards the IDs of sites that are cached for the thread, and frees their memory. */
void ct_caller_rest(struct ct_caller *caller);

/* Passes a fact to the recording and to the store. */
int ct_ledger_save(struct ct_ledger *ledger, const struct ct_fact *fact);
/* Writes the sums of a process's functions. */
int ct_ledger_save_sums(struct ct_ledger *ledger, struct ct_account *account);
/* The state of a process that the trace lists as running. */
enum ct_going { CT_GOING_ENDED, CT_GOING_ON, CT_GOING_UNCOLLECTED };
/* Finds processes that the trace lists as running, but that have ended, and records them as exited, although
 * they may have been killed. If a process is still running, but its calls are not collected, sets its state
 * to CT_STATE_LEFT, as of `left_ns`. On success, sets *running to the number of processes still running.
 * `running` may be NULL. Can be called outside a batch. */
int ct_ledger_end_orphans(struct ct_ledger *ledger, uint64_t now_ns, uint64_t left_ns,
                          enum ct_going (*going)(const struct ct_running *running, const void *data),
                          const void *data, uint64_t *running);

#endif
