/* Finds the short name of a kernel, in one pass over its demangled name. */
#include "kernel_name.h"

#include <stdbool.h>
#include <string.h>

/* Returns the position after the bracket that closes the one at `open`, or the end of the text. Only brackets
 * of the same kind count, because `(a > b)` may be a template argument. */
static const char *past_brackets(const char *open)
{
    const char opening = *open, closing = opening == '<' ? '>' : ')';
    size_t depth = 0;
    for (const char *at = open; *at; at++) {
        if (opening == '<' && *at == '(') {
            at = past_brackets(at) - 1;
            continue;
        }
        depth += *at == opening;
        if (*at == closing && --depth == 0)
            return at + 1;
    }
    return open + strlen(open);
}

const char *ct_kernel_name_short(const char *demangled, size_t *length)
{
    const char *start = demangled, *at = demangled;
    while (*at) {
        if (*at == '<' || *at == '(') {
            const char *past = past_brackets(at);
            const bool is_scope = strncmp(past, "::", 2) == 0;
            if (at > start && !is_scope)
                break;
            at = past;
        } else if (*at == ' ') {
            start = ++at;
        } else if (strncmp(at, "::", 2) == 0) {
            start = at += 2;
        } else {
            at++;
        }
    }
    *length = (size_t)(at - start);
    if (*length > 0)
        return start;
    *length = strlen(demangled);
    return demangled;
}
