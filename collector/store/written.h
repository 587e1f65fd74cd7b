/* Detects that another program has written to the database file. This process writes to it only when it
 * copies the log. */
#ifndef CT_WRITTEN_H
#define CT_WRITTEN_H

#include "database.h"

/* Records the time of this process's last write. Call after each copy of the log. */
void ct_written_note(struct ct_database *database);
/* Logs a message if the file was written after the recorded time. */
void ct_written_check(struct ct_database *database);

#endif
