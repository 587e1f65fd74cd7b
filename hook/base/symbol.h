/* Looking symbols up without the dynamic linker's functions: those end the program's pending dlerror() even
 * when they succeed, leave one of their own when they fail, and open files when a library is not loaded. */
#ifndef CT_SYMBOL_H
#define CT_SYMBOL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* A loaded object, and where its symbols are. */
struct ct_object {
    uintptr_t base;
    const char *path;   /* as the loader has it; "" is the program */
    const char *soname; /* NULL: it has none */
    const void *dynamic, *strings, *symbols, *gnu_hash, *hash;
    const uint16_t *versions; /* the version of each symbol; NULL: it has none */
    const void *definitions;  /* the versions that it defines */
    uint64_t definition_count;
    bool at_start; /* loaded with the program: it stays for good */
    bool is_hook;  /* this library */
};

/* Its functions' symbols, the default version of each; NULL when it defines none of that name. With `version`
 * that one alone, or one without a version. */
void *ct_symbol_in(const struct ct_object *object, const char *name, const char *version);

/* True if it has symbols of a version of that name. */
bool ct_symbol_defines_version(const struct ct_object *object, const char *version);

/* Calls `visit` for each loaded object, in the order of loading, until it returns true; what it returned. */
bool ct_symbol_each(bool (*visit)(const struct ct_object *object, void *data), void *data);
/* The object that is known by that name, or lies at that address. False when none is loaded. */
bool ct_symbol_object(const char *soname, struct ct_object *object);
bool ct_symbol_object_at(const void *address, struct ct_object *object);
/* The first object behind the hook that defines the name. `object` may be NULL. */
void *ct_symbol_next(const char *name, struct ct_object *object);
/* The same for what the C library has: of any object, where the hook was loaded late and stands behind. */
void *ct_symbol_of_library(const char *name);

/* An object and what it needs, breadth first, as dlsym() with its handle looks. */
enum { CT_SCOPE_MAX = 48 };
struct ct_scope {
    uint32_t count;
    struct ct_object objects[CT_SCOPE_MAX];
};
void ct_scope_collect(const struct ct_object *object, struct ct_scope *scope);
void *ct_scope_find(const struct ct_scope *scope, const char *name, const char *version,
                    struct ct_object *object);

#endif
