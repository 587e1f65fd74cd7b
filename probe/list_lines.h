/* The patterns of `cudatrace probe --list`, and the lines that it prints. */
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

/* Returns whether the pattern may match targets of the kind: it has no kind, or this one. Returns the pattern
 * without its kind in *rest. */
bool ct_list_is_of_kind(const char *pattern, enum ct_hook_kind kind, const char **rest);
/* Returns whether a pattern may match targets of the kind. */
bool ct_list_wants(const struct ct_list *list, enum ct_hook_kind kind);
/* Returns whether a pattern of that kind matches the text, and notes all that do. `name` is the last part of
 * the text, which patterns without a kind may match instead. */
bool ct_list_takes(struct ct_list *list, enum ct_hook_kind kind, const char *text, const char *name);

/* The fields of a line, and a declaration in the form of C as its comment. */
struct ct_list_fields {
    char text[1024], declaration[1024];
    char name[CT_HOOK_FIELDS][CT_FIELD_NAME_MAX + 1];
    int fields, texts;
};
/* Adds a field if the line has room for it, and no field of that name. */
void ct_list_add_field(struct ct_list_fields *fields, const char *name, const char *source, bool is_text);
__attribute__((format(printf, 2, 3))) void ct_list_declare(struct ct_list_fields *fields, const char *format,
                                                           ...);

/* Makes a name for a line that no earlier line has, from a name such as the function's. *names are the names
 * so far, for tsearch(). Returns NULL if out of memory. */
const char *ct_list_take_name(void **names, const char *wanted);

/* Prints a line. `target` begins with its kind. `name` suggests a name for the line. `fields` and `remark`
 * may be NULL. `barred` is the reason why a hook on the target would be refused, or NULL. */
void ct_list_print(struct ct_list *list, const char *target, const char *name,
                   const struct ct_list_fields *fields, const char *remark, const char *barred);

/* These list their kind of target. They print what could not be read. */
void ct_list_functions(struct ct_list *list);
void ct_list_tracepoints(struct ct_list *list);
void ct_list_libraries(struct ct_list *list);

#endif
