/* The texts of ranges: messages, and the names of domains and categories; and their records, which carry
 * these texts themselves. */
#ifndef CT_RANGE_TEXT_H
#define CT_RANGE_TEXT_H

#include "payload.h"
#include "producer.h"

#include <wchar.h>

enum {
    CT_DOMAINS_MAX = 1024,         /* the last one stands for all that exceed it */
    CT_RANGE_MESSAGE_BYTES = 4096, /* with its NUL; what exceeds it is cut at a character */
};

/* A domain by its name: the same number for the same name. Never 0, which is the default domain. */
uint32_t ct_range_domain(const char *name);
/* Names a category of a domain. */
void ct_range_name_category(uint32_t domain, uint32_t category, const char *name);

/* The application's words about a range. One of the first three at most is set. `frame` is that
 * of the function which the application called: what lies at or below it is not open any more. */
struct ct_said {
    const char *message;
    const wchar_t *wide;
    uint64_t registered; /* string number of ct_names_string() */
    const void *frame;
    uint64_t payload;
    uint32_t domain;
    uint32_t category;
    uint32_t color;
    uint32_t payload_type; /* as in struct ct_range */
};

/* A range from its start to its end. */
struct ct_range_kept {
    uint64_t start; /* ticks */
    uint64_t payload;
    const char *text;    /* the message */
    uint32_t text_bytes; /* with its NUL; 0 for none */
    uint32_t epoch;      /* the process's epoch when it started; 0: nothing was recorded then */
    uint32_t domain, category, color, payload_type;
};

enum {
    CT_RANGE_NAME_BYTES = 256, /* bytes of a domain's or a category's name, with its NUL */
    CT_RANGE_PAYLOAD_BYTES = sizeof(struct ct_range) + CT_RANGE_MESSAGE_BYTES + 2 * CT_RANGE_NAME_BYTES,
};
static_assert((int)CT_RANGE_PAYLOAD_BYTES <= (int)CT_PAYLOAD_MAX, "fits a record");

/* Takes over what is said, start and epoch excepted. A message that may not outlast the call is copied to
 * `room`, CT_RANGE_MESSAGE_BYTES of it; the bytes used there. */
uint32_t ct_range_keep(struct ct_range_kept *kept, const struct ct_said *said, char *room);
/* Writes the record of a range that ends now: start 0 for a mark. `scratch` has CT_RANGE_PAYLOAD_BYTES, and
 * `frame` is that of the function that the application called. */
void ct_range_write(struct ct_producer *producer, uint32_t row, const struct ct_range_kept *kept,
                    uint32_t depth, uint64_t id, uintptr_t frame, uint64_t *scratch);
/* The text, or the wide characters as UTF-8, or neither, with a NUL, cut to fit; the bytes written. `room` is
 * at least 1. */
size_t ct_range_text(char *to, size_t room, const char *text, const wchar_t *wide);

#endif
