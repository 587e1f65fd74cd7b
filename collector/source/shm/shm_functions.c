#include "shm_functions.h"

#include "ioctl_names.h"
#include "names.h"
#include "room.h"
#include "selection.h"

#include <stdlib.h>
#include <string.h>

static const char *const category_names[CT_CATEGORY_COUNT] = {
#define CATEGORY(name) #name,
#include "category.def"
#undef CATEGORY
};

/* Copies a name as printable ASCII with a NUL, as the database requires. */
static void copy_name(char *to, const char *from)
{
    size_t i = 0;
    for (; i < CT_FUNCTION_NAME_MAX && from[i]; i++)
        to[i] = from[i] >= ' ' && from[i] <= '~' ? from[i] : '?';
    to[i] = '\0';
}

void ct_shm_read_directory(struct ct_shm_process *process)
{
    const uint32_t published = atomic_load_explicit(&process->shared->functions, memory_order_acquire);
    if (published > process->facts.function_slots)
        process->broken = "it has more functions than fit into its directory";
    else if (published > process->published)
        process->published = published;
}

/* ---- looking up ---- */

/* Returns the layer of an entry. A process may overwrite the layer at any time. */
static enum ct_layer layer_of(const struct ct_shm_process *process, uint8_t layer)
{
    if (!ct_shm_may_have(process, layer))
        return CT_LAYER_HOOK;
    return layer < CT_LAYER_COUNT ? (enum ct_layer)layer : CT_LAYER_DRIVER;
}

/* Finds the function_id for a directory entry. A function that is new to the trace counts towards the user's
 * share of names. If the share is used up, function_id stays 0, and no error is reported. */
static void look_up(struct ct_shm_process *process, struct ct_ledger *ledger,
                    struct ct_shm_function *function)
{
    struct ct_function entry;
    memcpy(&entry, &ct_segment_directory(process->shared)[function->entry], sizeof(entry));
    char name[CT_FUNCTION_NAME_MAX + 1], translated[CT_IOCTL_NAME_MAX + 1];
    copy_name(name, entry.name);
    const bool is_translated =
        entry.layer == CT_LAYER_IOCTL &&
        ct_ioctl_names_find(name, ct_ioctl_driver_release(), translated, &entry.category);
    const struct ct_function_name known_as = {
        .layer = ct_layer_names[layer_of(process, entry.layer)],
        .name = is_translated ? translated : name,
        .category = category_names[entry.category < CT_CATEGORY_COUNT ? entry.category : CT_CATEGORY_other],
    };
    ct_ledger_find_function(ledger, &function->callee, &known_as);
    if (function->callee.function_id == 0 &&
        ct_share_take(&process->shm->held, ct_shm_holding(process), CT_SHARED_NAMES, 0))
        ct_ledger_make_function(ledger, &function->callee, &known_as);
}

/* Functions that exceed the share are counted under this name. */
static struct ct_function_name others_of(const struct ct_shm_process *process)
{
    return (struct ct_function_name){ ct_layer_names[layer_of(process, CT_LAYER_DRIVER)], "(other functions)",
                                      category_names[CT_CATEGORY_other] };
}

/* Adds a function. Allocates the table `places` when the first function is added. */
static bool add_function(struct ct_shm_process *process, uint16_t entry)
{
    if (!process->places)
        process->places = calloc(process->facts.function_slots, sizeof(*process->places));
    if (!process->places || !ct_make_room(&process->functions, process->function_count,
                                          &process->function_room, sizeof(struct ct_shm_function *)))
        return false;
    struct ct_shm_function *function = calloc(1, sizeof(*function));
    if (!function)
        return false;
    function->entry = entry;
    process->functions[process->function_count++] = function;
    return true;
}

/* Assigns the function a place in `functions`. Once the user's share is used up, all further functions are
 * assigned the first place.
 */
static bool take_place(struct ct_shm_process *process, uint32_t entry)
{
    if (process->function_count == 0 && !add_function(process, UINT16_MAX))
        return false;
    if (!ct_share_take(&process->shm->held, ct_shm_holding(process), CT_SHARED_FUNCTIONS, 0)) {
        process->places[entry] = 1;
        process->merged++;
        return true;
    }
    if (!add_function(process, (uint16_t)entry)) {
        ct_share_give(&process->shm->held, ct_shm_holding(process), CT_SHARED_FUNCTIONS, 1);
        return false;
    }
    process->places[entry] = (uint16_t)process->function_count;
    return true;
}

struct ct_shm_function *ct_shm_find_function(struct ct_shm_process *process, struct ct_ledger *ledger,
                                             uint32_t entry)
{
    if ((!process->places || process->places[entry] == 0) && !take_place(process, entry)) {
        ct_store_short_of_memory(ledger->store);
        return NULL;
    }
    const uint32_t place = process->places[entry] - 1U;
    struct ct_shm_function *function = process->functions[place];
    if (function->callee.function_id == 0 && place > 0)
        look_up(process, ledger, function);
    if (function->callee.function_id == 0) {
        const struct ct_function_name others = others_of(process);
        ct_ledger_make_function(ledger, &function->callee, &others);
        process->merged += place > 0;
    }
    return function;
}

struct ct_callee *ct_shm_function(struct ct_shm_process *process, struct ct_ledger *ledger, uint32_t entry)
{
    struct ct_shm_function *function = ct_shm_find_function(process, ledger, entry);
    return function ? &function->callee : NULL;
}

/* Makes the next batch save every counter again, because counters saved by this batch cannot be distinguished
 * from counters saved earlier. */
void ct_shm_revert_functions(struct ct_shm_process *process)
{
    for (uint32_t i = 0; i < process->function_count; i++) {
        struct ct_shm_function *function = process->functions[i];
        function->callee.function_id = 0;
        function->lost = function->skipped = 0;
    }
    process->scans = true;
    process->scan_at = 0;
}

void ct_shm_forget_functions(struct ct_shm_process *process)
{
    for (uint32_t i = 0; i < process->function_count; i++)
        free(process->functions[i]);
    free(process->places);
    free(process->functions);
}
