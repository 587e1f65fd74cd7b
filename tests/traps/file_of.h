/* Returns the name of the file that contains an address. For a stub, this is the hook's file. Uses the C
 * library's own dladdr(), because the hook's dladdr() would return the real function. */
#include <dlfcn.h>
#include <stdint.h>
#include <string.h>

static const char *file_of(const void *pointer)
{
    typedef int dladdr_function(const void *address, Dl_info *info);
    void *libc = dlopen("libc.so.6", RTLD_LAZY);
    dladdr_function *own = (dladdr_function *)(uintptr_t)dlsym(libc, "dladdr");
    Dl_info info;
    if (!pointer || !own || !own(pointer, &info) || !info.dli_fname)
        return "none";
    const char *slash = strrchr(info.dli_fname, '/');
    return slash ? slash + 1 : info.dli_fname;
}
