/* The ELF notes that identify the hook's file (proto/hook_note.h). The notes are not used at run time. */
#include "hook_note.h"
#include "rows.h"

#include <elf.h>

#define ROW(function, ...) #function "\0"
static const struct {
    Elf64_Nhdr header;
    char owner[12]; /* size rounded up to a multiple of 4 */
    char names[sizeof(
#include "driver_api.def"
        )];
} ct_hook_names __attribute__((section(".note.cudatrace"), used, aligned(4))) = {
    .header = {
        .n_namesz = sizeof(CT_HOOK_NOTE_OWNER),
        .n_descsz = sizeof(ct_hook_names.names),
        .n_type = CT_HOOK_NAMES_TYPE,
    },
    .owner = CT_HOOK_NOTE_OWNER,
    .names =
#include "driver_api.def"
};
#undef ROW

static const struct {
    Elf64_Nhdr header;
    char owner[12];
    struct ct_hook_note note;
} ct_hook_note __attribute__((section(".note.cudatrace"), used, aligned(4))) = {
    .header = {
        .n_namesz = sizeof(CT_HOOK_NOTE_OWNER),
        .n_descsz = sizeof(struct ct_hook_note),
        .n_type = CT_HOOK_NOTE_TYPE,
    },
    .owner = CT_HOOK_NOTE_OWNER,
    .note = {
        .proto_version = CT_PROTO_VERSION,
        .fallback_stubs = CT_FALLBACK_COUNT,
        .names_bytes = sizeof(ct_hook_names.names),
        .version = CUDATRACE_VERSION,
    },
};
