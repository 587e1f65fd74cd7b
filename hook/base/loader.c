#include "loader.h"

#include "compiler.h"
#include "machine.h"
#include "system.h"

#include <dlfcn.h>
#include <errno.h>
#include <link.h>
#include <stdatomic.h>
#include <unistd.h>

/* Any thread may be the first to write these pointers, since all write the same value. The trampolines read
 * them. */
ct_dlsym_function *ct_next_dlsym, *ct_library_dlsym;
ct_dlvsym_function *ct_next_dlvsym;

/* Searches the loader's list of objects, since dlsym would find the hook's own function. musl has no such
 * list and no dlvsym. */
#pragma weak _r_debug
static void *find_next(const char *name)
{
    void *found = &_r_debug ? ct_symbol_behind(_r_debug.r_map, name) : NULL;
    return found ? found : ct_symbol_of_library(name);
}

ct_dlsym_function *ct_dlsym_find(void)
{
    if (!ct_next_dlsym)
        ct_next_dlsym = (ct_dlsym_function *)(uintptr_t)find_next("dlsym");
    return ct_next_dlsym;
}

ct_dlsym_function *ct_library_dlsym_find(void)
{
    if (!ct_library_dlsym)
        ct_library_dlsym = (ct_dlsym_function *)(uintptr_t)ct_symbol_in_libc("dlsym");
    return ct_library_dlsym;
}

static void *nothing_versioned(void *handle, const char *name, const char *version)
{
    (void)handle, (void)name, (void)version;
    return NULL;
}

ct_dlvsym_function *ct_dlvsym_find(void)
{
    if (!ct_next_dlvsym)
        ct_next_dlvsym = (ct_dlvsym_function *)(uintptr_t)find_next("dlvsym");
    if (!ct_next_dlvsym)
        ct_next_dlvsym = nothing_versioned;
    return ct_next_dlvsym;
}

void *ct_loader_symbol(void *handle, const char *name)
{
    return ct_library_dlsym_find()(handle, name);
}

void *ct_loader_versioned(void *handle, const char *name, const char *version)
{
    return ct_dlvsym_find()(handle, name, version);
}

void *ct_loader_next(const char *name)
{
    return ct_loader_symbol(RTLD_NEXT, name);
}

/* The hook's constructors run before all others (-z initfirst), including the C library's. In glibc 2.33 and
 * older, libpthread is also marked initfirst and takes precedence. The C library has started once it has set
 * the program's name or environment. Checking `environ` alone is not enough, since clearenv() resets it to
 * NULL. The two variables are atomic, because clang would otherwise run the constructor, which contains
 * nothing but stores, at compile time. */
static _Atomic bool begun;
static _Atomic(const char *) first_name;

__attribute__((constructor)) static void construct(void)
{
    atomic_store(&begun, environ != NULL);
    atomic_store(&first_name, program_invocation_name);
}

bool ct_loader_ready(void)
{
    const char *first = atomic_load_explicit(&first_name, memory_order_relaxed);
    return environ || atomic_load_explicit(&begun, memory_order_relaxed) ||
           (first && first != program_invocation_name);
}

bool ct_loader_pin(const struct ct_object *object)
{
    if (object->at_start || !ct_system_begin())
        return true;
    const bool pinned =
        (object->namespace != LM_ID_BASE ? dlmopen(object->namespace, object->path, RTLD_LAZY | RTLD_NOLOAD)
                                         : dlopen(object->path, RTLD_LAZY | RTLD_NOLOAD)) != NULL;
    ct_system_end();
    return pinned;
}

bool ct_loader_in_namespace(void *handle, const char *name, struct ct_object *object)
{
    struct link_map *map = NULL;
    Lmid_t namespace = LM_ID_BASE;
    if (handle == RTLD_DEFAULT || handle == RTLD_NEXT || dlinfo(handle, RTLD_DI_LMID, &namespace) != 0 ||
        namespace == LM_ID_BASE || dlinfo(handle, RTLD_DI_LINKMAP, &map) != 0)
        return false;
    while (map && map->l_prev)
        map = map->l_prev;
    if (!ct_symbol_in_list(map, name, object))
        return false;
    object->namespace = namespace;
    return true;
}

extern CT_LOCAL const char __ehdr_start[], _end[]; /* the hook's own range; defined by the linker */

bool ct_loader_is_own(const void *address)
{
    return (uintptr_t)address >= (uintptr_t)__ehdr_start && (uintptr_t)address < (uintptr_t)_end;
}
