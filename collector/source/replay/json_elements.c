#include "json_elements.h"

#include "room.h"

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
    if (from->is_short || !ct_make_room_for(&from->text, from->bytes, 2, &from->room, 1)) {
        from->is_short = true;
        return;
    }
    from->text[from->bytes++] = (char)byte;
    from->text[from->bytes] = '\0';
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
    from->is_short = false;
    keep(from, first);
    return first == '"'                   ? read_string(from)
           : first == '{' || first == '[' ? read_nested(from)
                                          : read_word(from);
}
