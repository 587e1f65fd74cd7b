/* ELF notes in the .note.cudatrace section, which identify the hook's file without loading it. hook/note.c
 * writes them, and `cudatrace doctor` reads them. */
#ifndef CT_PROTO_HOOK_NOTE_H
#define CT_PROTO_HOOK_NOTE_H

#include <assert.h>
#include <stdint.h>

#define CT_HOOK_NOTE_OWNER "cudatrace"
enum {
    CT_HOOK_NOTE_TYPE = 1,  /* struct ct_hook_note */
    CT_HOOK_NAMES_TYPE = 2, /* names of the driver functions that the hook knows, each NUL-terminated */
};

struct ct_hook_note {
    uint32_t proto_version;  /* CT_PROTO_VERSION */
    uint32_t fallback_stubs; /* number of stubs for functions missing from the hook's table */
    uint32_t names_bytes;    /* size of the note that contains the names */
    uint32_t reserved;
    char version[24]; /* cudatrace's version */
};
static_assert(sizeof(struct ct_hook_note) == 40, "ct_hook_note");

#endif
