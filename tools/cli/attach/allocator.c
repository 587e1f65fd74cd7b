/* The loader has bound the C library's own calls of malloc() and similar functions to the program's
 * allocator. It is a library, or a part of the program. In a library, all code belongs to the allocator. In
 * the program, only these functions do, because the program calls the driver itself.
 *
 * The callers on the thread's stack are found with unwind tables. Code without them, such as generated code,
 * often links its frames with the frame pointer. If it does not, all words above are examined. A word that an
 * earlier call has left then counts, too. */
#include "allocator.h"

#include "unwind.h"

#include <elf.h>
#include <stdlib.h>
#include <string.h>

enum { FRAMES_MOST = 1000 };

/* The code around one of the allocator's functions. */
struct part {
    uint64_t begin, end, function;
    bool is_library;
};

struct search {
    const struct ct_memory *memory;
    const char *c_library; /* the path of its mappings */
    struct part parts[CT_ALLOCATOR_FUNCTIONS];
    size_t count;
    uint64_t end; /* of the stack */
};

static const char *path_at(const struct ct_memory *memory, uint64_t address)
{
    const struct ct_mapping *mapping = ct_memory_at(memory, address);
    return mapping ? mapping->path : "";
}

static uint64_t program_headers(const struct ct_memory *memory)
{
    size_t i = 0;
    while (i + 2 < CT_PROGRAM_WORDS && memory->program[i] != AT_PHDR && memory->program[i] != AT_NULL)
        i += 2;
    return memory->program[i] == AT_PHDR ? memory->program[i + 1] : 0;
}

static bool is_of_c_library(const struct search *search, uint64_t address)
{
    return strcmp(path_at(search->memory, address), search->c_library) == 0;
}

/* Returns the part of the allocator that the instruction belongs to, or NULL. */
static const struct part *find_part(const struct search *search, uint64_t address)
{
    for (const struct part *part = search->parts; part < search->parts + search->count; part++) {
        if (address - part->begin < part->end - part->begin &&
            (part->is_library || ct_unwind_function(search->memory, address) == part->function))
            return part;
    }
    return NULL;
}

/* Returns whether the word is an address after a call instruction: of five bytes, or through a register or
 * memory. */
static bool is_return_address(const struct ct_memory *memory, uint64_t word)
{
    enum { CALL = 0xe8, INDIRECT = 0xff, BYTES_MOST = 7 };
    const struct ct_mapping *mapping = ct_memory_at(memory, word - 1);
    uint8_t code[BYTES_MOST];
    if (!mapping || !mapping->is_executable ||
        !ct_memory_read(memory, word - sizeof(code), code, sizeof(code)))
        return false;
    bool found = code[BYTES_MOST - 5] == CALL;
    for (size_t bytes = 2; bytes <= BYTES_MOST; bytes++) /* the second byte has the operation 2 */
        found |= code[BYTES_MOST - bytes] == INDIRECT && (code[BYTES_MOST - bytes + 1] >> 3 & 7) == 2;
    return found;
}

/* Follows the frame pointer to the caller. Returns false if it does not lead to a caller. */
static bool follow_pointer(const struct search *search, struct ct_waiting *waiting)
{
    uint64_t words[2]; /* the caller's frame pointer, and its address */
    const uint64_t at = waiting->bp;
    if (at < waiting->sp || at % sizeof(*words) != 0 || at >= search->end ||
        search->end - at < sizeof(words) || !ct_memory_read(search->memory, at, words, sizeof(words)) ||
        !is_return_address(search->memory, words[1]))
        return false;
    waiting->bp = words[0];
    waiting->ip = words[1];
    waiting->sp = at + sizeof(words);
    return true;
}

/* Returns whether a word from the address up to the end of the stack is a return address in the allocator. */
static bool is_among_words(const struct search *search, uint64_t at)
{
    enum { PART_BYTES = 64 << 10 };
    uint64_t *words = malloc(PART_BYTES);
    bool found = !words;
    for (uint64_t bytes; !found && at < search->end; at += bytes) {
        bytes = search->end - at < PART_BYTES ? search->end - at : PART_BYTES;
        found = !ct_memory_read(search->memory, at, words, bytes);
        for (size_t i = 0; !found && i < bytes / sizeof(*words); i++)
            found = find_part(search, words[i] - 1) && is_return_address(search->memory, words[i]);
    }
    free(words);
    return found;
}

/* A library's function counts if other code has called it. A sanitizer, for example, is an allocator and
 * begins all threads, and then only the C library has called it. */
static bool is_among_callers(const struct search *search, struct ct_waiting *waiting)
{
    bool is_called = false;
    for (int i = 0; i < FRAMES_MOST && waiting->sp < search->end; i++) {
        const struct part *part = find_part(search, waiting->ip - 1);
        if (part ? !part->is_library : is_called && !is_of_c_library(search, waiting->ip - 1))
            return true;
        is_called |= part != NULL;
        const enum ct_unwound unwound = ct_unwind(search->memory, waiting);
        if (unwound == CT_UNWOUND_LAST)
            return false;
        if (unwound == CT_UNWOUND_UNKNOWN && !follow_pointer(search, waiting))
            return is_called || is_among_words(search, waiting->sp);
    }
    return false;
}

/* Lists the parts of an allocator that is not the C library's. */
static void list_parts(struct search *search, const struct ct_target *target)
{
    const struct ct_memory *memory = search->memory;
    const char *program = path_at(memory, program_headers(memory));
    for (size_t i = 0; i < CT_ALLOCATOR_FUNCTIONS; i++) {
        const struct ct_mapping *mapping = ct_memory_at(memory, target->allocator[i]);
        if (mapping && !is_of_c_library(search, target->allocator[i]))
            search->parts[search->count++] =
                (struct part){ .begin = mapping->begin,
                               .end = mapping->end,
                               .function = target->allocator[i],
                               .is_library = strcmp(mapping->path, program) != 0 };
    }
}

bool ct_allocator_asks(const struct ct_target *target, const struct ct_area_data *data, uint64_t end)
{
    const struct ct_memory *memory = &target->memory;
    struct search search = { .memory = memory, .c_library = path_at(memory, target->find_errno), .end = end };
    struct ct_waiting waiting = { .sp = data->asked_stack + CT_ASKED_BYTES };
    list_parts(&search, target);
    if (search.count == 0)
        return false;
    return !ct_memory_read(memory, data->asked_stack + CT_ASKED_RETURN, &waiting.ip, sizeof(waiting.ip)) ||
           !ct_memory_read(memory, data->asked_stack + CT_ASKED_RBP, &waiting.bp, sizeof(waiting.bp)) ||
           !ct_memory_read(memory, data->asked_stack + CT_ASKED_RBX, &waiting.bx, sizeof(waiting.bx)) ||
           is_among_callers(&search, &waiting);
}
