#include "own_stack.h"

#include <string.h>

/* Returns whether the memory is mapped without a gap. A stack can consist of several mappings, because the
 * program may lock a part of it, for example. */
static bool is_joined(const struct ct_memory *memory, uint64_t begin, uint64_t end)
{
    const struct ct_mapping *mapping = ct_memory_at(memory, begin);
    const struct ct_mapping *const last = memory->mappings + memory->count;
    while (mapping && mapping->is_readable && mapping->end < end) {
        const uint64_t at = mapping->end;
        mapping = ++mapping < last && mapping->begin == at ? mapping : NULL;
    }
    return mapping && mapping->is_readable;
}

/* Finds the beginning of the stack in the C library's structure of the thread, which is at the stack's end.
 * The structure contains the address and the size of the stack. Their place differs between versions, but
 * their sum is an address just above the structure. Returns 0 if there are no such words, as in the first
 * thread, whose structure is elsewhere. */
static uint64_t find_begin(const struct ct_memory *memory, uint64_t thread)
{
    enum { STRUCTURE_BYTES_MOST = 4096, BEHIND_BYTES_MOST = 64 << 10, STACK_BYTES_LEAST = 16 << 10 };
    uint64_t words[STRUCTURE_BYTES_MOST / sizeof(uint64_t)];
    const struct ct_mapping *mapping = ct_memory_at(memory, thread);
    const uint64_t rest = mapping ? mapping->end - thread : 0;
    const size_t bytes = rest < sizeof(words) ? rest : sizeof(words);
    if (!mapping || !ct_memory_read(memory, thread, words, bytes))
        return 0;
    for (size_t i = 0; i + 1 < bytes / sizeof(*words); i++) {
        const uint64_t begin = words[i], size = words[i + 1];
        if (begin < thread && ct_memory_at(memory, begin) && size >= STACK_BYTES_LEAST &&
            size > thread - begin && size - (thread - begin) <= BEHIND_BYTES_MOST)
            return begin;
    }
    return 0;
}

/* Returns the end of the first thread's stack, or 0. The kernel names the mapping that contains it. */
static uint64_t end_of_first(const struct ct_memory *memory)
{
    for (size_t i = memory->count; i-- > 0;) {
        if (strcmp(memory->mappings[i].path, "[stack]") == 0)
            return memory->mappings[i].end;
    }
    return 0;
}

bool ct_own_stack_find(const struct ct_memory *memory, uint64_t thread, uint64_t stack, uint64_t *end)
{
    const uint64_t begin = find_begin(memory, thread);
    *end = begin ? thread : end_of_first(memory);
    return stack >= begin && stack < *end && is_joined(memory, stack, *end);
}
