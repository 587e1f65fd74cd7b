/* The hook with two reads of the processor's counter in place of a record: what whoever measures each call's
 * duration pays in a program at least. It stands in for hook/call/entry.c and wrap.c, so that a call comes
 * here on the same way. What those leave to the slow way goes there, and is recorded: the first call of a
 * thread, and of a function. */
#include "clock.h"
#include "producer.h"
#include "trampoline.h"
#include "wrapper.h"

/* Written, so that no compiler leaves out the difference. */
static __thread volatile uint64_t took;
/* The producer of a frame whose call is timed here. */
static struct ct_producer timed_here;

struct ct_target ct_enter(struct ct_frame *frame)
{
    const struct ct_row *row = &ct_rows[frame->row];
    if (CT_UNLIKELY(!ct_self->lane || !atomic_load_explicit(&row->enter_id, memory_order_acquire)))
        return (struct ct_target){ NULL, CT_MODE_SLOW };
    frame->producer = &timed_here;
    frame->start = ct_counter_read();
    return (struct ct_target){ row->real, row->stack_words };
}

void ct_leave(struct ct_frame *frame)
{
    if (CT_LIKELY(frame->producer == &timed_here))
        took = ct_counter_read() - frame->start;
    else
        ct_leave_slow(frame);
}

/* A wrapper of a function with these words on the stack; in C they are parameters as all others. */
#define WRAPPER(name, parameters, arguments)                                                                 \
    word name(word a, word b, word c, word d, word e, word f)                                                \
    {                                                                                                        \
        FOUND_BY_TRAMPOLINE(row, self, place);                                                               \
        (void)self;                                                                                          \
        const word *const stack = stack_words(place);                                                        \
        (void)stack;                                                                                         \
        typedef word function parameters;                                                                    \
        const uint64_t start = ct_counter_read();                                                            \
        const word result = ((function *)(uintptr_t)row->real)arguments;                                     \
        took = ct_counter_read() - start;                                                                    \
        return result;                                                                                       \
    }

WRAPPER(ct_wrap_plain, (word, word, word, word, word, word), (a, b, c, d, e, f))
WRAPPER(ct_wrap_plain_2, (word, word, word, word, word, word, word, word),
        (a, b, c, d, e, f, stack[0], stack[1]))
WRAPPER(ct_wrap_launch, (word, word, word, word, word, word, word, word, word, word, word),
        (a, b, c, d, e, f, stack[0], stack[1], stack[2], stack[3], stack[4]))
WRAPPER(ct_wrap_launch_ex, (word, word, word, word, word, word), (a, b, c, d, e, f))
