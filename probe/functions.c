#include "functions.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

static const struct {
    const char *name;
    uint32_t category;
} known[] = {
#define ROW(name, category, stack, decoder) { #name, CT_CATEGORY_##category },
#include "driver_api.def"
#undef ROW
};

static int compare(const void *name, const void *row)
{
    return strcmp(name, ((const __typeof__(known[0]) *)row)->name);
}

static const __typeof__(known[0]) *find_known(const char *name)
{
    return bsearch(name, known, sizeof(known) / sizeof(known[0]), sizeof(known[0]), compare);
}

bool ct_functions_is_known(const char *name)
{
    return find_known(name) != NULL;
}

struct ct_function_table *ct_functions_create(void)
{
    void *memory = mmap(NULL, sizeof(struct ct_function_table), PROT_READ | PROT_WRITE,
                        MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    return memory == MAP_FAILED ? NULL : memory;
}

uint32_t ct_functions_number(struct ct_function_table *table, const char *name)
{
    for (uint32_t i = 0; i < table->count; i++) {
        if (strncmp(table->entry[i].name, name, CT_FUNCTION_NAME_MAX) == 0)
            return i;
    }
    if (table->count == CT_PROBE_FUNCTIONS)
        return CT_PROBE_FUNCTIONS;
    struct ct_function_entry *entry = &table->entry[table->count];
    const __typeof__(known[0]) *row = find_known(name);
    strncpy(entry->name, name, CT_FUNCTION_NAME_MAX);
    entry->category = row ? row->category : CT_CATEGORY_other;
    entry->is_minor = ct_name_asks(name) || !ct_category_says_more(entry->category);
    __atomic_store_n(&table->count, table->count + 1, __ATOMIC_RELEASE);
    return table->count - 1;
}
