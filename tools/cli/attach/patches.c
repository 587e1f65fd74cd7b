#include "patches.h"

#include "freeze.h"
#include "tracer.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ptrace.h>
#include <time.h>

/* The maximum time that stopped threads wait for the remaining threads to stop. */
#define PATIENCE_NS UINT64_C(50000000)
enum { TRIES = 40, TRIES_IF_NONE_STOPS = 10, PAUSE_NS = 2000000, PAUSES_PER_STOP = 4 };

/* ---- threads ---- */

/* Returns the patch that contains the address, or NULL if there is none. */
static const struct ct_inline_patch *patch_around(const struct ct_patches *patches, uint64_t at)
{
    size_t low = 0, high = patches->count;
    /* Nearly all words are far from the patches. */
    if (high == 0 || at < patches->patches[0].address ||
        at >= patches->patches[high - 1].address + CT_INLINE_JUMP_BYTES)
        return NULL;
    while (low < high) {
        const size_t middle = (low + high) / 2;
        if (patches->patches[middle].address + CT_INLINE_JUMP_BYTES <= at)
            low = middle + 1;
        else
            high = middle;
    }
    const bool is_inside = low < patches->count && ct_inline_is_inside(&patches->patches[low], at);
    return is_inside ? &patches->patches[low] : NULL;
}

/* Returns whether no word on a thread's stack points into a patch. A thread in a signal handler returns to an
 * address in the signal's frame. Call instructions are never moved, so no other return address is inside a
 * patch. An unrelated word may look like such an address, which only delays the patches. Reads the stack up
 * to the end of its mapping. Returns false if frames may exist outside the part that was read. */
static bool is_stack_clear(const struct ct_patches *patches, uint64_t stack)
{
    enum { DEPTH_BYTES_MOST = 8 << 20, PIECE_BYTES = 64 << 10 };
    static uint64_t words[PIECE_BYTES / sizeof(uint64_t)];
    uint64_t at = (stack + 7) & ~UINT64_C(7);
    const struct ct_mapping *mapping = ct_memory_at(patches->memory, at);
    if (!mapping || mapping->end - at > DEPTH_BYTES_MOST)
        return false;
    for (size_t bytes; at < mapping->end; at += bytes) {
        bytes = mapping->end - at < PIECE_BYTES ? mapping->end - at : PIECE_BYTES;
        if (!ct_memory_read(patches->memory, at, words, bytes))
            return false;
        for (size_t i = 0; i < bytes / sizeof(words[0]); i++) {
            if (patch_around(patches, words[i]))
                return false;
        }
    }
    return true;
}

/* If a thread is inside a patch, sets its instruction pointer to the moved instructions, which have the same
 * effect. Returns false if the thread's address is not the start of an instruction. */
static bool move_thread(const struct ct_patches *patches, struct ct_stop *stop)
{
    const struct ct_inline_patch *patch = patch_around(patches, stop->registers.rip);
    if (!patch)
        return true;
    const uint64_t to = patch->moved_to[stop->registers.rip - patch->address];
    if (to == 0)
        return false;
    stop->registers.rip = to;
    return ptrace(PTRACE_SETREGS, stop->thread, NULL, &stop->registers) == 0;
}

/* Moves threads out of the patches, if possible, and returns whether all threads are outside them. */
static bool is_clear(const struct ct_patches *patches, const struct ct_freeze *freeze)
{
    for (size_t i = 0; i < freeze->count; i++) {
        struct ct_stop *stop = &freeze->threads[i];
        if (!stop->is_gone && !is_stack_clear(patches, stop->registers.rsp))
            return false;
    }
    for (size_t i = 0; i < freeze->count; i++) {
        if (!freeze->threads[i].is_gone && !move_thread(patches, &freeze->threads[i]))
            return false;
    }
    return true;
}

/* ---- writing ---- */

/* Writes with PTRACE_POKEDATA, as debuggers do, because a kernel may refuse to write code through /proc.
 * PTRACE_POKEDATA writes a whole word, which must not cross into the next page, because that page may be
 * unmapped. */
static bool poke(const struct ct_memory *memory, pid_t thread, uint64_t address,
                 const uint8_t bytes[CT_INLINE_JUMP_BYTES])
{
    enum { PAGE_BYTES = 4096 };
    uint8_t word[sizeof(long)];
    const uint64_t before = address % PAGE_BYTES > PAGE_BYTES - sizeof(word) ? 3 : 0;
    long value;
    if (!ct_memory_read(memory, address - before, word, sizeof(word)))
        return false;
    memcpy(word + before, bytes, CT_INLINE_JUMP_BYTES);
    memcpy(&value, word, sizeof(value));
    return ptrace(PTRACE_POKEDATA, thread, (void *)(address - before), (void *)value) == 0;
}

static pid_t thread_of(const struct ct_freeze *freeze)
{
    size_t i = 0;
    while (freeze->threads[i].is_gone)
        i++;
    return freeze->threads[i].thread;
}

static bool has(const struct ct_memory *memory, uint64_t address, const uint8_t bytes[CT_INLINE_JUMP_BYTES])
{
    uint8_t now[CT_INLINE_JUMP_BYTES];
    return ct_memory_read(memory, address, now, sizeof(now)) && memcmp(now, bytes, sizeof(now)) == 0;
}

static int write_all(struct ct_patches *patches, pid_t thread)
{
    const struct ct_memory *memory = patches->memory;
    patches->written = 0;
    for (size_t i = 0; i < patches->count; i++) {
        const struct ct_inline_patch *patch = &patches->patches[i];
        if (!has(memory, patch->address, patch->old))
            continue;
        if (!poke(memory, thread, patch->address, patch->new)) {
            for (; i-- > 0;) {
                if (has(memory, patches->patches[i].address, patches->patches[i].new))
                    poke(memory, thread, patches->patches[i].address, patches->patches[i].old);
            }
            return -EIO;
        }
        patches->written++;
    }
    return 0;
}

/* Tries once to write the patches. Threads that stop too late are released by the kernel when this tracer
 * exits. */
static int try_within(void *data)
{
    struct ct_patches *patches = data;
    struct ct_freeze freeze;
    int error = ct_freeze_begin(&freeze, patches->memory, PATIENCE_NS);
    if (!error) {
        /* A vfork() cannot be in progress, because its caller would not have stopped. */
        error = ct_memory_sharer(patches->memory) ? -EMLINK
                : !is_clear(patches, &freeze)     ? -EBUSY
                                                  : write_all(patches, thread_of(&freeze));
        ct_freeze_end(&freeze);
    }
    patches->took_ns = freeze.took_ns;
    return error;
}

int ct_patches_write(struct ct_patches *patches)
{
    int error = 0;
    patches->written = patches->tries = 0;
    while (patches->count > 0) {
        ct_memory_look(patches->memory); /* to find the stacks of new threads */
        error = ct_tracer_run(try_within, patches, sizeof(*patches));
        patches->tries++;
        patches->stopped_ns += patches->took_ns;
        if (patches->took_ns > patches->longest_ns)
            patches->longest_ns = patches->took_ns;
        const uint64_t most = error == -EBUSY ? TRIES : error == -ETIMEDOUT ? TRIES_IF_NONE_STOPS : 0;
        if (patches->tries >= most)
            break;
        /* Pause so that the program runs most of the time, however many tries are needed. */
        const uint64_t pause_ns = PAUSE_NS + PAUSES_PER_STOP * patches->took_ns;
        nanosleep(&(struct timespec){ .tv_sec = (time_t)(pause_ns / 1000000000),
                                      .tv_nsec = (long)(pause_ns % 1000000000) },
                  NULL);
    }
    return error;
}
