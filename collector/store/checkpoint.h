/* Checkpoints beside the worker: copying the write-ahead log into the database takes tens of milliseconds,
 * and waits for the disk, while rings fill. The bulk is copied by a thread with a connection of its own,
 * behind which the worker has little left to copy, and with that the log begins anew. */
#ifndef CT_CHECKPOINT_H
#define CT_CHECKPOINT_H

#include "store.h"

struct ct_checkpointer;

/* Pages of the log at which it is copied: 16 MiB; or more where that was less than a second ago, up to 128
 * MiB, since a disk may take its time for each. Where there are test points, so few that tests come to them.
 */
#ifdef CT_TEST_POINTS
enum { CT_CHECKPOINT_PAGES = 64, CT_CHECKPOINT_PAGES_MAX = 64 };
#else
enum { CT_CHECKPOINT_PAGES = 4096, CT_CHECKPOINT_PAGES_MAX = 32768 };
#endif

/* Starts the thread, and takes the checkpoints over from the store's commits: one when the log has so many
 * pages, CT_CHECKPOINT_PAGES or, of a store that is bounded, less. `store` must outlive it. NULL without a
 * thread or a connection: the commits then go on to make checkpoints. */
struct ct_checkpointer *ct_checkpointer_create(struct ct_store *store, uint32_t pages);
/* To be called by the thread that commits, behind each commit. NULL is fine. */
void ct_checkpointer_tend(struct ct_checkpointer *checkpointer);
/* Joins the thread, which may be at work until then. */
void ct_checkpointer_destroy(struct ct_checkpointer *checkpointer);

#endif
