#include "new_trace.h"

#include "own_path.h"
#include "say.h"
#include "trace_files.h"

#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

/* Creates the file unless it exists, or other files of the trace at that path do. Returns 0 or an errno. Sets
 * *why if a sentence explains the error better. */
static int create(const char *path, const char **why)
{
    char place[PATH_MAX];
    snprintf(place, sizeof(place), "%s", path);
    if ((*why = ct_own_path_resolve(place, sizeof(place))) != NULL)
        return EACCES;
    if (ct_trace_file_before(place, UINT32_MAX, NULL) > 0)
        return EEXIST;
    const int fd = ct_own_path_open(place, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    if (fd < 0)
        return errno;
    close(fd);
    return 0;
}

bool ct_new_trace_take(const char *path, char chosen[PATH_MAX])
{
    enum { NUMBER_MAX = 10000 };
    const char *why = NULL;
    const size_t stem = ct_trace_stem(path);
    int n = snprintf(chosen, PATH_MAX, "%s", path),
        error = n < PATH_MAX ? create(chosen, &why) : ENAMETOOLONG;
    for (int number = 2; error == EEXIST && number <= NUMBER_MAX; number++) {
        n = snprintf(chosen, PATH_MAX, "%.*s-%d%s", (int)stem, path, number, path + stem);
        error = n < PATH_MAX ? create(chosen, &why) : ENAMETOOLONG;
    }
    if (error)
        return ct_fail(false, "run: cannot create '%s': %s", chosen, why ? why : strerror(error));
    if (strcmp(chosen, path) != 0)
        ct_fail(0, "run: '%s' exists, so this run is traced into '%s'", path, chosen);
    return true;
}

void ct_new_trace_give_back(const char *chosen)
{
    struct stat status;
    char place[PATH_MAX];
    snprintf(place, sizeof(place), "%s", chosen);
    if (!ct_own_path_resolve(place, sizeof(place)) && stat(place, &status) == 0 && status.st_size == 0)
        ct_own_path_unlink(place);
}
