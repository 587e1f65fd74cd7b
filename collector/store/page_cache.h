/* Intercepts SQLite's page cache through sqlite3_pcache_methods2. Reports the pages that a connection uses
 * and their addresses, and makes it drop some of them after use. SQLite's own cache still does all the
 * work. */
#ifndef CT_PAGE_CACHE_H
#define CT_PAGE_CACHE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Installs the interception for the whole process, before its first use of SQLite. Returns false if SQLite
 * was used already, or does not support it. */
bool ct_page_cache_install(void);
bool ct_page_cache_is_installed(void);

/* Pages in the order of the requests. They are valid while SQLite uses them. SQLite uses a changed page until
 * the transaction ends. */
struct ct_page_list {
    uint8_t **page;
    size_t count, room;
    bool is_incomplete; /* out of memory */
};

/* Adds to the list the pages that SQLite requests in this thread. With NULL, stops adding. */
void ct_page_cache_watch(struct ct_page_list *list);
/* Makes the cache drop these pages as soon as SQLite stops using them in this thread, so that SQLite re-reads
 * them when needed. Sorts the list, which must remain valid until a call with NULL. */
void ct_page_cache_drop(const struct ct_page_list *list);

#endif
