/* What the formats of `cudatrace export` share: export.c calls them, export_jsonl.c, export_chrome.c and
 * export_csv.c are them. */
#ifndef CT_EXPORT_H
#define CT_EXPORT_H

#include "stream.h"

struct ct_export {
    struct ct_stream *stream;
    sqlite3 *connection;
    struct ct_stream_choice choice;
    struct ct_extent extent;
    FILE *to;
    void *state; /* the format's own */
};

/* A format; all of it but `call` may be NULL. False when it cannot go on, for want of memory or by an error
 * of SQLite. */
struct ct_export_format {
    const char *name, *summary;
    bool (*begin)(struct ct_export *);
    bool (*call)(struct ct_export *, const struct ct_stream_call *); /* in the order of return */
    bool (*end)(struct ct_export *);
    void (*finish)(struct ct_export *); /* frees its state; always called */
};
extern const struct ct_export_format ct_export_jsonl, ct_export_chrome, ct_export_csv;

/* {"a":1,…}: what the call's row of details has, without the braces, each member behind `before` and then
 * commas; the number of members. */
int ct_export_details(struct ct_export *to, const struct ct_stream_call *call, const char *before);

#endif
