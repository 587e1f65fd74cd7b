#include "loader.h"

#include "compiler.h"
#include "machine.h"
#include "system.h"

#include <dlfcn.h>
#include <stdatomic.h>
#include <unistd.h>

typedef void *dlsym_function(void *handle, const char *name);

/* Written once, by whichever thread comes first; all would write the same. Read by the trampoline's dlsym. */
dlsym_function *ct_real_dlsym;
dlsym_function *ct_dlsym_find(void);

/* dlvsym, because dlsym would find us, and because dl_iterate_phdr() may be another library's that is not
 * ready yet. The first version exists in every glibc of its architecture, so that the look-up does not fail
 * and leaves no dlerror(). musl has no dlvsym. */
#pragma weak dlvsym
dlsym_function *ct_dlsym_find(void)
{
    static const char *const versions[] = { CT_GLIBC_BASE, "GLIBC_2.34", "GLIBC_2.17", "GLIBC_2.0" };
    for (size_t i = 0; dlvsym && !ct_real_dlsym && i < CT_ARRAY_LENGTH(versions); i++)
        ct_real_dlsym = (dlsym_function *)(uintptr_t)dlvsym(RTLD_NEXT, "dlsym", versions[i]);
    if (!ct_real_dlsym)
        ct_real_dlsym = (dlsym_function *)(uintptr_t)ct_symbol_of_library("dlsym");
    return ct_real_dlsym;
}

void *ct_loader_symbol(void *handle, const char *name)
{
    return ct_dlsym_find()(handle, name);
}

void *ct_loader_next(const char *name)
{
    return ct_loader_symbol(RTLD_NEXT, name);
}

/* Atomic, because clang runs a constructor that only stores when it compiles it. */
static _Atomic bool constructed;
__attribute__((constructor)) static void construct(void)
{
    atomic_store(&constructed, true);
}

/* `environ` alone would not tell: clearenv() makes it NULL again. Before both, constructors of libraries that
 * do not need us may run, and the C library's has run. */
bool ct_loader_ready(void)
{
    return atomic_load_explicit(&constructed, memory_order_relaxed) || environ;
}

bool ct_loader_pin(const struct ct_object *object)
{
    if (object->at_start || !ct_system_begin())
        return true;
    const bool pinned = dlopen(object->path, RTLD_LAZY | RTLD_NOLOAD) != NULL;
    ct_system_end();
    return pinned;
}

bool ct_loader_is_own(const void *address)
{
    Dl_info theirs, ours;
    return dladdr(address, &theirs) && dladdr((const void *)&ct_real_dlsym, &ours) &&
           theirs.dli_fbase == ours.dli_fbase;
}
