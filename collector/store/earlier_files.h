/* Checks whether the ID chosen for a late row is already used by a call in the trace's earlier files. Opens
 * these files read-only when the first late row arrives. */
#ifndef CT_EARLIER_FILES_H
#define CT_EARLIER_FILES_H

#include "database.h"

struct ct_earlier_files {
    uint64_t until_ns; /* no call in an earlier file returned after this time; 0: no earlier files */
    uint32_t files;
    bool open;
    struct {
        sqlite3 *connection;
        sqlite3_stmt *find;
    } file[CT_SERIES_FILES_MAX];
};

/* Closes all earlier files, and sets the return time of the last call in them. */
void ct_earlier_files_begin(struct ct_earlier_files *earlier, uint64_t until_ns);
/* Returns whether any file before the current one has a call with this call_id. */
bool ct_earlier_files_has(struct ct_earlier_files *earlier, const struct ct_database *database,
                          uint64_t call_id);

#endif
