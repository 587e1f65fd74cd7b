/* dlsym's entry is in the trampoline's file; cuGetProcAddress comes here by the decoder of its own row. */
#include "lookup.h"

#include "driver_functions.h"
#include "loader.h"
#include "rows.h"
#include "runtime_functions.h"

#include <dlfcn.h>

struct ct_dlsym_result {
    void *pointer;
    uint64_t tail; /* 1: not for us, jump to the real dlsym */
};
struct ct_dlsym_result ct_dlsym(void *handle, const char *name);

/* A runtime function is known by its address. Where the order of libraries decides, the hook need not find
 * what the caller would: then the real dlsym goes on. */
static struct ct_dlsym_result runtime_symbol(void *handle, const char *name)
{
    const bool searches = handle == RTLD_DEFAULT || handle == RTLD_NEXT;
    const uint32_t row = ct_row_of_runtime(name);
    if (row == CT_ROWS_ALL)
        return (struct ct_dlsym_result){ NULL, 1 };
    void *pointer = ct_loader_symbol(handle, name);
    void *stub = pointer ? ct_runtime_stub(pointer, row) : NULL;
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
    const bool driver_loaded = ct_driver_resolve();
    void *of_driver = driver_loaded ? ct_driver_symbol(name) : NULL;

    if (handle == RTLD_DEFAULT || handle == RTLD_NEXT) {
        void *stub = ct_driver_stub(of_driver);
        if (stub) {
            ct_loader_symbol(RTLD_DEFAULT, "dlsym"); /* a success, which ends a pending dlerror() */
            return (struct ct_dlsym_result){ stub, 0 };
        }
        /* The real dlsym would find our stub of a function that is not the driver's here, or not there at
         * all. */
        return ct_row_of_driver(name) != CT_ROWS_ALL ? (struct ct_dlsym_result){ ct_loader_next(name), 0 }
                                                     : (struct ct_dlsym_result){ NULL, 1 };
    }

    void *pointer = ct_loader_symbol(handle, name);
    if (pointer && of_driver && (pointer == of_driver || ct_loader_is_own(pointer))) {
        void *stub = ct_driver_stub(of_driver);
        if (!stub)
            stub = ct_driver_spare(of_driver, name);
        return (struct ct_dlsym_result){ stub ? stub : of_driver, 0 };
    }
    if (pointer && !of_driver && ct_loader_is_own(pointer))
        pointer = ct_loader_next(name); /* another library's, or a failure that dlerror() tells */
    return (struct ct_dlsym_result){ pointer, 0 };
}

void ct_lookup_replace(void **answer, const char *name)
{
    void *stub = ct_driver_stub(*answer);
    if (!stub && name && !ct_loader_is_own(*answer))
        stub = ct_driver_spare(*answer, name);
    if (stub)
        *answer = stub;
}
