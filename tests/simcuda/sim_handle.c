/* sim_handle.c: slabs of objects, whose addresses are the driver's handles. Each kind of object has its own
 * slab, in the file that implements that kind. All functions are called with the driver's lock held. */
#include "simcuda.h"

#include <stdlib.h>
#include <string.h>

enum { CHUNK_OBJECTS = 64 };

struct chunk {
    struct chunk *next;
    _Alignas(16) unsigned char objects[];
};

static uint64_t generations;

static struct handle *object_in(const struct slab *slab, const struct chunk *chunk, size_t index)
{
    return (struct handle *)(uintptr_t)(chunk->objects + index * slab->object_size);
}

static bool grow(struct slab *slab)
{
    struct chunk *chunk = calloc(1, sizeof *chunk + CHUNK_OBJECTS * slab->object_size);
    if (!chunk)
        return false;
    chunk->next = slab->chunks;
    slab->chunks = chunk;
    for (size_t i = CHUNK_OBJECTS; i-- > 0;) {
        struct handle *object = object_in(slab, chunk, i);
        object->next_free = slab->free;
        slab->free = object;
    }
    return true;
}

void *handle_new(struct slab *slab)
{
    if (!slab->free && !grow(slab))
        return NULL;
    struct handle *object = slab->free;
    slab->free = object->next_free;
    memset(object, 0, slab->object_size);
    object->generation = ++generations;
    return object;
}

void handle_free(struct slab *slab, void *object)
{
    struct handle *handle = object;
    handle->generation = 0;
    handle->next_free = slab->free;
    slab->free = handle;
}

bool handle_alive(const struct slab *slab, const void *object)
{
    const uintptr_t address = (uintptr_t)object;
    for (const struct chunk *chunk = slab->chunks; chunk; chunk = chunk->next) {
        const uintptr_t first = (uintptr_t)chunk->objects;
        if (address < first || address >= first + CHUNK_OBJECTS * slab->object_size)
            continue;
        return (address - first) % slab->object_size == 0 && ((const struct handle *)object)->generation != 0;
    }
    return false;
}

void *handle_next(const struct slab *slab, const void *previous)
{
    bool past = previous == NULL;
    for (const struct chunk *chunk = slab->chunks; chunk; chunk = chunk->next) {
        size_t index = 0;
        if (!past) {
            const uintptr_t offset = (uintptr_t)previous - (uintptr_t)chunk->objects;
            if (offset >= CHUNK_OBJECTS * slab->object_size)
                continue;
            past = true;
            index = offset / slab->object_size + 1;
        }
        for (; index < CHUNK_OBJECTS; index++)
            if (object_in(slab, chunk, index)->generation != 0)
                return object_in(slab, chunk, index);
    }
    return NULL;
}
