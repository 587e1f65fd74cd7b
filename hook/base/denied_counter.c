#include "denied_counter.h"

__thread enum ct_counter_access ct_counter_access;
_Atomic bool ct_counter_was_denied;
_Atomic uint64_t ct_counter_last;

void ct_counter_deny(uint64_t now)
{
    atomic_store_explicit(&ct_counter_last, now, memory_order_relaxed);
    ct_counter_access = CT_COUNTER_DENIED;
    atomic_store_explicit(&ct_counter_was_denied, true, memory_order_relaxed);
}
