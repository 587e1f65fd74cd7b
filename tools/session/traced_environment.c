#include "traced_environment.h"

#include "installed.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

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
