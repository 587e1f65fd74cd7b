/* Writes and reads the payload of a call that has fields (struct ct_fields). The writer and the collector use
 * the same limits. Nothing in a payload is trusted. */
#ifndef CT_PROTO_FIELDS_H
#define CT_PROTO_FIELDS_H

#include "payload.h"

#include <stdbool.h>
#include <stddef.h>
#include <string.h>
#include <strings.h>

enum {
    CT_FIELD_NAME_MAX = 23,  /* bytes of a name, without its NUL */
    CT_FIELD_TEXT_MAX = 256, /* bytes of a text, without its NUL */
    CT_FIELDS_BYTES_MAX =
        sizeof(struct ct_fields) + CT_FIELDS_MAX * (CT_FIELD_NAME_MAX + 1 + CT_FIELD_TEXT_MAX + 1),
};

/* A field of a call. */
struct ct_field {
    const char *name; /* 1 to CT_FIELD_NAME_MAX letters, digits and '_', and a NUL */
    /* For CT_FIELD_TEXT: ends at a NUL, or after CT_FIELD_TEXT_MAX bytes. NULL if the call has no text. */
    const char *text;
    uint64_t value; /* of the other types; two's complement if signed */
    enum ct_field_type type;
};

/* Returns the length of the name that begins at `text`, with `bytes` bytes available, or 0 if there is no
 * valid name. */
static inline size_t ct_field_name_length(const char *text, size_t bytes)
{
    size_t length = 0;
    while (length < bytes &&
           ((text[length] >= 'a' && text[length] <= 'z') || (text[length] >= 'A' && text[length] <= 'Z') ||
            (text[length] >= '0' && text[length] <= '9') || text[length] == '_'))
        length++;
    return length <= CT_FIELD_NAME_MAX && length < bytes && text[length] == '\0' ? length : 0;
}

/* True if an earlier field has the same name. Case is ignored, as in column names. */
static inline bool ct_field_is_repeated(const struct ct_field *field, uint32_t index)
{
    for (uint32_t i = 0; i < index; i++) {
        if (strcasecmp(field[i].name, field[index].name) == 0)
            return true;
    }
    return false;
}

/* Writes the payload of a call with `count` fields. Returns its length in bytes, or 0 if the collector would
 * reject it: more than CT_FIELDS_MAX fields, an invalid name, or two equal names. */
static inline size_t ct_fields_write(uint8_t payload[CT_FIELDS_BYTES_MAX], const struct ct_field *field,
                                     uint32_t count)
{
    struct ct_fields fields = { .count = (uint8_t)count };
    size_t at = sizeof(fields);
    if (count > CT_FIELDS_MAX)
        return 0;
    for (uint32_t i = 0; i < count; i++) {
        const size_t length = ct_field_name_length(field[i].name, CT_FIELD_NAME_MAX + 1);
        if (length == 0 || field[i].type >= CT_FIELD_TYPES || ct_field_is_repeated(field, i))
            return 0;
        memcpy(payload + at, field[i].name, length + 1);
        at += length + 1;
        fields.type[i] = (uint8_t)field[i].type;
        fields.value[i] = field[i].value;
    }
    for (uint32_t i = 0; i < count; i++) {
        if (field[i].type != CT_FIELD_TEXT)
            continue;
        const size_t length = field[i].text ? strnlen(field[i].text, CT_FIELD_TEXT_MAX) : 0;
        fields.value[i] = field[i].text ? length + 1 : 0;
        if (!field[i].text)
            continue;
        memcpy(payload + at, field[i].text, length);
        payload[at + length] = '\0';
        at += length + 1;
    }
    fields.text_bytes = (uint16_t)(at - sizeof(fields));
    memcpy(payload, &fields, sizeof(fields));
    return at;
}

/* Reads a payload of `bytes` bytes, which must not change during the call. The fields' names and texts point
 * into the payload. Returns the number of fields, or -1 if a length, type or name is invalid, two names are
 * equal, or there are extra bytes. */
static inline int ct_fields_read(const void *payload, size_t bytes, struct ct_field field[CT_FIELDS_MAX])
{
    struct ct_fields fields;
    if (bytes < sizeof(fields))
        return -1;
    memcpy(&fields, payload, sizeof(fields));
    if (fields.count > CT_FIELDS_MAX || fields.text_bytes > bytes - sizeof(fields))
        return -1;
    const char *at = (const char *)payload + sizeof(fields), *const end = at + fields.text_bytes;
    for (uint32_t i = 0; i < fields.count; i++) {
        const size_t length = ct_field_name_length(at, (size_t)(end - at));
        field[i] = (struct ct_field){ .name = at,
                                      .value = fields.value[i],
                                      .type = (enum ct_field_type)fields.type[i] };
        if (length == 0 || fields.type[i] >= CT_FIELD_TYPES || ct_field_is_repeated(field, i))
            return -1;
        at += length + 1;
    }
    for (uint32_t i = 0; i < fields.count; i++) {
        if (field[i].type != CT_FIELD_TEXT || field[i].value == 0)
            continue;
        const uint64_t with_nul = field[i].value;
        if (with_nul > CT_FIELD_TEXT_MAX + 1 || with_nul > (size_t)(end - at) ||
            strnlen(at, with_nul) != with_nul - 1)
            return -1;
        field[i].text = at;
        at += with_nul;
    }
    return at == end ? fields.count : -1;
}

#endif
