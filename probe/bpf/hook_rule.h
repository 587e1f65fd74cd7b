/* The rule of a hook, which the probe shares with the BPF programs. Each hook is defined by a line of a table
 * (hook_table.h). */
#ifndef CT_PROBE_HOOK_RULE_H
#define CT_PROBE_HOOK_RULE_H

#include "calls.h"

#include <stdbool.h>

enum {
    CT_HOOK_FIELDS = 8,
    CT_HOOK_CONDITIONS = 4,
    CT_HOOK_TEXTS = 2,        /* fields of a hook that are texts */
    CT_HOOK_TEXT_BYTES = 256, /* including the NUL */
};

enum ct_hook_origin {
    CT_ORIGIN_ARGUMENT = 0,
    CT_ORIGIN_RESULT = 1,
    CT_ORIGIN_RECORD = 2,   /* a tracepoint's record */
    CT_ORIGIN_DURATION = 3, /* nanoseconds */
    CT_ORIGIN_PID = 4, /* of the thread that runs, in the initial pid namespace; also of a kernel thread */
    CT_ORIGIN_TID = 5,
};

enum ct_hook_form {
    CT_FORM_VALUE = 0,    /* the value at the origin */
    CT_FORM_MEMORY = 1,   /* the origin is an address; the value is in memory at `offset` from it */
    CT_FORM_TEXT = 2,     /* the same for a NUL-terminated text */
    CT_FORM_LOCATION = 3, /* the record has a text, whose place the value (__data_loc) contains */
    CT_FORM_TASK = 4,     /* the name of the thread that runs; the origin has no meaning */
};

/* Describes where a value is read from. */
struct ct_hook_source {
    uint8_t origin; /* enum ct_hook_origin */
    uint8_t form;   /* enum ct_hook_form */
    uint8_t bytes;  /* 1, 2, 4 or 8, for numbers */
    uint8_t is_signed;
    uint8_t argument; /* below CT_PROBE_ARGUMENTS */
    uint8_t text;     /* for texts: the index among the hook's texts; CT_HOOK_TEXTS for CT_FORM_TASK */
    uint16_t reserved;
    int32_t offset; /* in memory or in the record */
};

static inline bool ct_hook_is_text(const struct ct_hook_source *source)
{
    return source->form >= CT_FORM_TEXT;
}

enum ct_hook_comparison {
    CT_IS_EQUAL,
    CT_IS_UNEQUAL,
    CT_IS_LESS,
    CT_IS_LESS_OR_EQUAL,
    CT_IS_GREATER,
    CT_IS_GREATER_OR_EQUAL,
    CT_HAS_BITS, /* at least one bit of the number is set */
};

struct ct_hook_condition {
    struct ct_hook_source source;
    uint32_t comparison; /* enum ct_hook_comparison */
    uint64_t number;     /* two's complement, if the source is signed */
};

/* The threads whose calls are recorded. */
enum ct_hook_scope {
    CT_SCOPE_PROCESSES = 0, /* threads of recorded processes */
    CT_SCOPE_CALLS = 1,     /* those that are in a recorded call */
    CT_SCOPE_MACHINE = 2,   /* all threads, and interrupts; for instants in the kernel */
};

#define CT_HOOK_COUNTS 0xffffffffU

struct ct_hook_rule {
    uint32_t function;   /* its number (functions.h) */
    uint32_t scope;      /* enum ct_hook_scope */
    uint32_t per_second; /* calls that are recorded in a second; 0: all */
    uint32_t one_of; /* of this many calls, one is recorded; 0: all; CT_HOOK_COUNTS: none. All are counted */
    uint8_t fields, conditions, texts;
    uint8_t is_kernel; /* addresses may be in the kernel */
    uint8_t stack_words;
    uint8_t is_entry; /* recorded at the entry of the function, without its duration and its result */
    uint8_t reserved[2];
    struct ct_hook_source field[CT_HOOK_FIELDS];
    struct ct_hook_condition condition[CT_HOOK_CONDITIONS];
};

/* The record of a call to a hooked function. Bit `i` of `record.read` is set if field `i` was read. */
struct ct_probe_hooked {
    struct ct_probe_record record;
    uint64_t value[CT_HOOK_FIELDS];               /* of a text: its length, with the NUL */
    char task[CT_PROBE_COMM];                     /* of CT_FORM_TASK */
    char text[CT_HOOK_TEXTS][CT_HOOK_TEXT_BYTES]; /* missing if the rule has no texts */
};
enum { CT_HOOKED_BYTES = sizeof(struct ct_probe_record) + CT_HOOK_FIELDS * sizeof(uint64_t) + CT_PROBE_COMM };

enum { CT_HOOK_RULES = 513 }; /* for the present table, its successor, and the probe's own hook */

/* The number of calls that were recorded in one second. */
struct ct_hook_second {
    uint64_t number; /* of CLOCK_MONOTONIC */
    uint32_t calls;
};

#endif
