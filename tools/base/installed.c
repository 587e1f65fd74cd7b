/* Where the other two files are: the hook and the daemon. Called by run.c and doctor.c. */
#include "cudatrace.h"

#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Beside this program, where the build or an installation put them. */
static bool find_file(const char *variable, const char *const *places, char *out)
{
    const char *given = getenv(variable);
    if (given && *given)
        return realpath(given, out) != NULL;
    char self[PATH_MAX], path[PATH_MAX * 2];
    const ssize_t n = readlink("/proc/self/exe", self, sizeof(self) - 1);
    self[n > 0 ? n : 0] = '\0';
    char *slash = strrchr(self, '/');
    if (!slash)
        return false;
    *slash = '\0';
    for (; *places; places++) {
        snprintf(path, sizeof(path), "%s/%s", self, *places);
        if (realpath(path, out))
            return true;
    }
    return false;
}

bool ct_place_hook(char *out)
{
    static const char *const places[] = { "../hook/libcudatrace.so", "libcudatrace.so",
                                          "../lib/libcudatrace.so", "../" CUDATRACE_LIBDIR "/libcudatrace.so",
                                          NULL };
    return find_file("CUDATRACE_HOOK", places, out);
}

bool ct_place_daemon(char *out)
{
    static const char *const places[] = { "../collector/cudatraced", "cudatraced", NULL };
    return find_file("CUDATRACE_DAEMON", places, out);
}
