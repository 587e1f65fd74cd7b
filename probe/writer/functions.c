#include "functions.h"

#include "ioctl_layout.h"
#include "shapes.h"

#include <string.h>
#include <sys/mman.h>

bool ct_functions_is_known(const char *name)
{
    return ct_row_of_driver(name) != CT_ROWS_ALL;
}

/* The fields of fence events, in the order of the values in their records (fences.bpf.c). SQL views depend on
 * this order. */
#define FENCE_KEY                                                                                            \
    { .name = "context", .type = CT_FIELD_UNSIGNED },                                                        \
    {                                                                                                        \
        .name = "seqno", .type = CT_FIELD_UNSIGNED                                                           \
    }
static const struct ct_function_field named_fence[] = {
    { .name = "driver", .type = CT_FIELD_TEXT, .text = 0 },
    { .name = "timeline", .type = CT_FIELD_TEXT, .text = 1 },
    FENCE_KEY,
};
static const struct ct_function_field fence[] = { FENCE_KEY };

/* The fields of system calls on device files, in the order of the values in their records
 * (device_files.bpf.c). */
static const struct ct_function_field device[] = {
    { .name = "device", .type = CT_FIELD_TEXT, .text = 0 },
    { .name = "bytes", .type = CT_FIELD_UNSIGNED },
    { .name = "address", .type = CT_FIELD_UNSIGNED },
};
#define FIELDS(of) (of), sizeof(of) / sizeof((of)[0])

struct ct_function_table *ct_functions_create(void)
{
    void *memory = mmap(NULL, sizeof(struct ct_function_table), PROT_READ | PROT_WRITE,
                        MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED)
        return NULL;
    struct ct_function_table *table = memory;
    for (uint32_t row = 0; row < CT_ROW_COUNT; row++)
        ct_rows[row].flags |= ct_row_form(ct_row_name(row));
    const struct {
        const char *name;
        enum ct_layer layer;
        enum ct_category category;
        const struct ct_function_field *field;
        size_t fields;
    } events[CT_EVENT_COUNT] = {
        [CT_EVENT_BLOCKED] = { "blocked", CT_LAYER_KERNEL, CT_CATEGORY_scheduling },
        [CT_EVENT_PREEMPTED] = { "preempted", CT_LAYER_KERNEL, CT_CATEGORY_scheduling },
        [CT_EVENT_PAGE_FAULT] = { "page_fault", CT_LAYER_KERNEL, CT_CATEGORY_memory },
        [CT_EVENT_ESCAPE] = { ct_ioctl_other_names[CT_IOCTL_ESCAPES], CT_LAYER_IOCTL, CT_CATEGORY_control },
        [CT_EVENT_CONTROL] = { ct_ioctl_other_names[CT_IOCTL_ESCAPES], CT_LAYER_IOCTL, CT_CATEGORY_control },
        [CT_EVENT_CLASS] = { ct_ioctl_other_names[CT_IOCTL_ESCAPES], CT_LAYER_IOCTL, CT_CATEGORY_control },
        [CT_EVENT_UVM] = { ct_ioctl_other_names[CT_IOCTL_OF_UVM], CT_LAYER_IOCTL, CT_CATEGORY_control },
        [CT_EVENT_MODESET] = { ct_ioctl_other_names[CT_IOCTL_OF_MODESET], CT_LAYER_IOCTL,
                               CT_CATEGORY_control },
        [CT_EVENT_FENCE_INIT] = { "fence_init", CT_LAYER_KERNEL, CT_CATEGORY_sync, FIELDS(named_fence) },
        [CT_EVENT_FENCE_EMIT] = { "fence_emit", CT_LAYER_KERNEL, CT_CATEGORY_sync, FIELDS(named_fence) },
        [CT_EVENT_FENCE_WAIT] = { "fence_wait", CT_LAYER_KERNEL, CT_CATEGORY_sync, FIELDS(named_fence) },
        [CT_EVENT_FENCE_SIGNALED] = { "fence_signaled", CT_LAYER_KERNEL, CT_CATEGORY_sync, FIELDS(fence) },
        [CT_EVENT_OPENAT] = { "openat", CT_LAYER_KERNEL, CT_CATEGORY_control, device, 1 },
        [CT_EVENT_MMAP] = { "mmap", CT_LAYER_KERNEL, CT_CATEGORY_memory, FIELDS(device) },
        [CT_EVENT_CLOSE] = { "close", CT_LAYER_KERNEL, CT_CATEGORY_control, device, 1 },
    };
    for (; table->count < CT_EVENT_COUNT; table->count++) {
        struct ct_function_entry *entry = &table->entry[table->count];
        strncpy(entry->name, events[table->count].name, CT_FUNCTION_NAME_MAX);
        entry->row = CT_ROWS_ALL;
        entry->category = events[table->count].category;
        entry->layer = events[table->count].layer;
        entry->is_minor = true;
        entry->fields = (uint32_t)events[table->count].fields;
        if (entry->fields > 0)
            memcpy(entry->field, events[table->count].field, entry->fields * sizeof(entry->field[0]));
    }
    table->shapes = ct_shapes_find();
    return table->shapes ? table : NULL;
}

const struct ct_probe_shape *ct_functions_shape(const struct ct_function_table *table, uint32_t number)
{
    static const struct ct_probe_shape plain;
    const uint32_t row = table->entry[number].row;
    return row < CT_ROW_COUNT ? &table->shapes[row] : &plain;
}

/* Keeps room for the functions in driver_api.def. Any user can map a library that exports hundreds of other
 * functions, and would otherwise use up the numbers of other users' libraries. */
static bool has_room(const struct ct_function_table *table, const char *name)
{
    enum { KEPT = CT_ROW_COUNT + CT_EVENT_COUNT };
    return table->count < CT_PROBE_FUNCTIONS - (ct_functions_is_known(name) ? 0 : KEPT);
}

uint32_t ct_functions_number(struct ct_function_table *table, const char *name)
{
    for (uint32_t i = CT_EVENT_COUNT; i < table->count; i++) {
        if (table->entry[i].layer == CT_LAYER_DRIVER &&
            strncmp(table->entry[i].name, name, CT_FUNCTION_NAME_MAX) == 0)
            return i;
    }
    if (!has_room(table, name))
        return CT_PROBE_FUNCTIONS;
    struct ct_function_entry *entry = &table->entry[table->count];
    strncpy(entry->name, name, CT_FUNCTION_NAME_MAX);
    entry->layer = CT_LAYER_DRIVER;
    entry->row = ct_row_of_driver(name);
    entry->category = entry->row < CT_ROW_COUNT ? ct_rows[entry->row].category : CT_CATEGORY_other;
    entry->is_minor = ct_name_asks(name) || !ct_category_says_more(entry->category);
    __atomic_store_n(&table->count, table->count + 1, __ATOMIC_RELEASE);
    return table->count - 1;
}

uint32_t ct_functions_add_hook(struct ct_function_table *table, const char *name, uint8_t category,
                               const struct ct_function_field *field, uint32_t fields)
{
    if (table->count == CT_PROBE_FUNCTIONS)
        return CT_PROBE_FUNCTIONS;
    struct ct_function_entry *entry = &table->entry[table->count];
    strncpy(entry->name, name, CT_FUNCTION_NAME_MAX);
    entry->layer = CT_LAYER_HOOK;
    entry->row = CT_ROWS_ALL;
    entry->category = category;
    entry->fields = fields;
    memcpy(entry->field, field, fields * sizeof(*field));
    __atomic_store_n(&table->count, table->count + 1, __ATOMIC_RELEASE);
    return table->count - 1;
}
