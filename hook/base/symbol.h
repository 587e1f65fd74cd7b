/* Looking symbols up without the dynamic linker's functions: those end the program's pending dlerror() even
 * when they succeed, leave one of their own when they fail, and open files when a library is not loaded. */
#ifndef CT_SYMBOL_H
#define CT_SYMBOL_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* A loaded object, and where its symbols are. */
struct ct_object {
    uintptr_t base;
    const char *path;   /* as the loader has it; "" is the program */
    const char *soname; /* NULL: it has none */
    const void *dynamic, *strings, *symbols, *gnu_hash, *hash;
    const void *headers; /* its program headers */
    uint64_t header_count;
    struct ct_relocations { /* ElfW(Rela), without those at the begin that refer to no symbol */
        const void *from;
        uint64_t bytes;
    } relocations[2];         /* of data, and of calls */
    const uint16_t *versions; /* the version of each symbol; NULL: it has none */
    const void *definitions;  /* the versions that it defines */
    uint64_t definition_count;
    long namespace; /* Lmid_t; 0 is the program's */
    bool at_start;  /* loaded with the program: it stays for good */
    bool is_hook;   /* this library */
};

/* Finds the object of that file name in a namespace, a list of link maps (<link.h>); false when it is not
 * there. It takes no lock: what the program started with stays, and the rest while somebody holds it. */
struct link_map;
bool ct_symbol_in_list(const struct link_map *first, const char *name, struct ct_object *object);
/* Finds the function of that name, of any version, that stands first behind the hook in such a list. */
void *ct_symbol_behind(const struct link_map *first, const char *name);

/* Its functions' symbols, the default version of each; NULL when it defines none of that name. With `version`
 * that one alone, or one without a version. */
void *ct_symbol_in(const struct ct_object *object, const char *name, const char *version);

/* The name that a relocation (ELF64_R_SYM of its r_info) refers to. */
const char *ct_symbol_name(const struct ct_object *object, uint64_t index);

/* Tells the parts of a loaded object. */
enum ct_segment_use {
    CT_SEGMENT_TEXT = 1,   /* code */
    CT_SEGMENT_DATA = 2,   /* may be written at any time */
    CT_SEGMENT_SEALED = 4, /* was written by the loader, and is protected since */
};
/* Says what these bytes are of, by the program headers: 0 for what is none of these, or outside. */
unsigned ct_symbol_use(const struct ct_object *object, const void *address, uint64_t bytes);

/* True if it has symbols of a version of that name. */
bool ct_symbol_defines_version(const struct ct_object *object, const char *version);

/* Calls `visit` for each loaded object, in the order of loading, until it returns true; what it returned. */
bool ct_symbol_each(bool (*visit)(const struct ct_object *object, void *data), void *data);
/* Remembers how far somebody has looked at what is loaded: how many objects were ever loaded and unloaded,
 * and how many there were. Zeros: nobody has looked. */
struct ct_seen {
    _Atomic uint64_t adds, subs, objects;
};
/* Holds which objects have come since: those from `from` to `to` in the order of loading, new ones standing
 * last. All of them do where some were unloaded. */
struct ct_arrivals {
    uint64_t adds, subs, from, to;
};
/* Finds what has come; false, at the price of one visit, when nothing has. */
bool ct_symbol_arrivals(const struct ct_seen *seen, struct ct_arrivals *arrivals);
/* Calls `visit` for each of them, as ct_symbol_each() does. */
bool ct_symbol_each_of(const struct ct_arrivals *arrivals,
                       bool (*visit)(const struct ct_object *object, void *data), void *data);
/* Remembers that they were looked at. Threads that look at the same time may look at some twice. */
void ct_symbol_see(struct ct_seen *seen, const struct ct_arrivals *arrivals);
/* True if the object's file, or its soname, is of that name. */
bool ct_symbol_is(const struct ct_object *object, const char *soname);
/* True if a visit has loaded the hook (proto/visit.h). */
bool ct_symbol_is_visitor(void);
/* The object that is known by that name, or lies at that address. False when none is loaded. */
bool ct_symbol_object(const char *soname, struct ct_object *object);
bool ct_symbol_object_at(const void *address, struct ct_object *object);
/* The first object behind the hook that defines the name. `object` may be NULL. */
void *ct_symbol_next(const char *name, struct ct_object *object);
/* The same for what the C library has: of any object, where the hook was loaded late and stands behind. */
void *ct_symbol_of_library(const char *name);
/* Finds a function in the C library, even if another library interposes it. NULL when it has none. */
void *ct_symbol_in_libc(const char *name);

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
