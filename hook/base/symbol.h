/* Looks symbols up without using the dynamic linker's functions, which clear the program's pending dlerror()
 * even on success, set a new one on failure, and open files if a library is not loaded. */
#ifndef CT_SYMBOL_H
#define CT_SYMBOL_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* A loaded object and the location of its symbols. */
struct ct_object {
    uintptr_t base;
    const char *path;   /* as in the loader's list; "" for the program itself */
    const char *soname; /* NULL: none */
    const void *dynamic, *strings, *symbols, *gnu_hash, *hash;
    const void *headers; /* program headers */
    uint64_t header_count;
    struct ct_relocations { /* ElfW(Rela) entries, without the leading ones that refer to no symbol */
        const void *from;
        uint64_t bytes;
    } relocations[2];         /* of data, and of calls */
    const uint16_t *versions; /* the version of each symbol; NULL: none */
    const void *definitions;  /* the versions that the object defines */
    uint64_t definition_count;
    long namespace; /* Lmid_t; 0 is the program's namespace */
    bool at_start;  /* loaded with the program, and never unloaded */
    bool is_hook;   /* this library */
};

/* Finds the object with the given file name in a namespace's list of link maps (<link.h>). Returns false if
 * the object is not in the list. No lock is needed, since objects loaded with the program stay loaded and the
 * caller keeps all others loaded. */
struct link_map;
bool ct_symbol_in_list(const struct link_map *first, const char *name, struct ct_object *object);
/* Finds the first function called `name`, in any version, after the hook in a list of link maps. */
void *ct_symbol_behind(const struct link_map *first, const char *name);

/* Returns the default version of the object's function `name`, or NULL if the object does not define one. If
 * `version` is set, only a symbol with that version or without a version matches. */
void *ct_symbol_in(const struct ct_object *object, const char *name, const char *version);

/* Returns the name of a relocation's symbol. `index` is ELF64_R_SYM of the relocation's r_info. */
const char *ct_symbol_name(const struct ct_object *object, uint64_t index);

/* Kinds of memory in a loaded object. */
enum ct_segment_use {
    CT_SEGMENT_TEXT = 1,   /* code */
    CT_SEGMENT_DATA = 2,   /* writable at any time */
    CT_SEGMENT_SEALED = 4, /* written by the loader, then made read-only */
};
/* Returns the kind of memory that contains the bytes, according to the program headers. Returns 0 for any
 * other kind of memory, and if the bytes are outside the object. */
unsigned ct_symbol_use(const struct ct_object *object, const void *address, uint64_t bytes);

/* True if the object defines a version with the given name. */
bool ct_symbol_defines_version(const struct ct_object *object, const char *version);

/* Calls `visit` for each loaded object in load order until it returns true. Returns the last result. */
bool ct_symbol_each(bool (*visit)(const struct ct_object *object, void *data), void *data);
/* A caller's progress through the loaded objects. At the caller's last examination, `adds` objects had been
 * loaded so far, `subs` had been unloaded, and `objects` were still loaded. All fields are zero before the
 * first examination. */
struct ct_seen {
    _Atomic uint64_t adds, subs, objects;
};
/* The objects that the caller has not examined, from index `from` up to but not including `to` in load order
 * (new objects are last). If an object has been unloaded since the last examination, the range covers all
 * objects. */
struct ct_arrivals {
    uint64_t adds, subs, from, to;
};
/* Finds the objects loaded since the caller last examined them. If no object was loaded, returns false after
 * examining only one object. */
bool ct_symbol_arrivals(const struct ct_seen *seen, struct ct_arrivals *arrivals);
/* Calls `visit` for each object in `arrivals`, like ct_symbol_each(). */
bool ct_symbol_each_of(const struct ct_arrivals *arrivals,
                       bool (*visit)(const struct ct_object *object, void *data), void *data);
/* Records in `seen` that the caller has examined the objects in `arrivals`. If several threads do this at the
 * same time, some objects may be examined twice. */
void ct_symbol_see(struct ct_seen *seen, const struct ct_arrivals *arrivals);
/* True if the object's file name or soname is `soname`. */
bool ct_symbol_is(const struct ct_object *object, const char *soname);
/* True if a visit has loaded the hook (proto/visit.h). */
bool ct_symbol_is_visitor(void);
/* Find the loaded object with the given name or at the given address. Return false if there is no such
 * object. */
bool ct_symbol_object(const char *soname, struct ct_object *object);
bool ct_symbol_object_at(const void *address, struct ct_object *object);
/* Finds the first definition of `name` after the hook in load order. `object` may be NULL. */
void *ct_symbol_next(const char *name, struct ct_object *object);
/* Like ct_symbol_next(), but for functions of the C library. If the hook was loaded late and is therefore
 * last, searches all objects. */
void *ct_symbol_of_library(const char *name);
/* Finds a function in the C library, even if another library interposes it. Returns NULL if the C library
 * lacks it. */
void *ct_symbol_in_libc(const char *name);
/* Finds the first object in load order, except the hook, that defines a function called `name`. */
bool ct_symbol_definer(const char *name, struct ct_object *object);
/* Returns the address range of a function's code. It is empty if the object does not define the function. */
struct ct_code {
    uintptr_t from;
    uint64_t bytes;
};
struct ct_code ct_symbol_code_in(const struct ct_object *object, const char *name);
/* The same for the C library itself. */
struct ct_code ct_symbol_code_in_libc(const char *name);

/* An object and its dependencies, in the breadth-first order that dlsym() uses for a handle to the object. */
enum { CT_SCOPE_MAX = 48 };
struct ct_link_scope {
    uint32_t count;
    struct ct_object objects[CT_SCOPE_MAX];
};
void ct_scope_collect(const struct ct_object *object, struct ct_link_scope *scope);
void *ct_scope_find(const struct ct_link_scope *scope, const char *name, const char *version,
                    struct ct_object *object);

#endif
