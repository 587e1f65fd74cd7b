#include "installed.h"

#include <dlfcn.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Finds the file that the variable names or, if the variable is not set, looks for the given names relative
 * to this program's folder. */
static bool find_file(const char *variable, const char *const *names, char *out)
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
    for (; *names; names++) {
        snprintf(path, sizeof(path), "%s/%s", self, *names);
        if (realpath(path, out))
            return true;
    }
    return false;
}

bool ct_installed_hook(char *out)
{
    static const char *const names[] = { "../hook/libcudatrace.so", "libcudatrace.so",
                                         "../lib/libcudatrace.so", "../" CUDATRACE_LIBDIR "/libcudatrace.so",
                                         NULL };
    return find_file("CUDATRACE_HOOK", names, out);
}

bool ct_installed_is_nameable(const char *hook)
{
    return !strpbrk(hook, " :$");
}

/* Returns whether the loader finds a library of our ELF class at this path. Does not load the library. */
static bool is_loadable(const char *file)
{
    dlerror();
    void *loaded = dlopen(file, RTLD_LAZY | RTLD_NOLOAD);
    const bool is_wrong = dlerror() != NULL;
    if (loaded)
        dlclose(loaded);
    return !is_wrong;
}

void ct_installed_preload(const char *hook, char *out)
{
    static const char loader_32[] = "/lib/ld-linux.so.2"; /* the ABI's path */
    const char *name = strrchr(hook, '/');
    const int n = name ? snprintf(out, PATH_MAX, "%.*s/cudatrace/$LIB%s", (int)(name - hook), hook, name) : 0;
    if (n <= 0 || n >= PATH_MAX || access(loader_32, F_OK) != 0 || !is_loadable(out))
        snprintf(out, PATH_MAX, "%s", hook);
}

bool ct_installed_daemon(char *out)
{
    static const char *const names[] = { "../collector/cudatraced", "cudatraced", NULL };
    return find_file("CUDATRACE_DAEMON", names, out);
}

bool ct_installed_probe(char *out)
{
    static const char *const names[] = { "../probe/cudatrace-probe", "cudatrace-probe", NULL };
    return find_file("CUDATRACE_PROBE", names, out);
}
