/* Matches the patterns given to `cudatrace probe --list`, and prints the matching lines. */
#ifndef CT_PROBE_LIST_LINES_H
#define CT_PROBE_LIST_LINES_H

#include "hook_table.h"
#include "probe_options.h"

#include <stdio.h>

struct ct_list {
    const struct ct_probe_options *options;
    bool is_matched[CT_PROBE_PATTERNS_MAX]; /* the pattern matches at least one target */
    void *names;                            /* the names of printed lines, for tsearch() */
};

/* Returns whether the pattern can match targets of the given kind: it either names that kind, or no kind at
 * all. Sets *rest to the pattern without its kind. */
bool ct_list_is_of_kind(const char *pattern, enum ct_hook_kind kind, const char **rest);
/* Returns whether any pattern can match targets of the given kind. */
bool ct_list_wants(const struct ct_list *list, enum ct_hook_kind kind);
/* Returns whether any pattern matches the target `text` of the given kind, and marks all patterns that do. A
 * pattern without a kind may also match just `name`, the last part of the text. */
bool ct_list_takes(struct ct_list *list, enum ct_hook_kind kind, const char *text, const char *name);

/* The fields of a line, and a C declaration for the comment at its end. */
struct ct_list_fields {
    char text[1024], declaration[1024];
    char name[CT_HOOK_FIELDS][CT_FIELD_NAME_MAX + 1];
    int fields, texts;
};
/* Adds a field if there is room for it in the line, and if no other field has the same name. */
void ct_list_add_field(struct ct_list_fields *fields, const char *name, const char *source, bool is_text);
__attribute__((format(printf, 2, 3))) void ct_list_declare(struct ct_list_fields *fields, const char *format,
                                                           ...);

/* Derives a unique name for a line from a suggestion, such as the function's name. *names is a tree of the
 * names used so far, as tsearch() makes it. Returns NULL if out of memory. */
const char *ct_list_take_name(void **names, const char *wanted);

/* Prints a line. `target` begins with its kind. `name` is a suggestion for the line's name. `fields` and
 * `remark` can be NULL. If a hook on the target would be refused, `barred` is the reason; otherwise, it is
 * NULL. */
void ct_list_print(struct ct_list *list, const char *target, const char *name,
                   const struct ct_list_fields *fields, const char *remark, const char *barred);

/* Each of these functions lists one kind of target. They print an error for anything that cannot be read. */
void ct_list_functions(struct ct_list *list);
void ct_list_tracepoints(struct ct_list *list);
void ct_list_libraries(struct ct_list *list);

#endif
