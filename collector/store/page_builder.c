#include "page_builder.h"

#include "room.h"
#include "row_table.h"
#include "value.h"

#include <assert.h>
#include <endian.h>
#include <stdlib.h>
#include <string.h>

enum {
    KIND_LEAF = 13, /* first byte of a table's leaf page */
    HEAD_BYTES = 8,
    POINTER_BYTES = 2,
    VARINT_MAX = 9,
    /* Room for the record's length and key, followed by the header length, the types and the integers. */
    CELL_MAX = 1 + VARINT_MAX + 1 + CT_ROW_COLUMNS_MAX * (1 + 8),
};
static_assert(CELL_MAX - 1 - VARINT_MAX < 128, "the record's length is one byte");

/* Writes a varint, which has seven bits per byte, highest first, with the top bit set in all bytes except the
 * last. A ninth byte has eight bits. Always writes eight or nine bytes, but only the bytes before the
 * returned end are valid. */
static uint8_t *put_varint(uint8_t *to, uint64_t value)
{
    if (value >> 56) {
        to[8] = (uint8_t)value;
        value >>= 8;
        for (int i = 7; i >= 0; i--, value >>= 7)
            to[i] = (uint8_t)(value | 0x80);
        return to + VARINT_MAX;
    }
    const int bytes = (63 - __builtin_clzll(value | 1)) / 7 + 1;
    /* Split the value into halves, then quarters, and then eighths of seven bits each. */
    value = (value & 0x0fffffff) | (value & UINT64_C(0x00fffffff0000000)) << 4;
    value = (value & UINT64_C(0x00003fff00003fff)) | (value & UINT64_C(0x0fffc0000fffc000)) << 2;
    value = (value & UINT64_C(0x007f007f007f007f)) | (value & UINT64_C(0x3f803f803f803f80)) << 1;
    const uint64_t big = htobe64((value | UINT64_C(0x8080808080808000)) << (64 - 8 * bytes));
    memcpy(to, &big, sizeof(big));
    return to + bytes;
}

static const uint8_t *get_varint(const uint8_t *from, uint64_t *value)
{
    *value = 0;
    for (int i = 0; i < VARINT_MAX - 1; i++) {
        *value = *value << 7 | (from[i] & 0x7f);
        if (!(from[i] & 0x80))
            return from + i + 1;
    }
    *value = *value << 8 | from[VARINT_MAX - 1];
    return from + VARINT_MAX;
}

/* Writes the shortest form of an integer. Always writes eight bytes, but only the bytes before the returned
 * end are valid. */
static uint8_t *put_integer(uint8_t *to, int64_t value, uint8_t *type)
{
    /* A value's serial type and that type's length, both indexed by the number of bytes that the value
     * needs. */
    static const uint8_t types[] = { 0, 1, 2, 3, 4, 5, 5, 6, 6 }, bytes_of[] = { 0, 1, 2, 3, 4, 6, 6, 8, 8 };
    if (value == 0 || value == 1) {
        *type = (uint8_t)(8 + value);
        return to;
    }
    const uint64_t magnitude = (uint64_t)(value ^ value >> 63);
    const int needed = (64 - __builtin_clzll(magnitude | 1) + 1 + 7) / 8;
    const int bytes = bytes_of[needed];
    const uint64_t big = htobe64((uint64_t)value << (64 - 8 * bytes));
    *type = types[needed];
    memcpy(to, &big, sizeof(big));
    return to + bytes;
}

/* Writes a row and returns its end. The key precedes the record. Since the key is the table's last column,
 * the record omits it, as well as any NULLs just before it. SQLite reads missing columns as NULL. */
static uint8_t *put_row(uint8_t *cell, const int64_t *value, unsigned columns)
{
    while (columns > 1 && value[columns - 1] == CT_NULL)
        columns--;
    uint8_t *record = put_varint(cell + 1, (uint64_t)value[0]), *type = record;
    uint8_t *body = record + columns;
    *type++ = (uint8_t)columns; /* this is also the length of the header */
    for (unsigned i = 1; i < columns; i++, type++) {
        if (value[i] == CT_NULL)
            *type = 0;
        else
            body = put_integer(body, value[i], type);
    }
    cell[0] = (uint8_t)(body - record);
    return body;
}

static void put_16(uint8_t *to, size_t value)
{
    to[0] = (uint8_t)(value >> 8);
    to[1] = (uint8_t)value;
}

static size_t get_16(const uint8_t *from)
{
    return (size_t)from[0] << 8 | from[1];
}

/* Lays out rows from `from` on until the page is full. The rows are placed in order at the end of the page.
 * They are first written to a buffer, because their start in the page depends on how many of them fit. */
static void lay_out_leaf(struct ct_leaf *leaf, const int64_t *value, unsigned columns, size_t from,
                         size_t rows)
{
    uint8_t cells[CT_LEAF_BYTES + CELL_MAX + 8], *end = cells;
    uint16_t place[CT_LEAF_ROWS_MAX];
    size_t count = 0;
    for (; from + count < rows; count++) {
        uint8_t *next = put_row(end, value + (from + count) * columns, columns);
        if (HEAD_BYTES + (count + 1) * POINTER_BYTES + (size_t)(next - cells) > CT_LEAF_BYTES)
            break;
        place[count] = (uint16_t)(end - cells);
        end = next;
    }
    const size_t top = CT_LEAF_BYTES - (size_t)(end - cells);
    uint8_t *page = leaf->page, *pointers = page + HEAD_BYTES;
    page[0] = KIND_LEAF;
    put_16(page + 1, 0); /* no free blocks */
    put_16(page + 3, count);
    put_16(page + 5, top);
    page[7] = 0; /* no fragments */
    for (size_t i = 0; i < count; i++)
        put_16(pointers + i * POINTER_BYTES, top + place[i]);
    memset(pointers + count * POINTER_BYTES, 0, top - HEAD_BYTES - count * POINTER_BYTES);
    memcpy(page + top, cells, (size_t)(end - cells));
    leaf->from = from;
    leaf->to = from + count;
    leaf->last_key = value[(leaf->to - 1) * columns];
}

bool ct_page_builder_add(struct ct_page_builder *builder, const int64_t *value, unsigned columns, size_t rows)
{
    for (size_t from = 0; from < rows; from = builder->leaf[builder->count++].to) {
        if (!ct_make_room(&builder->leaf, builder->count, &builder->room, sizeof(*builder->leaf)))
            return false;
        lay_out_leaf(&builder->leaf[builder->count], value, columns, from, rows);
    }
    return true;
}

void ct_page_builder_finish(struct ct_page_builder *builder)
{
    free(builder->leaf);
    *builder = (struct ct_page_builder){ 0 };
}

unsigned ct_leaf_rows(const uint8_t page[CT_LEAF_BYTES], int64_t *last_key)
{
    const size_t count = get_16(page + 3);
    if (page[0] != KIND_LEAF || count == 0 || HEAD_BYTES + count * POINTER_BYTES > CT_LEAF_BYTES)
        return 0;
    const size_t place = get_16(page + HEAD_BYTES + (count - 1) * POINTER_BYTES);
    if (place > CT_LEAF_BYTES - 2 * VARINT_MAX)
        return 0;
    uint64_t bytes, key;
    get_varint(get_varint(page + place, &bytes), &key);
    *last_key = (int64_t)key;
    return (unsigned)count;
}
