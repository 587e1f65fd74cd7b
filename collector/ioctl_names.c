/* The hook sends numbers, which keeps it small; here they get the names of ioctl_names.def. Called by
 * process.c once for each function of a process. */
#include "ioctl_names.h"

#include "category.h"

#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum space { ESCAPE, CONTROL, CLASS, UVM };

/* What a name begins with: in the hook, and here where the number alone does not tell its space. */
static const char *const sent[] = {
    [ESCAPE] = "ESC ", [CONTROL] = "RM_CONTROL ", [CLASS] = "RM_ALLOC ", [UVM] = "UVM "
};
static const char *const shown[] = {
    [ESCAPE] = "", [CONTROL] = "RM_CONTROL ", [CLASS] = "RM_ALLOC ", [UVM] = ""
};

struct row {
    uint32_t space, number, category;
    const char *name;
};

static const struct row rows[] = {
#define IOCTL(space, number, category, name) { space, number, CT_CATEGORY_##category, #name },
#include "ioctl_names.def"
#undef IOCTL
};

static int compare(const void *key, const void *element)
{
    const struct row *a = key, *b = element;
    const uint64_t x = (uint64_t)a->space << 32 | a->number, y = (uint64_t)b->space << 32 | b->number;
    return (x > y) - (x < y);
}

bool ct_ioctl_names_find(const char *number, char name[CT_IOCTL_NAME_MAX + 1], uint32_t *category)
{
    for (uint32_t space = 0; space < sizeof(sent) / sizeof(sent[0]); space++) {
        const size_t length = strlen(sent[space]);
        if (strncmp(number, sent[space], length) != 0)
            continue;
        char *end;
        const unsigned long value = strtoul(number + length, &end, 0);
        const struct row key = { .space = space, .number = (uint32_t)value };
        const struct row *row =
            end == number + length || *end || value > UINT32_MAX
                ? NULL
                : bsearch(&key, rows, sizeof(rows) / sizeof(rows[0]), sizeof(rows[0]), compare);
        if (!row)
            return false;
        snprintf(name, CT_IOCTL_NAME_MAX + 1, "%s%s", shown[space], row->name);
        *category = row->category;
        return true;
    }
    return false;
}
