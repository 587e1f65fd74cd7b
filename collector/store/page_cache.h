/* Intercepts SQLite's page cache through sqlite3_pcache_methods2. Reports the pages that a connection uses,
 * with their addresses, and makes the cache drop some pages after use. SQLite's own cache still does all the
 * work. */
#ifndef CT_PAGE_CACHE_H
#define CT_PAGE_CACHE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Installs the interception for the whole process. Must be called before the process first uses SQLite.
 * Returns false if SQLite has already been used, or does not support the interception. */
bool ct_page_cache_install(void);
bool ct_page_cache_is_installed(void);

/* Pages in the order in which SQLite requested them. A page is valid while SQLite uses it, which for a
 * changed page is until the transaction ends. */
struct ct_page_list {
    uint8_t **page;
    size_t count, room;
    bool is_incomplete; /* out of memory */
};

/* From now on, adds the pages that SQLite requests in this thread to `list`, or to no list if it is NULL. */
void ct_page_cache_watch(struct ct_page_list *list);
/* Makes the cache drop the listed pages as soon as SQLite stops using them in this thread, so that SQLite
 * re-reads them when it needs them. Sorts the list, which must remain valid until the function is called with
 * NULL. */
void ct_page_cache_drop(const struct ct_page_list *list);

#endif
