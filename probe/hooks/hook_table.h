/* A table of hooks is a text file. Each line defines a function or a tracepoint to record:
 *
 *     kprobe:FUNCTION[|FUNCTION…] NAME [FIELD=SOURCE …] [CLAUSE …]
 *     uprobe:LIBRARY:FUNCTION     NAME [FIELD=SOURCE …] [CLAUSE …]
 *     tracepoint:GROUP:EVENT      NAME [FIELD=SOURCE …] [CLAUSE …]
 *
 * A target may be a pattern with `*`, `?` and `[…]`, which stands for all targets that match (hook_expand.h).
 * The name `*` stands for the name of each. If several functions are listed, the first one that exists in the
 * kernel is recorded. A source is an argument (`arg0`), the result (`ret`), or a field of the tracepoint. A
 * type can be appended (`arg1:u32`, `arg0:str`). `arg1+16:u64` is a number at an offset in the memory that
 * the argument points to. The clauses are `if SOURCE COMPARISON NUMBER [and …]`, `limit N/s`, `sample N`,
 * `count`, `in calls`, `in processes` or `in machine`, `at entry` and `nothrow`. `#` begins a comment.
 */
#ifndef CT_PROBE_HOOK_TABLE_H
#define CT_PROBE_HOOK_TABLE_H

#include "fields.h"
#include "hook_rule.h"
#include "segment.h"

#include <stdbool.h>
#include <stddef.h>

enum ct_hook_kind { CT_HOOK_KPROBE, CT_HOOK_UPROBE, CT_HOOK_TRACEPOINT };

enum { CT_HOOKS_MAX = 256 }; /* in a table */

struct ct_hook_entry {
    const char *source; /* the file, or the option, for messages */
    unsigned line;      /* its number in the source; 0 for a hook of ct_hook_table_add() */
    enum ct_hook_kind kind;
    char *place;  /* of kprobes: the functions, separated by '|'; a library; a tracepoint's group */
    char *symbol; /* of uprobes: the function; of tracepoints: the event; otherwise NULL */
    char name[CT_FUNCTION_NAME_MAX + 1]; /* empty: the name of each target of a pattern */
    char field_name[CT_HOOK_FIELDS][CT_FIELD_NAME_MAX + 1];
    /* For tracepoints, the names of fields in the record. ct_hook_find_all() sets the sources from them. NULL
     * for other hooks. */
    char *field_place[CT_HOOK_FIELDS], *condition_place[CT_HOOK_CONDITIONS];
    char *pattern;   /* of a hook that a line with a pattern stands for: the line's target; otherwise NULL */
    bool is_nothrow; /* no C++ exception leaves the function */
    struct ct_hook_rule rule;
    /* Set by ct_hook_find_all(): */
    bool is_found;
    char *function;  /* of kprobes: the first function that the kernel has; otherwise NULL */
    uint64_t offset; /* of uprobes: the function's place in the file, */
    int file;        /* and a descriptor of the file; 0: none */
    int event;       /* of tracepoints: the kernel's number */
};

struct ct_hook_table {
    struct ct_hook_entry *hook;
    size_t count, room;
};

/* Adds the hooks defined in the text, which must not contain errors. Returns false if out of memory. */
bool ct_hook_table_add(struct ct_hook_table *table, const char *text);
/* Where a table's lines are. */
struct ct_hook_lines {
    const char *path;        /* a file; "-": standard input; NULL: none */
    const char *const *line; /* further lines (--hook) */
    size_t lines;
    char *input; /* what standard input contained, once it has been read; freed with the process */
};

/* Returns whether there is a table. */
static inline bool ct_hook_lines_exist(const struct ct_hook_lines *lines)
{
    return lines->path || lines->lines > 0;
}

/* Returns whether the hook's target is a pattern. */
bool ct_hook_is_pattern(const struct ct_hook_entry *hook);
/* Adds the hooks in the lines. Prints each error with its line number. Returns true if there were no errors.
 * In both cases, the caller may free the table. */
bool ct_hook_table_read(struct ct_hook_table *table, struct ct_hook_lines *lines);
void ct_hook_entry_free(struct ct_hook_entry *hook);
void ct_hook_table_free(struct ct_hook_table *table);

#endif
