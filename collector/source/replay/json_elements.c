#include "json_elements.h"

#include <string.h>

static int next(struct ct_json_elements *from)
{
    const int byte = getc_unlocked(from->file);
    from->at += byte != EOF;
    return byte;
}

static void unread(struct ct_json_elements *from, int byte)
{
    from->at -= byte != EOF;
    ungetc(byte, from->file);
}

static void keep(struct ct_json_elements *from, int byte)
{
    if (from->bytes < CT_ELEMENT_BYTES)
        from->text[from->bytes] = (char)byte;
    from->bytes++;
}

int ct_json_next_byte(struct ct_json_elements *from)
{
    int byte;
    do
        byte = next(from);
    while (byte == ' ' || byte == '\t' || byte == '\r' || byte == '\n');
    return byte;
}

/* Call after the opening quote. */
static bool read_string(struct ct_json_elements *from)
{
    for (int byte; (byte = next(from)) != EOF;) {
        keep(from, byte);
        if (byte == '"')
            return true;
        if (byte == '\\') {
            if ((byte = next(from)) == EOF)
                return false;
            keep(from, byte);
        }
    }
    return false;
}

/* Reads a number or a keyword. Call after its first byte has been read. */
static bool read_word(struct ct_json_elements *from)
{
    int byte;
    while ((byte = next(from)) != EOF && !strchr(",]} \t\r\n", byte ? byte : ','))
        keep(from, byte);
    unread(from, byte);
    return true;
}

/* Reads an object or an array as text, which is parsed later. Call after the opening bracket has been
 * read. */
static bool read_nested(struct ct_json_elements *from)
{
    int byte;
    for (int64_t depth = 1; depth > 0;) {
        if ((byte = next(from)) == EOF)
            return false;
        keep(from, byte);
        if (byte == '"' && !read_string(from))
            return false;
        depth += (byte == '{' || byte == '[') - (byte == '}' || byte == ']');
    }
    return true;
}

bool ct_json_value(struct ct_json_elements *from, int first)
{
    from->begin = from->at - 1;
    from->bytes = 0;
    keep(from, first);
    const bool good = first == '"'                   ? read_string(from)
                      : first == '{' || first == '[' ? read_nested(from)
                                                     : read_word(from);
    from->text[from->bytes < CT_ELEMENT_BYTES ? from->bytes : CT_ELEMENT_BYTES] = '\0';
    return good;
}
