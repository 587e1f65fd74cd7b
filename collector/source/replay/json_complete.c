#include "json_complete.h"

#include "json_value.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

struct function {
    const char *name, *category;
};

/* In ASCII order, like the tables. */
#define ROW(function, category, ...) { #function, #category },
static const struct function driver[] = {
#include "driver_api.def"
};
static const struct function runtime[] = {
#include "runtime_api.def"
};
#undef ROW

static int by_name(const void *name, const void *function)
{
    return strcmp(name, ((const struct function *)function)->name);
}

static const char *category_of(const char *layer, const char *name)
{
    const bool is_driver = strcmp(layer, "driver") == 0;
    const struct function *found = NULL;
    if (is_driver)
        found = bsearch(name, driver, sizeof(driver) / sizeof(driver[0]), sizeof(driver[0]), by_name);
    else if (strcmp(layer, "runtime") == 0)
        found = bsearch(name, runtime, sizeof(runtime) / sizeof(runtime[0]), sizeof(runtime[0]), by_name);
    return found ? found->category : NULL;
}

static void add(json_t *details, const char *member, json_t *value)
{
    if (json_object_get(details, member))
        json_decref(value);
    else
        json_object_set_new(details, member, value);
}

/* Arrays (A) are in the memory of the device. */
static const char *kind_of(const char *name)
{
    static const char *const kinds[][2] = {
        { "HtoD", "HtoD" }, { "HtoA", "HtoD" }, { "DtoH", "DtoH" }, { "AtoH", "DtoH" }, { "DtoD", "DtoD" },
        { "AtoD", "DtoD" }, { "DtoA", "DtoD" }, { "AtoA", "DtoD" }, { "Peer", "PtoP" },
    };
    for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++) {
        if (strstr(name, kinds[i][0]))
            return kinds[i][1];
    }
    return "unknown";
}

static void add_dimensions(json_t *details, const char *array, const char *const members[3])
{
    for (size_t i = 0; i < 3; i++) {
        int64_t size;
        if (ct_json_is_integer(json_array_get(json_object_get(details, array), i), &size))
            add(details, members[i], json_integer(size));
    }
}

void ct_json_complete(json_t *details, const char *layer, const char *name)
{
    static const char *const grid[] = { "grid_x", "grid_y", "grid_z" };
    static const char *const block[] = { "block_x", "block_y", "block_z" };
    const char *category = json_object_get(details, "category") ? NULL : category_of(layer, name);
    int64_t size;
    if (!category)
        return;
    add(details, "category", json_string(category));
    const bool copies = strcmp(category, "copy") == 0, sets = strcmp(category, "set") == 0;
    if ((copies || sets || strcmp(category, "memory") == 0) &&
        ct_json_is_integer(json_object_get(details, "size"), &size))
        add(details, "bytes", json_integer(size));
    if (strcmp(layer, "driver") != 0)
        return;
    if (copies || sets) {
        add(details, "kind", json_string(sets ? "set" : kind_of(name)));
        add(details, "async", json_integer(strstr(name, "Async") != NULL));
    } else if (strncmp(name, "cuGraphLaunch", 13) == 0) {
        add(details, "graph_exec", json_integer(0));
    } else if (strcmp(category, "launch") == 0 && !strstr(name, "HostFunc")) {
        add_dimensions(details, "grid", grid);
        add_dimensions(details, "block", block);
        add(details, "grid_x", json_integer(0));
    }
}
