#include "session_choice.h"

#include "own_path.h"

#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* Stores the absolute path of the folder that contains the session's files. */
static int settle_shm_dir(const char *command, struct ct_session_choice *choice)
{
    char cwd[PATH_MAX] = "";
    struct stat status;
    const char *dir = choice->shm_dir_option ? choice->shm_dir_option : getenv(CT_SHM_DIR_ENV);
    const int error = !choice->shm_dir_option   ? 0
                      : stat(dir, &status) != 0 ? errno
                      : S_ISDIR(status.st_mode) ? 0
                                                : ENOTDIR;
    if (error)
        return ct_fail(EXIT_USAGE, "%s: --shm-dir '%s': %s", command, dir, strerror(error));
    if (!dir || !*dir)
        dir = CT_SHM_DIR;
    if (dir[0] != '/' && !getcwd(cwd, sizeof(cwd)))
        return ct_fail(EXIT_USAGE, "%s: --shm-dir %s: %s", command, dir, strerror(errno));
    const char *why = ct_own_path_check_folder(dir);
    if (why)
        return ct_fail(EXIT_FAILURE, "%s: --shm-dir %s: %s", command, dir, why);
    const int n = snprintf(choice->shm_dir, sizeof(choice->shm_dir), "%s%s%s", cwd, *cwd ? "/" : "", dir);
    if ((size_t)n < sizeof(choice->shm_dir) &&
        ct_session_socket_fits(choice->shm_dir, ct_session_uid(), choice->session))
        return CT_GO_ON;
    return ct_fail(EXIT_USAGE,
                   "%s: the path of the directory %s is too long: with the session name, a socket's address "
                   "exceeds 107 bytes; choose a shorter --shm-dir",
                   command, dir);
}

int ct_session_choice_parse(int argc, char **argv, const struct ct_usage *usage,
                            struct ct_session_choice *choice, int *first)
{
    const int status = ct_options_parse(argc, argv, usage, first);
    if (status != CT_GO_ON)
        return status;
    const char *named = getenv(CT_SESSION_ENV);
    if (choice->session_option || (named && *named))
        choice->session = choice->session_option ? choice->session_option : named;
    choice->session_named = choice->session != NULL;
    if (!choice->session)
        choice->session = CT_SESSION_DEFAULT;
    if (!ct_session_valid(choice->session))
        return ct_fail(EXIT_USAGE, "%s: invalid session name '%s': use 1 to %d letters, digits, '-' or '_'",
                       argv[0], choice->session, CT_SESSION_MAX);
    const int settled = settle_shm_dir(argv[0], choice);
    return settled == CT_GO_ON ? ct_options_check_arguments(argc, argv, usage, *first) : settled;
}
