/* Tells of the hook's file without loading it: ELF notes, in the section .note.cudatrace. Written by
 * hook/note.c, read by `cudatrace doctor`. */
#ifndef CT_PROTO_HOOK_NOTE_H
#define CT_PROTO_HOOK_NOTE_H

#include <assert.h>
#include <stdint.h>

#define CT_HOOK_NOTE_OWNER "cudatrace"
enum {
    CT_HOOK_NOTE_TYPE = 1,  /* struct ct_hook_note */
    CT_HOOK_NAMES_TYPE = 2, /* the driver's functions that the hook knows: their names, each with its NUL */
};

struct ct_hook_note {
    uint32_t proto_version; /* CT_PROTO_VERSION */
    uint32_t spare_stubs;   /* for functions that the hook's table lacks */
    uint32_t names_bytes;   /* of the note of names */
    uint32_t reserved;
    char version[24]; /* version of cudatrace */
};
static_assert(sizeof(struct ct_hook_note) == 40, "ct_hook_note");

#endif
