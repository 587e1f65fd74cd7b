/* The note by which the hook's file tells what it is (proto/hook_note.h); nothing reads it at run time. */
#include "hook_note.h"
#include "rows.h"

#include <elf.h>

static const struct {
    Elf64_Nhdr header;
    char owner[12]; /* its length rounded up to 4 */
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
        .spare_stubs = CT_SPARE_COUNT,
        .version = CUDATRACE_VERSION,
    },
};
