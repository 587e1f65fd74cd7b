#include "page_cache.h"

#include "room.h"

#include <sqlite3.h>

static sqlite3_pcache_methods2 real_cache;
static bool is_installed;
static _Thread_local struct ct_page_list *watching;
static _Thread_local const struct ct_page_list *dropping;

static sqlite3_pcache_page *fetch(sqlite3_pcache *cache, unsigned number, int create)
{
    sqlite3_pcache_page *page = real_cache.xFetch(cache, number, create);
    struct ct_page_list *list = watching;
    if (!list || !page)
        return page;
    if (ct_make_room(&list->page, list->count, &list->room, sizeof(*list->page)))
        list->page[list->count++] = page->pBuf;
    else
        list->is_incomplete = true;
    return page;
}

static int compare(const void *a, const void *b)
{
    const uint8_t *first = *(uint8_t *const *)a, *second = *(uint8_t *const *)b;
    return (first > second) - (first < second);
}

static void unpin(sqlite3_pcache *cache, sqlite3_pcache_page *page, int discard)
{
    const struct ct_page_list *list = dropping;
    if (list && bsearch(&page->pBuf, list->page, list->count, sizeof(*list->page), compare))
        discard = 1;
    real_cache.xUnpin(cache, page, discard);
}

bool ct_page_cache_install(void)
{
    sqlite3_pcache_methods2 window;
    if (is_installed)
        return true;
    if (sqlite3_config(SQLITE_CONFIG_GETPCACHE2, &real_cache) != SQLITE_OK || real_cache.iVersion < 1)
        return false;
    window = real_cache;
    window.xFetch = fetch;
    window.xUnpin = unpin;
    is_installed = sqlite3_config(SQLITE_CONFIG_PCACHE2, &window) == SQLITE_OK;
    return is_installed;
}

bool ct_page_cache_is_installed(void)
{
    return is_installed;
}

void ct_page_cache_watch(struct ct_page_list *list)
{
    watching = list;
}

void ct_page_cache_drop(const struct ct_page_list *list)
{
    dropping = list && list->count > 0 ? list : NULL;
    if (dropping)
        qsort(list->page, list->count, sizeof(*list->page), compare);
}
