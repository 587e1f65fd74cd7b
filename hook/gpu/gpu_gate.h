/* Holds the program's driver calls for a moment, because cuptiFinalize() is unsafe while the driver is being
 * called.
 *
 * A call first appears in its lane's open calls, and then checks the gate. After the gate has been closed,
 * each open call is therefore either waiting at the gate or in progress. Synchronizing calls are not held,
 * because they may take long, and CUPTI may leave during such calls. Queries and functions without a decoder
 * are not held either, because they make no GPU work. */
#ifndef CT_GPU_GATE_H
#define CT_GPU_GATE_H

#include "compiler.h"
#include "producer.h"
#include "rows.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>

extern CT_LOCAL _Atomic uint32_t ct_gpu_gate; /* 0 while the gate is open */

/* Checked in each call, after ct_lane_enter(). The fence keeps the compiler from checking earlier. The
 * acquire pairs with the opening of the gate, so that a call sees the driver as CUPTI has left it. */
static inline bool ct_gpu_gate_is_open(void)
{
    atomic_signal_fence(memory_order_seq_cst);
    return CT_LIKELY(atomic_load_explicit(&ct_gpu_gate, memory_order_acquire) == 0);
}

/* Returns whether a closed gate holds calls of the row's function. Queries of modules may load code. */
static inline bool ct_gpu_gate_holds(const struct ct_row *row)
{
    return row->layer == CT_LAYER_DRIVER && row->category != CT_CATEGORY_sync &&
           row->flags & CT_ROW_DECODED &&
           (row->category == CT_CATEGORY_module || !(row->flags & CT_ROW_ASKS));
}

/* Waits for the gate to open if it holds the row's function, for at most GATE_HOLD_MS while the gate is not
 * used yet. `self` has the call as its innermost open call, or is NULL if the call is in no lane. */
void ct_gpu_gate_wait(const struct ct_row *row, struct ct_producer *self);

/* Called when a thread without a lane begins and ends a call, which is in no lane's open calls. The first
 * function waits like ct_gpu_gate_wait(). */
void ct_gpu_gate_enter_unlaned(const struct ct_row *row);
void ct_gpu_gate_leave_unlaned(const struct ct_row *row);

/* Closes the gate, and waits at most GATE_HOLD_MS until no call is in progress and the GPUs have finished the
 * process's work. `contexts` are the contexts that the process is known to have used. Returns false, with the
 * gate open, if the wait takes too long, or if it cannot be known whether the work is finished. Otherwise,
 * ct_gpu_gate_release() must follow at once. Both are called only by the recording's thread. */
bool ct_gpu_gate_close(void *const contexts[], size_t count);
void ct_gpu_gate_release(void);
/* Opens a gate that is not used yet, so that ct_gpu_gate_close() returns false. May be called in any thread.
 */
void ct_gpu_gate_abort(void);
/* In the child of a fork. */
void ct_gpu_gate_forget(void);

#endif
