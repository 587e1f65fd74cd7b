/* The one place behind the merge: takes calls and what sources know of processes, numbers where calls come
 * from, keeps sums by function, status and duration, and has the store write all of it. Sources have no other
 * way to a trace, and a recording holds what came this way (recorder.h).
 *
 * Used by one thread. A batch: begin, then any of the rest, then commit; after an error, roll back. Functions
 * return 0, or -1 when the store has failed and said why. */
#ifndef CT_LEDGER_H
#define CT_LEDGER_H

#include "account.h"
#include "merge.h"
#include "store.h"

struct ct_recorder;

struct ct_ledger {
    struct ct_store *store;
    struct ct_recorder *recorder; /* NULL without one */
    struct ct_merge merge;        /* the owner of a batch begins it, and adds streams */
    uint32_t numbering;           /* the store's numbering in this batch */
};

/* ct_ledger_rollback() undoes what was taken since begin. The owners of accounts, callees and callers take
 * them back themselves, with ct_account_revert() and by function_id = 0. */
int ct_ledger_begin(struct ct_ledger *ledger);
int ct_ledger_commit(struct ct_ledger *ledger);
void ct_ledger_rollback(struct ct_ledger *ledger);
/* Ends the recording too, with what was told behind the last commit. */
void ct_ledger_finish(struct ct_ledger *ledger);

/* Takes what the merge yields, `rows_max` calls at most; *rows says how many. */
int ct_ledger_calls(struct ct_ledger *ledger, uint64_t rows_max, uint64_t *rows);

/* Makes the rows of a process where it has none, or numbers are new. */
int ct_ledger_register(struct ct_ledger *ledger, struct ct_account *account,
                       const struct ct_process_facts *facts);
/* Returns whether the account was registered since the store's numbers began anew. */
static inline bool ct_account_is_registered(const struct ct_ledger *ledger, const struct ct_account *account)
{
    return account->generation == ct_store_generation(ledger->store);
}
/* Sums of this batch are void. */
void ct_account_revert(struct ct_account *account);
void ct_account_finish(struct ct_account *account);

/* Gives the callee its function_id, 0 where the trace has none of that name; the other one makes it. A
 * failure breaks the batch off. */
void ct_ledger_find_function(struct ct_ledger *ledger, struct ct_callee *callee,
                             const struct ct_function_name *name);
void ct_ledger_make_function(struct ct_ledger *ledger, struct ct_callee *callee,
                             const struct ct_function_name *name);

/* Writes the sums of a thread, and that its records were read up to `position`; finds how far that was. */
int ct_ledger_save_lane(struct ct_ledger *ledger, const struct ct_account *account, struct ct_caller *caller,
                        uint32_t lane, uint64_t position);
void ct_ledger_sum_up(struct ct_ledger *ledger, struct ct_caller *caller);
int ct_ledger_find_lane(struct ct_ledger *ledger, const struct ct_account *account, struct ct_caller *caller,
                        uint32_t lane, uint64_t *position);
/* Forgets what is known of the thread's sites, and frees the memory for it. */
void ct_caller_rest(struct ct_caller *caller);

/* Writes the sums of a process's functions. */
int ct_ledger_save_sums(struct ct_ledger *ledger, struct ct_account *account);
int ct_ledger_save_loss(struct ct_ledger *ledger, const struct ct_loss_facts *facts);
int ct_ledger_find_losses(struct ct_ledger *ledger, const struct ct_account *account, uint32_t lane,
                          uint32_t tenancy, uint64_t *lost);
int ct_ledger_save_unsent(struct ct_ledger *ledger, const struct ct_unsent_facts *facts);
/* Open calls: all that there were are closed, then each. */
int ct_ledger_clear_open_calls(struct ct_ledger *ledger, const struct ct_account *account);
int ct_ledger_open_call(struct ct_ledger *ledger, struct ct_caller *caller, uint32_t depth,
                        const struct ct_callee *callee, uint64_t start_ns);
/* `state`: exited, killed or detached; or left, CT_STATE_LEFT, of a process that runs on and whose calls from
 * `ended_ns` on are not collected. */
#define CT_STATE_LEFT "left"
int ct_ledger_end_process(struct ct_ledger *ledger, int64_t process_id, uint64_t ended_ns, const char *state);
/* Tells what becomes of a process that the trace has as running. */
enum ct_going { CT_GOING_ENDED, CT_GOING_ON, CT_GOING_UNCOLLECTED };
/* Ends those that the trace has as running and that have ended: how they went is not known. Those that run
 * and are not collected from are left, since `left_ns`. *running says how many run, where all were asked;
 * NULL is fine. May be outside of a batch. */
int ct_ledger_end_orphans(struct ct_ledger *ledger, uint64_t now_ns, uint64_t left_ns,
                          enum ct_going (*going)(const struct ct_running *running, const void *data),
                          const void *data, uint64_t *running);
int ct_ledger_set_meta(struct ct_ledger *ledger, const char *key, int64_t value);

#endif
