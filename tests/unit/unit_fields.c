/* Tests that the fields of a call are read as they were written, and that every kind of invalid payload is
 * rejected. */
#include "../ensure.h"
#include "fields.h"

static uint8_t payload[CT_FIELDS_BYTES_MAX];

/* Reads a copy of the payload that ends where allocated memory ends, so that a sanitizer detects reads past
 * the payload. */
static int read_copy(const void *from, size_t bytes)
{
    struct ct_field field[CT_FIELDS_MAX];
    uint8_t *copy = malloc(bytes > 0 ? bytes : 1);
    ENSURE(copy);
    memcpy(copy, from, bytes);
    const int count = ct_fields_read(copy, bytes, field);
    free(copy);
    return count;
}

static void check_written(const struct ct_field *written, uint32_t count)
{
    struct ct_field field[CT_FIELDS_MAX];
    const size_t bytes = ct_fields_write(payload, written, count);
    ENSURE(bytes >= sizeof(struct ct_fields) && bytes <= sizeof(payload));
    EXPECT(count, ct_fields_read(payload, bytes, field));
    for (uint32_t i = 0; i < count; i++) {
        ENSURE(strcmp(field[i].name, written[i].name) == 0);
        EXPECT(written[i].type, field[i].type);
        const char *text = written[i].type == CT_FIELD_TEXT ? written[i].text : NULL;
        ENSURE(text ? strcmp(field[i].text, text) == 0 : !field[i].text);
        ENSURE(written[i].type == CT_FIELD_TEXT || field[i].value == written[i].value);
    }
    EXPECT(count, read_copy(payload, bytes));
    for (size_t less = 0; less < bytes; less++)
        EXPECT(-1, read_copy(payload, less));
}

static void check_good(void)
{
    const struct ct_field one[] = { { .name = "x", .value = UINT64_MAX } };
    const struct ct_field each[] = {
        { .name = "bytes", .value = UINT64_C(1) << 63, .type = CT_FIELD_UNSIGNED },
        { .name = "name", .text = "a\"b\n\xff\xc3", .type = CT_FIELD_TEXT },
        { .name = "_Result_0123456789abcde", .value = UINT64_MAX, .type = CT_FIELD_SIGNED },
        { .name = "none", .type = CT_FIELD_TEXT },
        { .name = "empty", .text = "", .type = CT_FIELD_TEXT },
    };
    check_written(one, 0);
    check_written(one, 1);
    check_written(each, 5);
    /* The longest payload */
    struct ct_field longest[CT_FIELDS_MAX];
    char name[CT_FIELDS_MAX][CT_FIELD_NAME_MAX + 1] = { 0 };
    char text[CT_FIELD_TEXT_MAX + 2] = { 0 };
    memset(text, 'x', CT_FIELD_TEXT_MAX);
    for (int i = 0; i < CT_FIELDS_MAX; i++) {
        memset(name[i], 'a' + i, CT_FIELD_NAME_MAX);
        longest[i] = (struct ct_field){ .name = name[i], .text = text, .type = CT_FIELD_TEXT };
    }
    check_written(longest, CT_FIELDS_MAX);
    EXPECT(CT_FIELDS_BYTES_MAX, ct_fields_write(payload, longest, CT_FIELDS_MAX));
    /* A longer string is truncated. */
    text[CT_FIELD_TEXT_MAX] = 'y';
    EXPECT(CT_FIELDS_BYTES_MAX, ct_fields_write(payload, longest, CT_FIELDS_MAX));
}

static void check_not_written(void)
{
    static const char *const bad[] = { "", "a b", "a-b", "\xc3\xa9", "a\"", "x23456789012345678901234" };
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
        EXPECT(0, ct_fields_write(payload, &(struct ct_field){ .name = bad[i] }, 1));
    EXPECT(0, ct_fields_write(payload, (struct ct_field[]){ { .name = "a" }, { .name = "A" } }, 2));
    EXPECT(0, ct_fields_write(payload, &(struct ct_field){ .name = "a", .type = CT_FIELD_TYPES }, 1));
    EXPECT(0, ct_fields_write(payload, NULL, CT_FIELDS_MAX + 1));
}

/* The payload of two fields: a number `n`, and a string `t` of three bytes, including its NUL. */
static struct {
    struct ct_fields fields;
    char texts[24];
} made;

static void make(const char *texts, size_t bytes)
{
    memset(&made, 0, sizeof(made));
    made.fields.type[1] = CT_FIELD_TEXT;
    made.fields.value[1] = 3;
    made.fields.count = 2;
    made.fields.text_bytes = (uint16_t)bytes;
    memcpy(made.texts, texts, bytes);
}
#define MAKE(texts) make(texts, sizeof(texts) - 1)

static void check_bad(void)
{
    MAKE("n\0t\0ab\0");
    EXPECT(2, read_copy(&made, sizeof(made)));
    static const uint64_t lengths[] = { 1, 2, 4, 5, 258, UINT32_MAX, UINT64_MAX };
    for (size_t i = 0; i < sizeof(lengths) / sizeof(lengths[0]); i++) {
        made.fields.value[1] = lengths[i];
        EXPECT(-1, read_copy(&made, sizeof(made)));
    }
    made.fields.value[1] = 3;
    made.fields.type[0] = CT_FIELD_TYPES;
    EXPECT(-1, read_copy(&made, sizeof(made)));
    made.fields.type[0] = CT_FIELD_TEXT; /* two texts, but one is missing */
    made.fields.value[0] = 3;
    EXPECT(-1, read_copy(&made, sizeof(made)));
    made.fields.type[0] = CT_FIELD_UNSIGNED;
    static const uint8_t counts[] = { 0, 1, 3, CT_FIELDS_MAX + 1, UINT8_MAX };
    for (size_t i = 0; i < sizeof(counts); i++) {
        made.fields.count = counts[i];
        EXPECT(-1, read_copy(&made, sizeof(made)));
    }
    made.fields.count = 2;
    static const uint16_t sizes[] = { 0, 2, 6, 8, sizeof(made.texts) + 1, UINT16_MAX };
    for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
        made.fields.text_bytes = sizes[i];
        EXPECT(-1, read_copy(&made, sizeof(made)));
    }
    MAKE("n\0n\0ab\0"); /* equal names */
    EXPECT(-1, read_copy(&made, sizeof(made)));
    MAKE("t\0T\0ab\0");
    EXPECT(-1, read_copy(&made, sizeof(made)));
    MAKE("n\0\0ab\0"); /* an empty name */
    EXPECT(-1, read_copy(&made, sizeof(made)));
    MAKE("n\0t u\0ab\0"); /* a character that names do not have */
    EXPECT(-1, read_copy(&made, sizeof(made)));
    MAKE("n\0t\0abc"); /* no NUL at its end */
    EXPECT(-1, read_copy(&made, sizeof(made)));
    MAKE("n\0t\0a\0\0"); /* a NUL before its end */
    EXPECT(-1, read_copy(&made, sizeof(made)));
}

int main(void)
{
    check_good();
    check_not_written();
    check_bad();
    return 0;
}
