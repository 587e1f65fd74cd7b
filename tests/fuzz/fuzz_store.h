/* Creates a new database for each input. The target's collector stores its rows in this database. Checks
 * invariants that hold for any input: sums match the rows, no number is negative, and every string is
 * valid. */
#ifndef FUZZ_STORE_H
#define FUZZ_STORE_H

#include "store.h"

_Noreturn void fuzz_fail(const char *what, const char *more);

/* Returns the path of the folder for a target's files. The path has fewer than 80 characters. Before exiting,
 * a target must remove its own files from the folder. */
const char *fuzz_folder(void);

struct ct_store *fuzz_store_open(void);
void fuzz_store_check(void);
void fuzz_store_check_none(const char *sql); /* fails unless the query's result is 0 */
void fuzz_store_close(struct ct_store *store);

#endif
