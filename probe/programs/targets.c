#include "targets.h"

#include "room.h"

#include <ctype.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

struct found {
    uint64_t offset;
    const char *name;
    bool is_known; /* driver_api.def has it */
};

struct finding {
    const struct ct_selection *selection;
    struct found *found;
    size_t count, room;
    bool is_short;
};

bool ct_targets_is_driver_function(const char *name)
{
    return name[0] == 'c' && name[1] == 'u' && isupper((unsigned char)name[2]);
}

/* The kernel emulates push %rbp, which takes a twentieth of the time of a single step (1.1 instead of 24 µs).
 * Two instructions may precede the push: a landing pad, and a comparison that libcuda 535 uses to check
 * whether the driver has ended. Neither of them changes the stack pointer, so a probe after them still sees
 * its value from the entry. */
uint64_t ct_targets_place(const struct ct_elf *elf, uint64_t offset)
{
    static const uint8_t landing_pad[] = { 0xf3, 0x0f, 0x1e, 0xfa };
    enum { COMPARE_WORD = 0x3d81, COMPARE_BYTES = 10 };
    uint8_t code[sizeof(landing_pad) + 2];
    if (ct_elf_read(elf, code, sizeof(code), offset) && memcmp(code, landing_pad, sizeof(landing_pad)) == 0)
        offset += sizeof(landing_pad);
    if (ct_elf_read(elf, code, 2, offset) && (code[0] | code[1] << 8) == COMPARE_WORD)
        offset += COMPARE_BYTES;
    return offset;
}

static void note(const char *name, uint64_t offset, void *data)
{
    struct finding *finding = data;
    if (!ct_targets_is_driver_function(name) || finding->is_short || offset == UINT64_MAX ||
        !ct_selection_takes(finding->selection, CT_LAYER_DRIVER, name))
        return;
    finding->is_short = !ct_make_room(&finding->found, finding->count, &finding->room, sizeof(struct found));
    if (finding->is_short)
        return;
    finding->found[finding->count++] =
        (struct found){ .offset = offset, .name = name, .is_known = ct_functions_is_known(name) };
}

/* Sorts by offset. If several names have the same offset, a name known from driver_api.def precedes the
 * others. */
static int compare(const void *a, const void *b)
{
    const struct found *left = a, *right = b;
    if (left->offset != right->offset)
        return left->offset < right->offset ? -1 : 1;
    if (left->is_known != right->is_known)
        return left->is_known ? -1 : 1;
    return strcmp(left->name, right->name);
}

static int number_all(struct ct_targets *targets, const struct ct_elf *elf, const struct finding *finding,
                      struct ct_function_table *functions)
{
    targets->offset = calloc(finding->count, sizeof(*targets->offset));
    targets->number = calloc(finding->count, sizeof(*targets->number));
    if (!targets->offset || !targets->number)
        return -ENOMEM;
    for (size_t i = 0; i < finding->count; i++) {
        const struct found *found = &finding->found[i];
        if (i > 0 && found->offset == found[-1].offset)
            continue;
        const uint32_t number = ct_functions_number(functions, found->name);
        if (number == CT_PROBE_FUNCTIONS) {
            targets->left_out++;
            continue;
        }
        targets->offset[targets->count] = ct_targets_place(elf, found->offset);
        targets->number[targets->count++] = number;
    }
    return targets->count > 0 ? 0 : -ENOSPC;
}

int ct_targets_find(struct ct_targets *targets, const char *path, const struct ct_selection *selection,
                    struct ct_function_table *functions)
{
    *targets = (struct ct_targets){ 0 };
    struct ct_elf elf;
    struct finding finding = { .selection = selection };
    char *text = NULL;
    int error = ct_elf_open(&elf, path);
    if (error)
        return error;
    error = elf.native ? ct_elf_each_function(&elf, note, &finding, &text) : -ENOEXEC;
    if (!error && finding.is_short)
        error = -ENOMEM;
    if (!error && finding.count == 0)
        error = -ENODATA;
    if (!error) {
        qsort(finding.found, finding.count, sizeof(*finding.found), compare);
        error = number_all(targets, &elf, &finding, functions);
    }
    free(finding.found);
    free(text);
    ct_elf_close(&elf);
    if (error)
        ct_targets_free(targets);
    return error;
}

void ct_targets_free(struct ct_targets *targets)
{
    free(targets->offset);
    free(targets->number);
    *targets = (struct ct_targets){ 0 };
}
