/* Runs checkpoints in parallel with the worker. Copying the write-ahead log into the database takes tens of
 * milliseconds and waits for the disk, while rings fill. Therefore, a separate thread with its own connection
 * copies most of the log. The worker then copies the few remaining pages, after which the log restarts. */
#ifndef CT_CHECKPOINT_H
#define CT_CHECKPOINT_H

#include "store.h"

struct ct_checkpointer;

/* The log is copied when it reaches CT_CHECKPOINT_PAGES pages (16 MiB). In the first second after a copy, it
 * may grow to CT_CHECKPOINT_PAGES_MAX pages (128 MiB), because copying to a disk may be slow. In builds with
 * test points, both limits are small enough for tests to reach. */
#ifdef CT_TEST_POINTS
enum { CT_CHECKPOINT_PAGES = 64, CT_CHECKPOINT_PAGES_MAX = 64 };
#else
enum { CT_CHECKPOINT_PAGES = 4096, CT_CHECKPOINT_PAGES_MAX = 32768 };
#endif

/* Starts the thread. From then on, the thread makes all checkpoints, and the store's commits make none. A
 * checkpoint is made when the log has `pages` pages: CT_CHECKPOINT_PAGES, or less for a bounded store.
 * `store` must outlive the checkpointer. If no thread or connection can be created, returns NULL, and commits
 * keep making checkpoints. */
struct ct_checkpointer *ct_checkpointer_create(struct ct_store *store, uint32_t pages);
/* Call after each commit, on the committing thread. `checkpointer` may be NULL. */
void ct_checkpointer_tend(struct ct_checkpointer *checkpointer);
/* Waits for the thread to finish its work, and frees it. */
void ct_checkpointer_destroy(struct ct_checkpointer *checkpointer);

#endif
