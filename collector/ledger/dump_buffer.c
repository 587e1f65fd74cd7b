#include "dump_buffer.h"

#include "room.h"

#include <stdlib.h>
#include <string.h>

uint8_t *ct_dump_add(struct ct_dump_buffer *buffer, enum ct_dump_type type, const void *body,
                     size_t tail_bytes)
{
    const size_t body_bytes = ct_dump_shapes[type].body_bytes;
    const size_t padded = (body_bytes + tail_bytes + 7) & ~(size_t)7;
    const size_t wanted = sizeof(struct ct_dump_event) + padded;
    const size_t used = buffer->used ? buffer->used : sizeof(struct ct_dump_frame);
    if (!ct_make_room_for(&buffer->frame, used, wanted, &buffer->capacity, 1))
        return NULL;
    uint8_t *place = buffer->frame + used;
    const struct ct_dump_event event = { (uint16_t)type, (uint16_t)tail_bytes, (uint32_t)padded };
    memset(place + wanted - 8, 0, 8);
    memcpy(place, &event, sizeof(event));
    memcpy(place + sizeof(event), body, body_bytes);
    buffer->used = used + wanted;
    return place + sizeof(event) + body_bytes;
}

bool ct_dump_add_texts(struct ct_dump_buffer *buffer, enum ct_dump_type type, const void *body,
                       const char *const *text)
{
    const size_t count = ct_dump_shapes[type].texts;
    size_t bytes = 0;
    for (size_t i = 0; i < count; i++)
        bytes += strlen(text[i]) + 1;
    uint8_t *to = ct_dump_add(buffer, type, body, bytes);
    if (!to)
        return false;
    for (size_t i = 0; i < count; i++)
        to = (uint8_t *)stpcpy((char *)to, text[i]) + 1;
    return true;
}

const struct ct_dump_frame *ct_dump_seal(struct ct_dump_buffer *buffer, uint64_t until_ns)
{
    const size_t bytes = buffer->used - sizeof(struct ct_dump_frame);
    const struct ct_dump_frame head = {
        .magic = CT_DUMP_FRAME_MAGIC,
        .bytes = bytes,
        .hash = ct_dump_hash(buffer->frame + sizeof(head), bytes),
        .until_ns = until_ns,
    };
    return memcpy(buffer->frame, &head, sizeof(head));
}

void ct_dump_buffer_finish(struct ct_dump_buffer *buffer)
{
    free(buffer->frame);
    *buffer = (struct ct_dump_buffer){ 0 };
}
