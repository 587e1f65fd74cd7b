/* Assigns IDs to combinations of values that many calls share: sites, shapes, routes, subjects, field sets
 * and GPU tasks. Also assigns IDs to strings and threads. IDs are assigned in memory, and the row that
 * defines an ID is written later. After a rollback, and in the next file, numbering continues after the
 * highest ID in the database. Functions return 0 if out of memory. */
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

/* Returns the ID of a shape, route, subject or GPU task. */
int64_t ct_store_number(struct ct_store *store, enum ct_number kind, const int64_t *value, const char *text);
/* Returns the ID of a field set, which consists of the names and types of the fields in a function's calls.
 * Also returns 0 if there are no fields. */
int64_t ct_store_field_set(struct ct_store *store, int64_t function_id, const struct ct_field *field,
                           size_t count);
/* Returns the ID of a string chosen by an application, which must be NUL-terminated UTF-8. */
int64_t ct_store_text(struct ct_store *store, const char *text);

/* ---- only for the store ---- */

void ct_store_numbers_init(struct ct_store *store);
void ct_store_numbers_finish(struct ct_store *store);
/* Invalidates all IDs, and continues after the highest IDs in the database. Sets numbers_unknown if those
 * cannot be read. */
void ct_store_forget_numbers(struct ct_store *store);
/* Invalidates all IDs, and continues after the last assigned ID. */
void ct_store_renumber(struct ct_store *store);

#endif
