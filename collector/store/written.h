/* Whether another program writes the file of a database. This process writes it only as it copies the log
 * into it. */
#ifndef CT_WRITTEN_H
#define CT_WRITTEN_H

#include "database.h"

/* Notes when this process wrote the file: after each copy of the log. */
void ct_written_note(struct ct_database *database);
/* Logs, if the file was written since then. */
void ct_written_check(struct ct_database *database);

#endif
