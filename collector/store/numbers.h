/* Numbers for combinations that calls have in common: sites, shapes, routes, subjects, texts and threads get
 * theirs in memory, and a row that explains each is deferred. After a rollback, and in the next file, they go
 * on behind what the database has. 0 when memory is short. */
#ifndef CT_NUMBERS_H
#define CT_NUMBERS_H

#include "store_names.h"

#include <stdint.h>

struct ct_store;

int64_t ct_store_site(struct ct_store *store, int64_t thread_id, int64_t function_id, uint32_t depth,
                      int32_t status);
int64_t ct_store_thread(struct ct_store *store, int64_t process_id, uint32_t tid, const char *name);

/* A shape, a route or a subject. */
int64_t ct_store_number(struct ct_store *store, enum ct_number kind, const int64_t *value, const char *text);
/* A text that an application made up, NUL-terminated UTF-8. */
int64_t ct_store_text(struct ct_store *store, const char *text);
/* Counts up when numbers that were given before are void. */
uint32_t ct_store_numbering(const struct ct_store *store);

/* The store's own: begins and ends; all that were given are void, and go on behind those that the database
 * has (where these cannot be read, numbers_unknown says so); numbers are given anew from here on, behind
 * those given so far. */
void ct_store_numbers_init(struct ct_store *store);
void ct_store_numbers_finish(struct ct_store *store);
void ct_store_forget_numbers(struct ct_store *store);
void ct_store_renumber(struct ct_store *store);

#endif
