/* Defines the numbers of the ways that libcudatrace-turns.so can handle calls. */
#ifndef BENCH_TURNS_H
#define BENCH_TURNS_H

/* The environment variable that names a one-page file. The file begins with the number of the current way, as
 * a native 32-bit integer. The number changes only between blocks. If the variable is not set, all calls are
 * recorded. */
#define TURN_FILE_ENV "CUDATRACE_BENCH_TURN"

#define TURN_PASSED 0 /* calls are passed directly to the function */
#define TURN_READS  1 /* two reads of the counter */
#define TURN_TRACED 2

#ifndef __ASSEMBLER__
#include "trampoline.h"
#include "wrapper.h"

#include <stdint.h>

union turn {
    volatile uint32_t way;
    _Alignas(4096) uint8_t page[4096];
};
extern CT_LOCAL union turn ct_bench_turn;

/* Functions of hook/call/entry.c that record a call. For this library, entry.c is compiled with these
 * names. */
struct ct_target traced_enter(struct ct_frame *frame);
void traced_leave(struct ct_frame *frame);

BESIDE_TRAMPOLINES word reads_wrap_plain(word a, word b, word c, word d, word e, word f);
BESIDE_TRAMPOLINES word reads_wrap_plain_2(word a, word b, word c, word d, word e, word f);
BESIDE_TRAMPOLINES word reads_wrap_launch(word a, word b, word c, word d, word e, word f);
BESIDE_TRAMPOLINES word reads_wrap_launch_ex(word a, word b, word c, word d, word e, word f);
#endif

#endif
