#include "where.h"

#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* Makes the folder of the session's files absolute. */
static int settle_shm_dir(const char *command, struct ct_where *where)
{
    char cwd[PATH_MAX] = "";
    struct stat status;
    const char *dir = where->shm_dir_option ? where->shm_dir_option : getenv(CT_SHM_DIR_ENV);
    const int error = !where->shm_dir_option    ? 0
                      : stat(dir, &status) != 0 ? errno
                      : S_ISDIR(status.st_mode) ? 0
                                                : ENOTDIR;
    if (error)
        return ct_fail(EXIT_USAGE, "%s: --shm-dir '%s': %s", command, dir, strerror(error));
    if (!dir || !*dir)
        dir = CT_SHM_DIR;
    if (dir[0] != '/' && !getcwd(cwd, sizeof(cwd)))
        return ct_fail(EXIT_USAGE, "%s: --shm-dir %s: %s", command, dir, strerror(errno));
    const int n = snprintf(where->shm_dir, sizeof(where->shm_dir), "%s%s%s", cwd, *cwd ? "/" : "", dir);
    if ((size_t)n < sizeof(where->shm_dir) &&
        ct_session_socket_fits(where->shm_dir, ct_session_uid(), where->session))
        return CT_GO_ON;
    return ct_fail(EXIT_USAGE,
                   "%s: the path of the directory %s is too long: with the session name, a socket's address "
                   "exceeds 107 bytes; choose a shorter --shm-dir",
                   command, dir);
}

int ct_where_parse(int argc, char **argv, const struct ct_usage *usage, struct ct_where *where, int *first)
{
    const int status = ct_options_parse(argc, argv, usage, first);
    if (status != CT_GO_ON)
        return status;
    const char *named = getenv(CT_SESSION_ENV);
    if (where->session_option || (named && *named))
        where->session = where->session_option ? where->session_option : named;
    where->session_named = where->session != NULL;
    if (!where->session)
        where->session = CT_SESSION_DEFAULT;
    if (!ct_session_valid(where->session))
        return ct_fail(EXIT_USAGE, "%s: invalid session name '%s': use 1 to %d letters, digits, '-' or '_'",
                       argv[0], where->session, CT_SESSION_MAX);
    const int settled = settle_shm_dir(argv[0], where);
    return settled == CT_GO_ON ? ct_options_check_arguments(argc, argv, usage, *first) : settled;
}
