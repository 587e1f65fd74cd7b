#include "name_numbers.h"

#include <search.h>
#include <stdlib.h>
#include <string.h>

struct name {
    uint64_t number;
    char text[];
};

static int compare(const void *a, const void *b)
{
    return strcmp(((const struct name *)a)->text, ((const struct name *)b)->text);
}

struct ct_name ct_names_number(struct ct_names *names, const char *text, bool *failed)
{
    const bool is_full = names->max && names->count >= names->max;
    const size_t bytes = strlen(text) + 1;
    struct name *name = malloc(sizeof(*name) + bytes);
    if (!name) {
        *failed = true;
        return (struct ct_name){ 0 };
    }
    name->number = names->count + 1;
    memcpy(name->text, text, bytes);
    struct name **found = is_full ? tfind(name, &names->tree, compare) : tsearch(name, &names->tree, compare);
    const bool is_new = found && *found == name;
    names->count += is_new;
    if (!is_new)
        free(name);
    *failed |= !found && !is_full;
    return found ? (struct ct_name){ .number = (*found)->number, .is_new = is_new, .text = (*found)->text }
                 : (struct ct_name){ 0 };
}

void ct_names_free(struct ct_names *names)
{
    tdestroy(names->tree, free);
    *names = (struct ct_names){ 0 };
}
