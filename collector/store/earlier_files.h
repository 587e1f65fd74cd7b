/* Looks up calls in a trace's earlier files, only to check whether they use a late row's id. Opens them
 * read-only at the first such row. */
#ifndef CT_EARLIER_FILES_H
#define CT_EARLIER_FILES_H

#include "database.h"

struct ct_earlier_files {
    uint64_t until_ns; /* none of their calls returned later; 0: no such files */
    uint32_t files;
    bool open;
    struct {
        sqlite3 *connection;
        sqlite3_stmt *find;
    } file[CT_SERIES_FILES_MAX];
};

/* Closes all files. The earlier files now end at `until_ns`. */
void ct_earlier_files_begin(struct ct_earlier_files *earlier, uint64_t until_ns);
/* Returns whether a file before the current one has a call with that call_id. */
bool ct_earlier_files_has(struct ct_earlier_files *earlier, const struct ct_database *database,
                          uint64_t call_id);

#endif
