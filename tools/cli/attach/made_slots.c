#include "made_slots.h"

#include "area_layout.h"
#include "inline_plan.h"
#include "patches.h"
#include "stop.h"
#include "tracer.h"

#include "room.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/syscall.h>

/* The maximum number of made slots. A visit's area has room for this many. */
enum { MADE_MOST = CT_AREA_PAIRS_MOST };

bool ct_made_slots_possible(void)
{
    return true;
}

static bool read_memory(void *context, uint64_t address, void *to, size_t bytes)
{
    return ct_memory_read(context, address, to, bytes);
}

static struct ct_inline_image inline_image(const struct ct_memory *memory)
{
    return (struct ct_inline_image){ .read = read_memory, .context = (void *)(uintptr_t)memory };
}

static void note_stop(struct ct_made_slots *made, uint64_t stops, uint64_t stopped_ns, uint64_t longest_ns)
{
    made->stops += stops;
    made->stopped_ns += stopped_ns;
    made->longest_ns = longest_ns > made->longest_ns ? longest_ns : made->longest_ns;
}

/* ---- the driver ---- */

/* Finds the image's bounds. Only the largest executable segment is read as code, and functions in other
 * segments are refused. */
static void measure(const struct ct_image *driver, struct ct_inline_image *image)
{
    image->begin = UINT64_MAX;
    for (const Elf64_Phdr *segment = driver->segments; segment < driver->segments + driver->segment_count;
         segment++) {
        const uint64_t begin = driver->bias + segment->p_vaddr, end = begin + segment->p_memsz;
        if (segment->p_type != PT_LOAD)
            continue;
        image->begin = begin < image->begin ? begin : image->begin;
        image->end = end > image->end ? end : image->end;
        if (segment->p_flags & PF_X && end - begin > image->code_end - image->code_begin) {
            image->code_begin = begin;
            image->code_end = end;
        }
    }
}

static bool has_slot(const struct ct_driver_slots *slots, uint64_t export)
{
    size_t i = 0;
    while (i < slots->count && slots->slots[i].export != export)
        i++;
    return i < slots->count;
}

struct functions {
    struct ct_inline_function *all;
    size_t count, room;
};

/* Collects the driver's functions that have no slot. Returns 0 or -errno. */
static int find_functions(const struct ct_image *driver, const struct ct_driver_slots *slots,
                          struct functions *functions)
{
    for (size_t i = 0; i < driver->symbol_count; i++) {
        uint64_t export;
        const char *name = ct_image_function(driver, i, &export);
        if (!name || !ct_driver_is_name(name) || has_slot(slots, export))
            continue;
        if (functions->count + slots->count == MADE_MOST)
            return -E2BIG;
        if (!ct_make_room(&functions->all, functions->count, &functions->room, sizeof(*functions->all)))
            return -ENOMEM;
        functions->all[functions->count++] =
            (struct ct_inline_function){ .address = export, .bytes = driver->symbols[i].st_size };
    }
    return 0;
}

/* ---- the area ---- */

/* Collects all mappings, with room for the stack and the heap to grow. */
static struct ct_inline_range *taken_ranges(const struct ct_memory *memory)
{
    const uint64_t growth = UINT64_C(64) << 20;
    struct ct_inline_range *ranges = calloc(memory->count + 1, sizeof(*ranges));
    for (size_t i = 0; ranges && i < memory->count; i++) {
        const struct ct_mapping *mapping = &memory->mappings[i];
        ranges[i] = (struct ct_inline_range){ mapping->begin, mapping->end };
        if (strcmp(mapping->path, "[heap]") == 0)
            ranges[i].end += growth;
        if (strcmp(mapping->path, "[stack]") == 0)
            ranges[i].begin -= growth;
        if (i > 0 && ranges[i].begin < ranges[i - 1].end)
            ranges[i].begin = ranges[i - 1].end;
        if (ranges[i].end < ranges[i].begin)
            ranges[i].end = ranges[i].begin;
    }
    return ranges;
}

struct system_call {
    const struct ct_memory *memory;
    long number;
    uint64_t arguments[4];
    uint64_t wanted; /* the required result; memory mapped at any other address is unmapped again */
    uint64_t took_ns;
};

static int call_within(void *data)
{
    struct system_call *call = data;
    const uint64_t *a = call->arguments;
    struct ct_stop stop;
    int error = ct_stop_begin(&stop, call->memory, CT_STOP_FOR_CODE, 0);
    if (error)
        return error;
    ct_tracer_hurry(true);
    const int64_t answer = ct_stop_call(&stop, call->number, a[0], a[1], a[2], a[3], ~UINT64_C(0), 0);
    if (answer < 0 && answer > -4096) {
        error = (int)answer;
    } else if ((uint64_t)answer != call->wanted) { /* before Linux 4.17 */
        ct_stop_call(&stop, SYS_munmap, (uint64_t)answer, a[1], 0, 0, 0, 0);
        error = -EEXIST;
    }
    ct_stop_end(&stop);
    ct_tracer_hurry(false);
    call->took_ns = stop.took_ns;
    return error;
}

static int make_call(struct ct_made_slots *made, struct system_call *call)
{
    const int error = ct_tracer_run(call_within, call, sizeof(*call));
    note_stop(made, call->took_ns > 0, call->took_ns, call->took_ns);
    return error;
}

/* Maps memory near the driver. Returns -EEXIST if the program has just mapped something at that address. */
static int map_area(struct ct_made_slots *made, struct ct_memory *memory, const struct ct_inline_image *image,
                    uint64_t bytes, uint64_t *area)
{
    struct ct_inline_range *taken = taken_ranges(memory);
    *area = taken ? ct_inline_area_place(image, taken, memory->count, bytes) : 0;
    free(taken);
    if (*area == 0)
        return -ENOMEM;
    struct system_call map = { .memory = memory,
                               .number = SYS_mmap,
                               .arguments = { *area, bytes, PROT_READ | PROT_WRITE,
                                              MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE },
                               .wanted = *area };
    return make_call(made, &map);
}

static int protect_code(struct ct_made_slots *made, const struct ct_memory *memory,
                        const struct ct_inline_plan *plan)
{
    struct system_call protect = { .memory = memory,
                                   .number = SYS_mprotect,
                                   .arguments = { plan->area, plan->code_bytes, PROT_READ | PROT_EXEC } };
    return make_call(made, &protect);
}

static void unmap_area(struct ct_made_slots *made, const struct ct_memory *memory, uint64_t area,
                       uint64_t bytes)
{
    struct system_call unmap = { .memory = memory, .number = SYS_munmap, .arguments = { area, bytes } };
    make_call(made, &unmap);
}

/* ---- making ---- */

static int fill_area(struct ct_made_slots *made, const struct ct_memory *memory, struct ct_inline_plan *plan)
{
    memcpy(made->refused, plan->verdict_counts, sizeof(made->refused));
    made->refused[CT_INLINE_FINE] = 0;
    if (plan->count == 0)
        return -ENOENT;
    if (!ct_memory_write(memory, plan->area, plan->contents, plan->bytes))
        return -ESRCH;
    const int error = protect_code(made, memory, plan);
    if (error)
        return error;
    made->list = plan->slots_address;
    made->count = plan->count;
    return 0;
}

static int make_near(struct ct_made_slots *made, struct ct_memory *memory, const struct ct_image *driver,
                     const struct functions *functions)
{
    struct ct_inline_image image = inline_image(memory);
    struct ct_inline_plan plan;
    uint64_t area;
    const uint64_t bytes = ct_inline_area_bytes(functions->count);
    measure(driver, &image);
    int error = map_area(made, memory, &image, bytes, &area);
    if (error)
        return error;
    error = ct_inline_plan_make(&plan, &image, functions->all, functions->count, area);
    if (!error)
        error = fill_area(made, memory, &plan);
    if (error)
        unmap_area(made, memory, area, bytes);
    ct_inline_plan_free(&plan);
    return error == -ENOENT ? 0 : error;
}

static int make(struct ct_made_slots *made, struct ct_memory *memory, const struct ct_driver_slots *slots)
{
    enum { TRIES = 20 };
    struct ct_image driver;
    struct functions functions = { 0 };
    int error = ct_image_find(&driver, memory, "libcuda.so.1");
    if (error)
        return error;
    error = find_functions(&driver, slots, &functions);
    if (!error && functions.count > 0) {
        error = -EEXIST;
        for (int i = 0; i < TRIES && error == -EEXIST && ct_memory_look(memory) == 0; i++)
            error = make_near(made, memory, &driver, &functions);
    }
    free(functions.all);
    ct_image_close(&driver);
    return error;
}

/* ---- the list of slots in the process ---- */

static struct ct_visit_slot *read_list(const struct ct_made_slots *made, const struct ct_memory *memory)
{
    struct ct_visit_slot *list = made->count <= MADE_MOST ? calloc(made->count + 1, sizeof(*list)) : NULL;
    if (list && ct_memory_read(memory, made->list, list, made->count * sizeof(*list)))
        return list;
    free(list);
    return NULL;
}

/* Adds the made slots to the driver's own slots. Each made slot points to its function's moved
 * instructions. */
static int add_slots(const struct ct_made_slots *made, const struct ct_memory *memory,
                     struct ct_driver_slots *slots)
{
    struct ct_visit_slot *list = read_list(made, memory);
    struct ct_driver_slot *all =
        list ? reallocarray(slots->slots, slots->count + made->count + 1, sizeof(*all)) : NULL;
    int error = all ? 0 : -ENOMEM;
    if (all)
        slots->slots = all;
    for (uint32_t i = 0; !error && i < made->count; i++) {
        struct ct_driver_slot *slot = &slots->slots[slots->count];
        *slot = (struct ct_driver_slot){ .export = list[i].export, .slot = list[i].slot };
        if (!ct_memory_read(memory, slot->slot, &slot->function, sizeof(slot->function)))
            error = -ESRCH;
        slots->count += !error;
    }
    free(list);
    return error;
}

int ct_made_slots_prepare(struct ct_made_slots *made, struct ct_memory *memory, struct ct_driver_slots *slots)
{
    const int error = made->count > 0 ? 0 : make(made, memory, slots);
    return error || made->count == 0 ? error : add_slots(made, memory, slots);
}

typedef bool make_patch(const struct ct_inline_image *image, const struct ct_visit_slot *slot,
                        struct ct_inline_patch *patch);

static int write_patches(struct ct_made_slots *made, struct ct_memory *memory, make_patch *make_one)
{
    const struct ct_inline_image image = inline_image(memory);
    struct ct_visit_slot *list = read_list(made, memory);
    struct ct_inline_patch *all = list ? calloc(made->count + 1, sizeof(*all)) : NULL;
    struct ct_patches patches = { .memory = memory, .patches = all };
    for (uint32_t i = 0; all && i < made->count; i++)
        patches.count += make_one(&image, &list[i], &all[patches.count]);
    const int error = all ? ct_patches_write(&patches) : -ENOMEM;
    note_stop(made, patches.tries, patches.stopped_ns, patches.longest_ns);
    free(list);
    free(all);
    return error;
}

int ct_made_slots_enter(struct ct_made_slots *made, struct ct_memory *memory)
{
    return made->count > 0 ? write_patches(made, memory, ct_inline_redo) : 0;
}

int ct_made_slots_leave(struct ct_made_slots *made, struct ct_memory *memory)
{
    return made->count > 0 ? write_patches(made, memory, ct_inline_undo) : 0;
}
