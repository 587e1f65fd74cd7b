/* Translates numbers sent by the hook into the names in ioctl_names.def. The hook itself contains no names,
 * so that it stays small. Called by shm_functions.c to look up a function. */
#include "ioctl_names.h"

#include "names.h"

#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum space { ESCAPE, CONTROL, CLASS, UVM };

/* Name prefixes, as sent by the hook and as shown in the trace. The trace omits a prefix if the name alone
 * identifies the number space. */
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
#define MODESET(number, release, name)
#include "ioctl_names.def"
#undef MODESET
#undef IOCTL
};

static const char modeset_sent[] = "NVKMS ";
static const struct modeset {
    uint32_t number, release;
    const char *name;
} modeset[] = {
#define IOCTL(space, number, category, name)
#define MODESET(number, release, name) { number, release, #name },
#include "ioctl_names.def"
#undef MODESET
#undef IOCTL
};

static int compare(const void *key, const void *element)
{
    const struct row *a = key, *b = element;
    const uint64_t x = (uint64_t)a->space << 32 | a->number, y = (uint64_t)b->space << 32 | b->number;
    return (x > y) - (x < y);
}

/* Returns the name of a /dev/nvidia-modeset command, or NULL if the name depends on an unknown driver
 * release. */
static const char *modeset_name(const char *number, uint32_t release)
{
    char *end;
    const unsigned long value = strtoul(number, &end, 0);
    const char *name = NULL;
    for (size_t i = 0; end != number && !*end && i < sizeof(modeset) / sizeof(modeset[0]); i++) {
        const struct modeset *row = &modeset[i];
        if (row->number != value || (release && row->release > release))
            continue;
        if (release)
            return row->name;
        if (name)
            return NULL;
        name = row->name;
    }
    return name;
}

uint32_t ct_ioctl_driver_release(void)
{
    unsigned first = 0, second = 0;
    FILE *version = fopen("/sys/module/nvidia/version", "re");
    if (!version)
        return 0;
    const bool read = fscanf(version, "%4u.%3u", &first, &second) == 2;
    fclose(version);
    return read ? first * 1000 + second : 0;
}

bool ct_ioctl_names_find(const char *number, uint32_t release, char name[CT_IOCTL_NAME_MAX + 1],
                         uint32_t *category)
{
    if (strncmp(number, modeset_sent, sizeof(modeset_sent) - 1) == 0) {
        const char *found = modeset_name(number + sizeof(modeset_sent) - 1, release);
        if (found)
            snprintf(name, CT_IOCTL_NAME_MAX + 1, "%s", found);
        *category = CT_CATEGORY_control;
        return found != NULL;
    }
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
