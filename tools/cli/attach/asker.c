#include "asker.h"

#include "allocator.h"
#include "own_stack.h"

#include "signal_frame.h"

#include <stdlib.h>
#include <string.h>

/* Returns whether the words contain the frame of a signal handler. An old frame in a variable that has not
 * been written also counts. */
static bool has_signal_frame(const uint64_t *words, size_t count)
{
    const size_t frame_words = CT_SIGNAL_FRAME_BYTES / sizeof(*words);
    for (size_t i = 0; i + frame_words <= count; i++) {
        if (ct_is_signal_frame(words + i))
            return true;
    }
    return false;
}

/* Returns whether the thread is inside a signal handler. Reads its stack in parts that overlap. */
static bool is_in_handler(const struct ct_memory *memory, uint64_t stack, uint64_t end)
{
    enum { PART_BYTES = 64 << 10 };
    uint64_t *words = malloc(PART_BYTES);
    uint64_t at = (stack + 7) & ~UINT64_C(7);
    bool found = !words;
    while (!found && at < end) {
        const uint64_t bytes = end - at < PART_BYTES ? end - at : PART_BYTES;
        found = !ct_memory_read(memory, at, words, bytes) || has_signal_frame(words, bytes / sizeof(*words));
        at += bytes == PART_BYTES ? bytes - CT_SIGNAL_FRAME_BYTES : bytes;
    }
    free(words);
    return found;
}

/* Returns whether a thread holds one of the loader's locks, which are recursive mutexes of the C library.
 * Their places differ between versions, but the beginning of a mutex does not (struct __pthread_mutex_s). */
static bool is_loader_busy(const struct ct_target *target)
{
    enum { BYTES_MOST = 64 << 10, RECURSIVE = 1, COUNT_MOST = 1000 };
    struct mutex {
        int32_t lock;
        uint32_t count;
        int32_t owner;
        uint32_t users;
        int32_t kind;
    } mutex;
    const size_t bytes = target->loader_state_bytes;
    char *state = bytes <= BYTES_MOST ? malloc(bytes + 1) : NULL;
    bool is_busy = false;
    if (state && ct_memory_read(&target->memory, target->loader_state, state, bytes)) {
        for (size_t at = 0; !is_busy && at + sizeof(mutex) <= bytes; at += sizeof(uint64_t)) {
            memcpy(&mutex, state + at, sizeof(mutex));
            is_busy = (mutex.lock == 1 || mutex.lock == 2) && mutex.count > 0 && mutex.count < COUNT_MOST &&
                      mutex.owner > 0 && mutex.users == 1 && mutex.kind == RECURSIVE;
        }
    }
    free(state);
    return is_busy;
}

const char *ct_asker_not_now(struct ct_target *target, const struct ct_area_data *data)
{
    const uint64_t depth_most = 4 << 20; /* reading more would delay the call by many milliseconds */
    uint64_t end;
    if (is_loader_busy(target))
        return "while a thread loaded or unloaded a library";
    if (ct_memory_look(&target->memory) != 0 ||
        !ct_own_stack_find(&target->memory, data->asked_thread, data->asked_stack, &end))
        return "on stacks that are not their threads' own, such as coroutines'";
    if (end - data->asked_stack > depth_most)
        return "by threads that use more than 4 MiB of their stacks";
    if (is_in_handler(&target->memory, data->asked_stack, end))
        return "in signal handlers";
    return ct_allocator_asks(target, data, end) ? "by the program's own allocator (malloc)" : NULL;
}
