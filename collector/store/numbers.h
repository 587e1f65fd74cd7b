/* Assigns numbers to combinations that calls share: sites, shapes, routes, subjects, fields, tasks of
 * GPUs, texts and threads. Numbers are assigned in memory, and the row that defines a number is written
 * later. After a rollback, and in the next file, numbering continues after the highest numbers in the
 * database. Functions return 0 if out of memory. */
#ifndef CT_NUMBERS_H
#define CT_NUMBERS_H

#include "call.h"
#include "store_names.h"

#include <stddef.h>
#include <stdint.h>

struct ct_field;
struct ct_store;

int64_t ct_store_site(struct ct_store *store, const struct ct_call *call);
int64_t ct_store_thread(struct ct_store *store, int64_t process_id, uint32_t tid, const char *name);

/* Returns the number of a shape, a route, a subject or a task of a GPU. */
int64_t ct_store_number(struct ct_store *store, enum ct_number kind, const int64_t *value, const char *text);
/* Returns the number of a set of fields, which consists of the names and types that the fields of a
 * function's calls have. Also returns 0 if there are no fields. */
int64_t ct_store_field_set(struct ct_store *store, int64_t function_id, const struct ct_field *field,
                           size_t count);
/* Returns the number of a string chosen by an application, which must be NUL-terminated UTF-8. */
int64_t ct_store_text(struct ct_store *store, const char *text);

/* ---- only for the store ---- */

void ct_store_numbers_init(struct ct_store *store);
void ct_store_numbers_finish(struct ct_store *store);
/* Invalidates all numbers, and continues after the highest numbers in the database. Sets numbers_unknown if
 * the numbers in the database cannot be read. */
void ct_store_forget_numbers(struct ct_store *store);
/* Invalidates all numbers, and continues after the last assigned number. */
void ct_store_renumber(struct ct_store *store);

#endif
