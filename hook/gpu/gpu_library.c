#include "gpu_library.h"

#include "compiler.h"
#include "loader.h"
#include "rows.h"
#include "setting.h"
#include "symbol.h"

#include <limits.h>
#include <stdio.h>
#include <string.h>

void *ct_gpu_library_open(const char *path)
{
    return dlopen(path, RTLD_NOW | RTLD_LOCAL);
}

/* Returns the length of the path's folder, with its slash. */
static int folder_length(const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash ? (int)(slash + 1 - path) : 0;
}

/* Returns the path of the library next to the hook's own file, or NULL. The hook may have been loaded through
 * a symbolic link in a folder of its own (cudatrace/$LIB). */
static const char *path_beside_hook(void)
{
    static char path[PATH_MAX], link[PATH_MAX];
    Dl_info own;
    if (!dladdr((const void *)&ct_rows, &own) || !own.dli_fname)
        return NULL;
    const ssize_t length = readlink(own.dli_fname, link, sizeof(link) - 1);
    link[length > 0 ? length : 0] = '\0';
    const int folder = link[0] == '/' ? 0 : folder_length(own.dli_fname);
    const int bytes = snprintf(path, sizeof(path), "%.*s%.*s" CT_GPU_LIBRARY, folder, own.dli_fname,
                               folder_length(link), link);
    return bytes < (int)sizeof(path) ? path : NULL;
}

ct_gpu_record_function *ct_gpu_library_load(void)
{
    const char *given = ct_setting_gpu_library(), *path = given ? given : path_beside_hook();
    void *library = path ? ct_gpu_library_open(path) : NULL;
    return library ? (ct_gpu_record_function *)(uintptr_t)ct_loader_symbol(library, CT_GPU_RECORD_NAME)
                   : NULL;
}

struct visitor {
    bool (*visit)(const char *path, const char *soname, void *data);
    void *data;
};

static bool visit_object(const struct ct_object *object, void *data)
{
    const struct visitor *visitor = data;
    return visitor->visit(object->path, object->soname, visitor->data);
}

void ct_gpu_library_objects(bool (*visit)(const char *path, const char *soname, void *data), void *data)
{
    struct visitor visitor = { visit, data };
    ct_symbol_each(visit_object, &visitor);
}

/* The decoders of functions that launch, copy and set, by the beginning of their names.
 * cuLaunchCooperativeKernelMultiDevice has the decoder `functions`. */
static bool is_work(const char *decoder)
{
    static const char *const beginnings[] = { "launch", "copy_",        "set_d",
                                              "set_2d", "graph_launch", "functions" };
    for (size_t i = 0; i < CT_ARRAY_LENGTH(beginnings); i++) {
        if (strncmp(decoder, beginnings[i], strlen(beginnings[i])) == 0)
            return true;
    }
    return strcmp(decoder, "copy") == 0;
}

bool ct_gpu_library_does_work(const char *function)
{
    static const char *const decoders[] = {
#define ROW(name, category, stack_words, decoder) #decoder,
#include "driver_api.def"
#undef ROW
    };
    const uint32_t row = ct_row_of_driver(function);
    return row < CT_ROW_COUNT && is_work(decoders[row]);
}
