#include "shapes.h"

#include "decode_image.h"
#include "decoded.h"
#include "rows.h"
#include "target_memory.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

/* In a rehearsal, argument `i` is (i + 1) << ARGUMENT_SHIFT | low. A read at that address, or slightly
 * above it, is a read through the argument. If a decoder expects a count, an enumeration or a flag, it uses
 * only the lower part, `low`. */
enum { ARGUMENT_SHIFT = 40, ARGUMENTS = CT_REGISTER_ARGS + 16 };

struct span {
    uint64_t begin, end; /* offsets from the address in the argument */
    bool is_text;
};

struct rehearsal {
    uint64_t low;  /* lowest bits of the arguments */
    uint32_t word; /* this word fills the memory that they point to */
    struct span span[CT_PROBE_ARGUMENTS];
    bool is_urgent;
};

/* Notes a read. Returns false if there is no place for it in a record, so that decoders stop reading an
 * array. */
static bool note(enum ct_target_access access, uint64_t address, void *to, uint64_t bytes, void *data)
{
    struct rehearsal *rehearsal = data;
    rehearsal->is_urgent |= access == CT_TARGET_BULK;
    if (access == CT_TARGET_BULK)
        return false;
    const uint64_t argument = (address >> ARGUMENT_SHIFT) - 1;
    const uint64_t begin = address - ((argument + 1) << ARGUMENT_SHIFT | rehearsal->low);
    if (argument >= CT_PROBE_ARGUMENTS || begin > CT_PROBE_READ_BYTES || bytes > CT_PROBE_READ_BYTES - begin)
        return false;
    struct span *span = &rehearsal->span[argument];
    if (span->end == 0)
        *span = (struct span){ .begin = begin, .end = begin };
    span->begin = begin < span->begin ? begin : span->begin;
    span->end = begin + bytes > span->end ? begin + bytes : span->end;
    span->is_text |= access == CT_TARGET_TEXT;
    for (uint64_t i = 0; to && i < bytes; i++)
        ((uint8_t *)to)[i] = (uint8_t)(rehearsal->word >> 8 * ((begin + i) % sizeof(rehearsal->word)));
    return true;
}

static void rehearse(struct rehearsal *rehearsal, uint32_t row, uint64_t low, uint32_t word)
{
    uint64_t arguments[ARGUMENTS];
    struct ct_frame frame = { .stack_args = arguments + CT_REGISTER_ARGS, .row = row };
    for (uint64_t i = 0; i < ARGUMENTS; i++)
        arguments[i] = (i + 1) << ARGUMENT_SHIFT | low;
    memcpy(frame.args, arguments, sizeof(frame.args));
    rehearsal->low = low;
    rehearsal->word = word;
    ct_target_rehearse(note, rehearsal);
    ct_decode(&frame);
}

static uint32_t bytes_of(const struct span *span)
{
    return (uint32_t)(span->end - span->begin);
}

/* Returns the argument that follows `last`. Arguments are ordered by the length of their reads, and by
 * position if the lengths are equal. Returns CT_PROBE_ARGUMENTS if there is none. To get the first argument,
 * pass CT_PROBE_ARGUMENTS as `last`. */
static uint8_t next_longer(const struct rehearsal *rehearsal, uint8_t last)
{
    uint8_t next = CT_PROBE_ARGUMENTS;
    for (uint8_t i = 0; i < CT_PROBE_ARGUMENTS; i++) {
        const uint32_t bytes = bytes_of(&rehearsal->span[i]);
        const uint32_t after = last < CT_PROBE_ARGUMENTS ? bytes_of(&rehearsal->span[last]) : 0;
        if ((bytes > after || (bytes == after && bytes > 0 && i > last)) &&
            (next == CT_PROBE_ARGUMENTS || bytes < bytes_of(&rehearsal->span[next])))
            next = i;
    }
    return next;
}

/* Places the reads one after another, with the longest (arrays) at the end. There is room for all reads of
 * the present decoders. */
static void lay_out(struct ct_probe_shape *shape, const struct rehearsal *rehearsal)
{
    uint32_t at = 0, last_at = 0, longest = 0;
    for (uint8_t i = next_longer(rehearsal, CT_PROBE_ARGUMENTS);
         i < CT_PROBE_ARGUMENTS && shape->reads < CT_PROBE_READS &&
         at <= CT_PROBE_LARGE_BYTES - CT_PROBE_READ_BYTES - 1;
         i = next_longer(rehearsal, i)) {
        const struct span *span = &rehearsal->span[i];
        longest = bytes_of(span);
        last_at = at;
        shape->read[shape->reads++] = (struct ct_probe_read){
            .argument = i,
            .is_text = span->is_text,
            .offset = (uint16_t)span->begin,
            .bytes = (uint16_t)longest,
            .at = (uint16_t)at,
        };
        at += (longest + 7) / 8 * 8;
    }
    const bool is_small =
        longest <= CT_PROBE_SMALL_READ_BYTES && last_at < CT_PROBE_SMALL_BYTES - CT_PROBE_SMALL_READ_BYTES;
    shape->kind = !shape->reads ? CT_SHAPE_VALUES : is_small ? CT_SHAPE_SMALL : CT_SHAPE_LARGE;
}

static void find_shape(struct ct_probe_shape *shape, uint32_t row)
{
    /* The values of arguments (such as counts and attributes) and of memory for the rehearsals. Together,
     * they make a decoder read everything that it can read. */
    static const uint32_t lows[] = { 1, 5 },
                          words[] = { 0, 1, CT_CUBIN_MAGIC, CT_FATBIN_MAGIC, CT_WRAPPER_MAGIC };
    enum { LOWS = sizeof(lows) / sizeof(lows[0]), WORDS = sizeof(words) / sizeof(words[0]) };
    struct rehearsal rehearsal = { 0 };
    if (!(ct_rows[row].flags & CT_ROW_DECODED))
        return;
    for (size_t i = 0; i < LOWS * WORDS; i++)
        rehearse(&rehearsal, row, lows[i / WORDS], words[i % WORDS]);
    lay_out(shape, &rehearsal);
    shape->is_urgent = rehearsal.is_urgent;
    shape->stack_words =
        ct_rows[row].stack_words < CT_PROBE_STACK ? ct_rows[row].stack_words : CT_PROBE_STACK;
}

const struct ct_probe_shape *ct_shapes_find(void)
{
    struct ct_probe_shape *shapes =
        mmap(NULL, sizeof(*shapes) * CT_ROW_COUNT, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (shapes == MAP_FAILED)
        return NULL;
    /* Decoders store facts about the objects that they see. The rehearsals run in a child process, so that
     * facts from them are not kept. */
    const pid_t child = fork();
    if (child == 0) {
        for (uint32_t row = 0; row < CT_ROW_COUNT; row++)
            find_shape(&shapes[row], row);
        _exit(EXIT_SUCCESS);
    }
    int status = -1;
    const bool ended = child > 0 && waitpid(child, &status, 0) == child && status == 0;
    return ended ? shapes : NULL;
}
