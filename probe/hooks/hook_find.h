/* Finds the targets of hooks: functions in libraries and in the kernel, and tracepoints. */
#ifndef CT_PROBE_HOOK_FIND_H
#define CT_PROBE_HOOK_FIND_H

#include "elf_reader.h"
#include "hook_table.h"

/* A field of a tracepoint's record. The strings point into the line that was read. */
struct ct_hook_record_field {
    const char *name, *type;
    const char *array; /* "[16]" after the name, or "" */
    struct ct_hook_source source;
    bool is_usable; /* is a number or a text */
    bool is_text;
};
/* Reads a line of a tracepoint's `format` file, and modifies the line. Returns whether it describes a
 * field. */
bool ct_hook_read_record_field(char *line, struct ct_hook_record_field *field);

/* Returns the length of a kernel function's name without the suffixes that the compiler has added, and that a
 * table leaves out. If the symbol is only a part of a function (.part, .cold), returns its whole length. */
size_t ct_hook_function_length(const char *symbol);

/* Returns whether a hook on the function's return would crash the program, because the function saves its
 * return address for later or returns twice. */
bool ct_hook_keeps_return_address(const char *name);
/* Returns whether a hook on the function's return would change its result, because the function examines its
 * return address. */
bool ct_hook_examines_caller(const char *name);
/* Returns whether a C++ exception could leave the function, judging by its name and by the library's
 * dependencies. */
bool ct_hook_may_throw(const struct ct_elf *elf, const char *symbol);
/* Returns whether the function is a driver function, which the probe records without a hook. */
bool ct_hook_is_driver_function(const char *library, const char *symbol);

/* Returns the address that kernel functions return to while a kprobe awaits their return, or 0 if the kernel
 * hides its addresses. Requires CAP_SYSLOG. */
uint64_t ct_hook_find_trampoline(void);

/* Writes the path of the library in which an uprobe's function was found. The path names this file even if
 * another file has been moved to the library's path: at the function's offset, that file may have the middle
 * of an instruction. Returns `path`. */
enum { CT_HOOK_FILE_BYTES = 32 };
const char *ct_hook_file(const struct ct_hook_entry *hook, char path[CT_HOOK_FILE_BYTES]);
/* Finds the hooks' targets, but not those of patterns. In each hook, sets `is_found`, and either `function`,
 * `offset` or `event`; for tracepoints, also sets the sources. For each hook in the file whose target is not
 * found, prints a line that begins with `path`. Returns whether all hooks in the file have a target. */
bool ct_hook_find_all(struct ct_hook_table *table, int tracefs);

#endif
