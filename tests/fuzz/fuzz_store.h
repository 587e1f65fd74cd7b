/* Makes the database that a target has the collector write, a fresh one for each input, and checks what it
 * must hold whatever the input is: sums and rows agree, no number is negative, no text is broken. */
#ifndef FUZZ_STORE_H
#define FUZZ_STORE_H

#include "store.h"

_Noreturn void fuzz_fail(const char *what, const char *more);

/* The target's files have to be gone when it ends; the name has less than 80 characters. */
const char *fuzz_folder(void);

struct ct_store *fuzz_store_open(void);
void fuzz_store_check(void);
void fuzz_store_check_none(const char *sql); /* that what it counts is 0 */
void fuzz_store_close(struct ct_store *store);

#endif
