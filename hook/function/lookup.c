/* The ways in: what programs get when they look functions up. dlsym's entry is in the
 * trampoline's file; cuGetProcAddress comes here as the decoder of its own row. */
#include "hook.h"

#include "symbol.h"
#include "system.h"

#include <dlfcn.h>
#include <string.h>
#include <unistd.h>

typedef void *dlsym_function(void *handle, const char *name);

/* Written once, by whichever thread comes first; all would write the same. */
dlsym_function *ct_real_dlsym;

dlsym_function *ct_dlsym_find(void);
struct ct_dlsym_result {
    void *pointer;
    uint64_t tail; /* 1: not for us, jump to the real dlsym */
};
struct ct_dlsym_result ct_dlsym(void *handle, const char *name);

/* dlvsym, because dlsym would find us, and because dl_iterate_phdr() may be another library's that is not ready
 * yet. The first version exists in every glibc of its architecture, so that the look-up does not fail and
 * leaves no dlerror(). musl has no dlvsym. */
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

void *ct_library_symbol(void *handle, const char *name)
{
    return ct_dlsym_find()(handle, name);
}

/* Atomic, because clang runs a constructor that only stores when it compiles it. */
static _Atomic bool constructed;
__attribute__((constructor)) static void construct(void)
{
    atomic_store(&constructed, true);
}

/* `environ` alone would not tell: clearenv() makes it NULL again. Before both, constructors of libraries that
 * do not need us may run, and the C library's has run. */
bool ct_library_ready(void)
{
    return atomic_load_explicit(&constructed, memory_order_relaxed) || environ;
}

/* libcuda and what it needs, from the moment on at which it was found; the claim is 1 while it is written. */
static struct ct_scope libcuda;
static _Atomic bool libcuda_claimed, libcuda_known;

bool ct_symbol_pin(const struct ct_object *object)
{
    if (object->at_start || !ct_system_begin())
        return true;
    const bool pinned = dlopen(object->path, RTLD_LAZY | RTLD_NOLOAD) != NULL;
    ct_system_end();
    return pinned;
}

/* Not before the constructors: the environment is not there yet, and dlopen() runs those that have not run
 * yet. Were the C library's among them, it would take the environment from itself, where there is none, and
 * the program would never see its own (glibc 2.36). */
void *ct_driver_symbol(const char *name)
{
    if (CT_LIKELY(atomic_load_explicit(&libcuda_known, memory_order_acquire)))
        return ct_scope_find(&libcuda, name, NULL, NULL);
    struct ct_object object;
    if (!ct_library_ready() || !ct_symbol_object("libcuda.so.1", &object) || !ct_symbol_pin(&object))
        return NULL;
    struct ct_scope found;
    ct_scope_collect(&object, &found);
    if (!atomic_exchange(&libcuda_claimed, true)) {
        libcuda = found;
        atomic_store_explicit(&libcuda_known, true, memory_order_release);
    }
    return ct_scope_find(&found, name, NULL, NULL);
}

void *ct_next_symbol(const char *name)
{
    return ct_library_symbol(RTLD_NEXT, name);
}

static bool is_own_stub(const void *pointer)
{
    Dl_info theirs, ours;
    return dladdr(pointer, &theirs) && dladdr((const void *)&ct_real_dlsym, &ours) &&
           theirs.dli_fbase == ours.dli_fbase;
}

/* A runtime function is known by its address. Where the order of libraries decides, the hook need not find
 * what the caller would: then the real dlsym goes on. */
static struct ct_dlsym_result runtime_symbol(void *handle, const char *name)
{
    const bool searches = handle == RTLD_DEFAULT || handle == RTLD_NEXT;
    if (!ct_runtime_known(name))
        return (struct ct_dlsym_result){ NULL, 1 };
    void *pointer = ct_library_symbol(handle, name);
    void *stub = pointer ? ct_runtime_stub(pointer, name) : NULL;
    if (stub || !searches)
        return (struct ct_dlsym_result){ stub ? stub : pointer, 0 };
    return (struct ct_dlsym_result){ NULL, 1 };
}

/* `name` is "cu" or "cuda" and an upper-case letter. The order of look-ups matters: the last one must be the
 * one whose dlerror() the application may ask for. */
struct ct_dlsym_result ct_dlsym(void *handle, const char *name)
{
    if (name[2] == 'd')
        return runtime_symbol(handle, name);
    const bool driver_loaded = ct_functions_resolve();
    void *of_driver = driver_loaded ? ct_driver_symbol(name) : NULL;

    if (handle == RTLD_DEFAULT || handle == RTLD_NEXT) {
        void *stub = ct_functions_stub(of_driver);
        if (stub) {
            ct_library_symbol(RTLD_DEFAULT, "dlsym"); /* a success, which ends a pending dlerror() */
            return (struct ct_dlsym_result){ stub, 0 };
        }
        /* The real dlsym would find our stub of a function that is not the driver's here, or not there at
         * all. */
        return ct_functions_known(name) ? (struct ct_dlsym_result){ ct_next_symbol(name), 0 }
                                        : (struct ct_dlsym_result){ NULL, 1 };
    }

    void *pointer = ct_library_symbol(handle, name);
    if (pointer && of_driver && (pointer == of_driver || is_own_stub(pointer))) {
        void *stub = ct_functions_stub(of_driver);
        if (!stub)
            stub = ct_functions_spare(of_driver, name);
        return (struct ct_dlsym_result){ stub ? stub : of_driver, 0 };
    }
    if (pointer && !of_driver && is_own_stub(pointer))
        pointer = ct_next_symbol(name); /* another library's, or a failure that dlerror() tells */
    return (struct ct_dlsym_result){ pointer, 0 };
}

/* CUresult cuGetProcAddress(const char *symbol, void **pfn, int cudaVersion, cuuint64_t flags), and _v2 with
 * a status pointer more. The result, the status and a pointer that is not the driver's stay as they are. */
void ct_decode_proc_address(const struct ct_frame *frame, struct ct_decoded *decoded)
{
    (void)decoded;
    const char *symbol = (const char *)frame->args[0];
    void **pointer = (void **)frame->args[1];
    if ((ct_status)frame->result != 0 || !pointer || !*pointer || !symbol || !*symbol)
        return;
    void *stub = ct_functions_stub(*pointer);
    if (!stub && !is_own_stub(*pointer))
        stub = ct_functions_spare(*pointer, symbol);
    if (stub)
        *pointer = stub;
}
