#include "traced_environment.h"

#include "installed.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

bool ct_traced_environment_set(const char *hook, const struct ct_session_choice *choice)
{
    const char *before = getenv("LD_PRELOAD"), *asan = getenv("ASAN_OPTIONS");
    const bool is_usual = strcmp(choice->shm_dir, CT_SHM_DIR) == 0 && !getenv(CT_SHM_DIR_ENV);
    char *preload = NULL, *asan_options = NULL, first[PATH_MAX];
    ct_installed_preload(hook, first);
    /* NVTX_INJECTION64_PATH makes NVTX load the hook into the command, unless the user has set the variable
     * to another tool. AddressSanitizer refuses to start if another library is preloaded before it, unless
     * verify_asan_link_order=0 is set. */
    const bool is_done =
        asprintf(&preload, "%s%s%s", first, before && *before ? ":" : "", before ? before : "") >= 0 &&
        asprintf(&asan_options, "%s%sverify_asan_link_order=0", asan ? asan : "", asan && *asan ? ":" : "") >=
            0 &&
        setenv("LD_PRELOAD", preload, 1) == 0 && setenv("ASAN_OPTIONS", asan_options, 1) == 0 &&
        setenv("NVTX_INJECTION64_PATH", hook, 0) == 0 && setenv(CT_SESSION_ENV, choice->session, 1) == 0 &&
        (is_usual || setenv(CT_SHM_DIR_ENV, choice->shm_dir, 1) == 0);
    free(preload);
    free(asan_options);
    return is_done;
}

/* Linux limits each string to 32 pages, and all of them to a quarter of the stack's limit (execve(2)). */
const char *ct_traced_environment_why(int error, char why[CT_EXEC_WHY_BYTES])
{
    const size_t string_max = 32 * (size_t)sysconf(_SC_PAGESIZE);
    const char *longest = "";
    size_t bytes = 0, all = 0;
    for (char *const *variable = environ; *variable; variable++) {
        const size_t length = strlen(*variable) + 1;
        all += length;
        if (length > bytes) {
            longest = *variable;
            bytes = length;
        }
    }
    const int name = (int)strcspn(longest, "=");
    if (error != E2BIG)
        snprintf(why, CT_EXEC_WHY_BYTES, "%s", strerror(error));
    else if (bytes > string_max)
        snprintf(why, CT_EXEC_WHY_BYTES,
                 "the variable %.*s has %zu bytes, but a program can receive only %zu: shorten the variable",
                 name < 64 ? name : 64, longest, bytes, string_max);
    else
        snprintf(why, CT_EXEC_WHY_BYTES,
                 "the arguments, and the environment of %zu bytes, are too long: unset variables (the "
                 "longest one is "
                 "%.*s), or raise ulimit -s",
                 all, name < 64 ? name : 64, longest);
    return why;
}
