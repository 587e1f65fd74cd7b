#include "name_numbers.h"

#include "room.h"

#include <search.h>
#include <string.h>

struct name {
    uint64_t number;
    char text[];
};

static int compare(const void *a, const void *b)
{
    return strcmp(((const struct name *)a)->text, ((const struct name *)b)->text);
}

static bool add(struct ct_names *names, struct name *name)
{
    const size_t number = names->count + 1; /* numbers begin at 1 */
    if (!ct_make_room(&names->text, number, &names->room, sizeof(*names->text)) ||
        !tsearch(name, &names->tree, compare))
        return false;
    name->number = number;
    names->text[number] = name->text;
    names->count = number;
    return true;
}

struct ct_name ct_names_number(struct ct_names *names, const char *text, bool *failed)
{
    const size_t bytes = strlen(text) + 1;
    struct name *name = malloc(sizeof(*name) + bytes);
    *failed |= !name;
    if (!name)
        return (struct ct_name){ 0 };
    memcpy(name->text, text, bytes);
    struct name **found = tfind(name, &names->tree, compare);
    const bool is_full = names->max && names->count >= names->max;
    if (!found && !is_full && add(names, name))
        return (struct ct_name){ .number = name->number, .is_new = true, .text = name->text };
    free(name);
    *failed |= !found && !is_full;
    return found ? (struct ct_name){ .number = (*found)->number, .text = (*found)->text }
                 : (struct ct_name){ 0 };
}

void ct_names_free(struct ct_names *names)
{
    tdestroy(names->tree, free);
    free(names->text);
    *names = (struct ct_names){ 0 };
}
