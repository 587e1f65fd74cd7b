/* SQLite's page cache with a window: which pages a connection works on, where they lie in memory, and that it
 * is to keep some no longer than it uses them. SQLite has an interface for this (sqlite3_pcache_methods2);
 * behind it stands SQLite's own cache, as before. */
#ifndef CT_PAGE_CACHE_H
#define CT_PAGE_CACHE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Puts the window in, for the whole process and before its first use of SQLite. False: SQLite was used
 * already, or wants no such thing. */
bool ct_page_cache_install(void);
bool ct_page_cache_is_installed(void);

/* Pages in the order in which they were asked for. They are valid while SQLite uses them, as a page that was
 * changed is until its transaction ends. */
struct ct_page_list {
    uint8_t **page;
    size_t count, room;
    bool is_incomplete; /* without memory */
};

/* From here on the pages that SQLite asks for in this thread are added to the list; NULL ends that. */
void ct_page_cache_watch(struct ct_page_list *list);
/* SQLite reads these pages, which it is using in this thread, anew when it needs them again: they leave the
 * cache as soon as it does not use them. The list, which is put in order, stays until it is taken back by
 * NULL. */
void ct_page_cache_drop(const struct ct_page_list *list);

#endif
