/* compiled.c: recognizes images that contain host code (nvrtc.c), and finds their kernels. All functions are
 * called with the driver's lock held. */
#include "sim_code.h"

#include "compiled.h"

#include <dlfcn.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* An image without host code may end at its first NUL, so the comparison must stop there. */
size_t compiled_bytes(const void *image)
{
    if (strncmp(image, COMPILED_MAGIC, sizeof COMPILED_MAGIC) != 0)
        return 0;
    struct compiled_image head;
    memcpy(&head, image, sizeof head);
    return sizeof head + head.object_bytes;
}

CUresult compiled_load(void **code, const void *image)
{
    *code = NULL;
    const size_t bytes = compiled_bytes(image);
    if (bytes == 0)
        return CUDA_SUCCESS;
    /* The path must be unique, because the loader identifies a shared object by its path. */
    const char *scratch = getenv("TMPDIR");
    char path[2048];
    snprintf(path, sizeof path, "%s/simcuda-code-XXXXXX", scratch && *scratch ? scratch : "/tmp");
    const int fd = mkostemp(path, O_CLOEXEC);
    if (fd < 0)
        return CUDA_ERROR_OUT_OF_MEMORY;
    const char *at = (const char *)image + sizeof(struct compiled_image), *end = (const char *)image + bytes;
    for (ssize_t n = 1; n > 0 && at < end; at += n)
        n = write(fd, at, (size_t)(end - at));
    *code = at == end ? dlopen(path, RTLD_NOW | RTLD_LOCAL) : NULL;
    close(fd);
    unlink(path);
    return *code ? CUDA_SUCCESS : CUDA_ERROR_INVALID_IMAGE;
}

void compiled_unload(void *code)
{
    if (code)
        dlclose(code);
}

const struct compiled_kernel *compiled_kernel_named(void *code, const char *name)
{
    char symbol[512];
    if ((size_t)snprintf(symbol, sizeof symbol, COMPILED_KERNEL "%s", name) >= sizeof symbol)
        return NULL;
    return dlsym(code, symbol);
}
