/* The calls of a trace's earlier files, asked for one thing: whether a late row's identity is taken there.
 * They are opened at the first such row, read-only. */
#ifndef CT_EARLIER_H
#define CT_EARLIER_H

#include "database.h"

struct ct_earlier {
    uint64_t until_ns; /* none of their calls returned later; 0: there are no such files */
    uint32_t files;
    bool open;
    struct {
        sqlite3 *connection;
        sqlite3_stmt *find;
    } file[CT_SERIES_FILES_MAX];
};

/* Closes what is open; the earlier files end at `until_ns` from here on. */
void ct_earlier_begin(struct ct_earlier *earlier, uint64_t until_ns);
/* Returns whether one of the files before the one in use has a call of that call_id. */
bool ct_earlier_has(struct ct_earlier *earlier, const struct ct_database *database, uint64_t call_id);

#endif
