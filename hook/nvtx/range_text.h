/* The strings in range records: messages, and the names of domains and categories. */
#ifndef CT_RANGE_TEXT_H
#define CT_RANGE_TEXT_H

#include "payload.h"
#include "producer.h"

#include <wchar.h>

enum {
    CT_DOMAINS_MAX = 1024,         /* all further domains share the last number */
    CT_RANGE_MESSAGE_BYTES = 4096, /* includes the NUL; longer messages are truncated at a character
                                    * boundary */
};

/* Returns a domain's ID, which is always the same for the same name. The result is never 0, which is the ID
 * of the default domain. */
uint32_t ct_range_domain(const char *name);
/* Names a category in a domain. */
void ct_range_name_category(uint32_t domain, uint32_t category, const char *name);

/* The application's description of a range. At most one of the first three members is set. `frame` is the
 * stack address of the function that the application called. Calls at or below this address are no longer
 * open. */
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

/* An open range. */
struct ct_range_kept {
    uint64_t start; /* ticks */
    uint64_t payload;
    const char *text;    /* the message */
    uint32_t text_bytes; /* includes the NUL; 0: no message */
    uint32_t epoch;      /* the process's epoch when the range started; 0: nothing was being recorded */
    uint32_t domain, category, color, payload_type;
};

enum {
    CT_RANGE_NAME_BYTES = 256, /* size of a domain's or category's name, including the NUL */
    CT_RANGE_PAYLOAD_BYTES = sizeof(struct ct_range) + CT_RANGE_MESSAGE_BYTES + 2 * CT_RANGE_NAME_BYTES,
};
static_assert((int)CT_RANGE_PAYLOAD_BYTES <= (int)CT_PAYLOAD_MAX, "fits a record");

/* Fills in `kept` from `said`, except for `start` and `epoch`. Copies the message to `room`
 * (CT_RANGE_MESSAGE_BYTES) unless it is a registered string, which is kept forever. Returns the number of
 * bytes used in `room`. */
uint32_t ct_range_keep(struct ct_range_kept *kept, const struct ct_said *said, char *room);
/* Writes the record of a range that ends now, or of a mark, whose start is 0. `scratch` has room for
 * CT_RANGE_PAYLOAD_BYTES. `frame` is the stack address of the function that the application called. */
void ct_range_write(struct ct_producer *producer, uint32_t row, const struct ct_range_kept *kept,
                    uint32_t depth, uint64_t id, uintptr_t frame, uint64_t *scratch);
/* Writes `wide` as UTF-8 if it is set, otherwise `text`, or an empty string if neither is set. Truncates the
 * string to fit, and appends a NUL. Returns the number of bytes written. `room` is at least 1. */
size_t ct_range_text(char *to, size_t room, const char *text, const wchar_t *wide);

#endif
