/* Detects that another program writes the database file. This process writes it only when it copies the log
 * into it. */
#ifndef CT_WRITTEN_H
#define CT_WRITTEN_H

#include "database.h"

/* Records the time of the last write by this process. Call after each copy of the log. */
void ct_written_note(struct ct_database *database);
/* Logs a message if the file was written after the recorded time. */
void ct_written_check(struct ct_database *database);

#endif
