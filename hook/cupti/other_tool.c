#include "other_tool.h"

#include <stdio.h>
#include <string.h>

/* The libraries that tools preload into a program, as they are in the mappings of a program under
 * compute-sanitizer 2025.3, ncu 2025.3 and nsys 2025.3. */
static const struct {
    const char *file, *tool;
} preloaded[] = {
    { "libsanitizer-collection.so", "compute-sanitizer" },
    { "libcuda-injection.so", "Nsight Compute" },
    { "libToolsInjection64.so", "Nsight Systems" },
};

static const char *file_name(const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash ? slash + 1 : path;
}

/* Returns the tool that the library belongs to, or NULL. */
static const char *tool_of(const char *path)
{
    for (size_t i = 0; i < sizeof(preloaded) / sizeof(*preloaded); i++) {
        if (strcmp(file_name(path), preloaded[i].file) == 0)
            return preloaded[i].tool;
    }
    return NULL;
}

static bool note_tool(const char *path, const char *soname, void *data)
{
    (void)soname;
    const char **tool = data;
    *tool = tool_of(path);
    return *tool;
}

/* At cuInit(), the driver loads the library that CUDA_INJECTION64_PATH names. This may come after the
 * beginning of a recording. */
bool ct_other_tool_find(const struct ct_gpu_host *host, char *tool, size_t bytes)
{
    const char *found = NULL, *injected = host->setting("CUDA_INJECTION64_PATH");
    host->objects(note_tool, &found);
    if (!found && injected && *injected)
        found = tool_of(injected) ? tool_of(injected) : file_name(injected);
    if (found)
        snprintf(tool, bytes, "%s", found);
    return found;
}
