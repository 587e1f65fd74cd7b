/* Finds the targets of hooks: functions in libraries and in the kernel, and tracepoints. */
#ifndef CT_PROBE_HOOK_FIND_H
#define CT_PROBE_HOOK_FIND_H

#include "elf_reader.h"
#include "hook_table.h"

/* A field of a tracepoint's record. The texts are parts of the line that was read. */
struct ct_hook_record_field {
    const char *name, *type;
    const char *array; /* "[16]" after the name, or "" */
    struct ct_hook_source source;
    bool is_usable; /* is a number or a text */
    bool is_text;
};
/* Reads a line of the file `format`, and changes the line. Returns whether it describes a field. */
bool ct_hook_read_record_field(char *line, struct ct_hook_record_field *field);

/* Returns the length of a kernel function's name without the suffixes that the compiler has added, and that
 * a table leaves out. Parts of functions (.part, .cold) keep them. */
size_t ct_hook_function_length(const char *symbol);

/* Returns whether a hook on the function's return would crash the program: the function saves its return
 * address for later, or returns twice. */
bool ct_hook_keeps_return_address(const char *name);
/* Returns whether a C++ exception may leave functions of the library, or the function by its name. */
bool ct_hook_may_throw(const struct ct_elf *elf, const char *symbol);
/* Returns whether the probe records functions of that name in that library itself. */
bool ct_hook_is_driver_function(const char *library, const char *symbol);

/* Returns the address that kernel functions return to while a kprobe awaits their return, or 0 if the kernel
 * hides its addresses. Requires CAP_SYSLOG. */
uint64_t ct_hook_find_trampoline(void);

/* Finds the hooks' targets. In each hook, sets `is_found`, one of `function`, `offset` and `event`, and for
 * tracepoints, the sources. For each hook of the file without a target, prints a line that begins with
 * `path`. Returns whether all hooks of the file have a target. */
bool ct_hook_find_all(struct ct_hook_table *table, int tracefs, const char *path);

#endif
