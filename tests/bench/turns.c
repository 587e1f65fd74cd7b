/* A hook that handles calls in three ways, which take turns within one process, a block at a time. In one
 * turn, calls are recorded as usual. In another turn, calls are only timed by two reads of the processor's
 * counter, which is the cheapest way to measure a duration. In the third turn, calls are only passed on. This
 * file replaces hook/call/entry.c and wrap.c. Those two files are compiled with renamed functions, and record
 * the calls in the recording turn, so that calls take the same path up to this file in every turn. A thread's
 * first call and the first call to each function take the slow path, and are always recorded. */
#include "turns.h"

#include "clock.h"
#include "producer.h"
#include "trampoline.h"
#include "wrapper.h"

#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

/* The file's page is mapped over this variable, so that turns_x86_64.S needs no register to read it. */
union turn ct_bench_turn = { .way = TURN_TRACED };

__attribute__((constructor)) static void map_file(int argc, char **argv, char **environment)
{
    static const char variable[] = TURN_FILE_ENV "=";
    (void)argc, (void)argv;
    for (; environment && *environment; environment++) {
        if (strncmp(*environment, variable, sizeof(variable) - 1) != 0)
            continue;
        const int fd = open(*environment + sizeof(variable) - 1, O_RDONLY | O_CLOEXEC);
        if (fd < 0 || mmap(&ct_bench_turn, sizeof(ct_bench_turn), PROT_READ, MAP_SHARED | MAP_FIXED, fd, 0) ==
                          MAP_FAILED)
            __builtin_trap();
        close(fd);
    }
}

/* Volatile, so that the compiler does not optimize the subtraction away. */
static __thread volatile uint64_t took;
/* Marks a frame whose call is timed in this file. */
static struct ct_producer timed_here;

struct ct_target ct_enter(struct ct_frame *frame)
{
    const struct ct_row *row = &ct_rows[frame->row];
    const uint32_t way = ct_bench_turn.way;
    if (way >= TURN_TRACED || !ct_self->lane || !atomic_load_explicit(&row->enter_id, memory_order_acquire))
        return traced_enter(frame);
    if (way == TURN_PASSED)
        return (struct ct_target){ row->real, CT_MODE_STRAIGHT };
    frame->producer = &timed_here;
    frame->start = ct_counter_read();
    return (struct ct_target){ row->real, row->stack_words };
}

void ct_leave(struct ct_frame *frame)
{
    if (frame->producer == &timed_here)
        took = ct_counter_read() - frame->start;
    else
        traced_leave(frame);
}

/* Defines a wrapper for functions with these parameters. `arguments` lists six registers, and then words on
 * the stack. */
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

WRAPPER(reads_wrap_plain, (word, word, word, word, word, word), (a, b, c, d, e, f))
WRAPPER(reads_wrap_plain_2, (word, word, word, word, word, word, word, word),
        (a, b, c, d, e, f, stack[0], stack[1]))
WRAPPER(reads_wrap_launch, (word, word, word, word, word, word, word, word, word, word, word),
        (a, b, c, d, e, f, stack[0], stack[1], stack[2], stack[3], stack[4]))
WRAPPER(reads_wrap_launch_ex, (word, word, word, word, word, word), (a, b, c, d, e, f))
