#include "json_value.h"

#include "utf8.h"

#include <ctype.h>
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    DEEPEST = 64,          /* values nested deeper are of no use */
    REPLACEMENT_BYTES = 6, /* the length of \ufffd */
    NAMED_BIT = 1 << 30,   /* in all numbers made from names; PIDs of Linux are below 1 << 22 */
    NAMED_MASK = NAMED_BIT - 1,
};

/* ---- repairing ---- */

struct repair {
    const char *at, *end;
    char *to;
};

static void put(struct repair *repair, const char *text, size_t bytes)
{
    memcpy(repair->to, text, bytes);
    repair->to += bytes;
}

static void put_replacement(struct repair *repair)
{
    put(repair, "\\ufffd", REPLACEMENT_BYTES);
}

/* Returns the code of an escape \uNNNN at `text`, or -1 if there is none. */
static int code_of(const struct repair *repair, const char *text)
{
    if (repair->end - text < REPLACEMENT_BYTES || text[0] != '\\' || text[1] != 'u')
        return -1;
    int code = 0;
    for (int i = 2; i < REPLACEMENT_BYTES; i++) {
        if (!isxdigit((unsigned char)text[i]))
            return -1;
        const int digit = isdigit((unsigned char)text[i]) ? text[i] - '0' : (text[i] | 0x20) - 'a' + 10;
        code = code << 4 | digit;
    }
    return code;
}

static void repair_escape(struct repair *repair)
{
    const int code = code_of(repair, repair->at);
    const int next = code < 0 ? -1 : code_of(repair, repair->at + REPLACEMENT_BYTES);
    const bool is_pair = code >= 0xd800 && code < 0xdc00 && next >= 0xdc00 && next < 0xe000;
    if (code >= 0 && code != 0 && (is_pair || code < 0xd800 || code >= 0xe000)) {
        const size_t bytes = is_pair ? 2 * REPLACEMENT_BYTES : REPLACEMENT_BYTES;
        put(repair, repair->at, bytes);
        repair->at += bytes;
    } else if (code >= 0) {
        put_replacement(repair);
        repair->at += REPLACEMENT_BYTES;
    } else if (repair->at + 1 < repair->end && strchr("\"\\/bfnrt", repair->at[1]) && repair->at[1]) {
        put(repair, repair->at, 2);
        repair->at += 2;
    } else {
        put(repair, "\\\\", 2);
        repair->at++;
    }
}

static void repair_string(struct repair *repair)
{
    put(repair, repair->at++, 1);
    while (repair->at < repair->end) {
        uint32_t point;
        const size_t bytes = ct_utf8_next(repair->at, (size_t)(repair->end - repair->at), &point);
        if (*repair->at == '\\') {
            repair_escape(repair);
            continue;
        }
        if (bytes == 0 || point == 0)
            put_replacement(repair);
        else if (point < ' ')
            repair->to += sprintf(repair->to, "\\u%04x", (unsigned)point);
        else
            put(repair, repair->at, bytes);
        repair->at += bytes ? bytes : 1;
        if (point == '"')
            return;
    }
}

/* Repairs a number or a keyword. */
static void repair_word(struct repair *repair)
{
    static const char null[] = "null";
    const char *begin = repair->at;
    while (repair->at < repair->end && (!*repair->at || !strchr(",:]}[{\" \t\r\n", *repair->at)))
        repair->at++;
    const size_t bytes = (size_t)(repair->at - begin);
    char word[64];
    snprintf(word, sizeof(word), "%.*s", (int)(bytes < sizeof(word) ? bytes : sizeof(word) - 1), begin);
    json_t *value = bytes < sizeof(word) ? json_loadb(word, bytes, JSON_DECODE_ANY, NULL) : NULL;
    char *end;
    const double number = strtod(word, &end);
    const bool is_number = isdigit((unsigned char)word[*word == '-']);
    const bool is_infinite = bytes > 0 && strspn(word, "-+NnAaIiFfTtYy") == bytes;
    json_decref(value);
    if (!value && is_number && !*end && isfinite(number) && bytes < sizeof(word)) {
        repair->to += sprintf(repair->to, "%.17g", number); /* an integer of more than 64 bits */
    } else if (!value && (is_number || is_infinite)) {
        put(repair, null, sizeof(null) - 1);
    } else {
        put(repair, begin, bytes);
    }
}

/* Replaces a value that is nested too deeply with null. */
static void skip_nested(struct repair *repair)
{
    bool is_string = false;
    for (size_t depth = 0; repair->at < repair->end; repair->at++) {
        const char c = *repair->at;
        if (is_string && c == '\\' && repair->at + 1 < repair->end)
            repair->at++;
        else if (c == '"')
            is_string = !is_string;
        else if (!is_string && (c == '{' || c == '['))
            depth++;
        else if (!is_string && (c == '}' || c == ']') && --depth == 0)
            break;
    }
    repair->at += repair->at < repair->end;
    put(repair, "null", 4);
}

/* Returns a text that differs from the given text only where that is not JSON, or NULL if out of memory. */
static char *repair_all(const char *text, size_t bytes, size_t *repaired)
{
    /* The longest replacements: \ufffd for a byte, and 24 digits for a word of 20 bytes or more. */
    char *whole = malloc(bytes * REPLACEMENT_BYTES + 32);
    struct repair repair = { text, text + bytes, whole };
    int depth = 0;
    while (whole && repair.at < repair.end) {
        const char c = *repair.at;
        if (c == '"') {
            repair_string(&repair);
        } else if ((c == '{' || c == '[') && depth == DEEPEST) {
            skip_nested(&repair);
        } else if (strchr("{}[],: \t\r\n", c) && c) {
            depth += (c == '{' || c == '[') - (c == '}' || c == ']');
            put(&repair, repair.at++, 1);
        } else {
            repair_word(&repair);
        }
    }
    *repaired = whole ? (size_t)(repair.to - whole) : 0;
    return whole;
}

json_t *ct_json_parse(const char *text, size_t bytes, char why[JSON_ERROR_TEXT_LENGTH])
{
    json_error_t error = { 0 };
    json_t *value = json_loadb(text, bytes, JSON_DECODE_ANY, &error);
    if (value)
        return value;
    size_t repaired;
    char *whole = repair_all(text, bytes, &repaired);
    if (whole)
        value = json_loadb(whole, repaired, JSON_DECODE_ANY, &error);
    free(whole);
    if (!value && why)
        snprintf(why, JSON_ERROR_TEXT_LENGTH, "%s", error.text);
    return value;
}

/* ---- values ---- */

bool ct_json_is_number(const json_t *value, double *number)
{
    *number = json_number_value(value);
    if (!json_is_string(value))
        return json_is_number(value);
    const char *text = json_string_value(value);
    char *end;
    *number = strtod(text, &end);
    return isdigit((unsigned char)text[*text == '-']) && !*end && isfinite(*number);
}

bool ct_json_is_integer(const json_t *value, int64_t *integer)
{
    static const double limit = 9223372036854775808.0;
    *integer = json_integer_value(value);
    if (json_is_integer(value))
        return true;
    if (json_is_string(value)) {
        const char *text = json_string_value(value);
        char *end;
        errno = 0;
        *integer = strtoll(text, &end, 10);
        return isdigit((unsigned char)text[*text == '-']) && !*end && errno == 0;
    }
    const double number = json_real_value(value);
    if (!json_is_real(value) || !(number >= -limit && number < limit) || number != floor(number))
        return false;
    *integer = (int64_t)number;
    return true;
}

/* Returns the first byte of a member's value, after the quote of a string, or NULL. Like the parser, takes
 * the last of several members with the same name. Does not find a name that is written with escapes. */
static const char *find_member(const char *text, size_t bytes, const char *name)
{
    const char *found = NULL, *end = text + bytes;
    int depth = 0;
    bool is_name = false;
    for (const char *at = text; at < end; at++) {
        if (*at == '"') {
            const char *begin = ++at;
            while (at < end && *at != '"')
                at += *at == '\\' ? 2 : 1;
            if (is_name && at < end && strncmp(begin, name, (size_t)(at - begin)) == 0 && !name[at - begin]) {
                found = at + 1 + strspn(at + 1, ": \t\r\n");
                found += *found == '"';
            }
            is_name = false;
            continue;
        }
        depth += (*at == '{' || *at == '[') - (*at == '}' || *at == ']');
        is_name |= depth == 1 && (*at == '{' || *at == ',');
    }
    return found;
}

/* Reads a decimal number. Returns false if it is negative, not decimal, or too large. */
static bool scale(const char *text, int exponent, int64_t *product)
{
    static const char digits[] = "0123456789";
    const char *whole = text + (*text == '-');
    const long wholes = (long)strspn(whole, digits);
    const char *part = whole + wholes + (whole[wholes] == '.');
    const long parts = whole[wholes] == '.' ? (long)strspn(part, digits) : 0;
    char *end = (char *)part + parts;
    const long written = (*end | 0x20) == 'e' ? strtol(end + 1, &end, 10) : 0;
    *product = 0;
    if (wholes == 0 || isalnum((unsigned char)*end) || written > 1000 || written < -1000)
        return false;
    const long kept = wholes + exponent + written; /* the next digit rounds the product */
    for (long i = 0; i <= kept; i++) {
        const int digit = i < wholes ? whole[i] - '0' : i < wholes + parts ? part[i - wholes] - '0' : 0;
        if (i == kept)
            *product += digit >= 5;
        else if (*product > (INT64_MAX - 10) / 10)
            return false;
        else
            *product = *product * 10 + digit;
    }
    return *text != '-' || *product == 0;
}

bool ct_json_scaled(const json_t *object, const char *text, size_t bytes, const char *name, int exponent,
                    int64_t *product)
{
    double number;
    char decimal[64];
    if (!ct_json_is_number(json_object_get(object, name), &number))
        return false;
    const char *found = find_member(text, bytes, name);
    snprintf(decimal, sizeof(decimal), "%.17g", number);
    return scale(found ? found : decimal, exponent, product);
}

int64_t ct_json_integer(const json_t *object, const char *name, int64_t otherwise)
{
    int64_t integer;
    return ct_json_is_integer(json_object_get(object, name), &integer) ? integer : otherwise;
}

const char *ct_json_text(const json_t *object, const char *name, const char *otherwise)
{
    const json_t *value = json_object_get(object, name);
    return json_is_string(value) ? json_string_value(value) : otherwise;
}

/* ---- identities ---- */

char *ct_json_identity(const json_t *value)
{
    char *text;
    int64_t integer;
    const bool is_integer = ct_json_is_integer(value, &integer);
    if (!is_integer && !json_is_string(value))
        return strdup("");
    const int bytes = is_integer ? asprintf(&text, "%lld", (long long)integer)
                                 : asprintf(&text, "\"%s", json_string_value(value));
    return bytes < 0 ? NULL : text;
}

static bool is_plain(const char *identity, int64_t most)
{
    return *identity != '"' && *identity != '-' && strtoll(identity, NULL, 10) <= most;
}

uint64_t ct_json_identity_hash(const char *identity)
{
    uint64_t hash = UINT64_C(0xcbf29ce484222325); /* FNV-1a */
    for (; *identity; identity++)
        hash = (hash ^ (unsigned char)*identity) * UINT64_C(0x100000001b3);
    return hash;
}

int64_t ct_json_identity_number(const char *identity, int64_t most)
{
    return is_plain(identity, most) ? strtoll(identity, NULL, 10)
                                    : NAMED_BIT | (int64_t)(ct_json_identity_hash(identity) & NAMED_MASK);
}

const char *ct_json_identity_name(const char *identity, int64_t most)
{
    return is_plain(identity, most) ? "" : identity + (*identity == '"');
}
