#include "new_trace.h"

#include "say.h"
#include "trace_files.h"

#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

/* Creates the file unless it exists, or other files of the trace at that path do. Returns 0 or an errno. */
static int create(const char *path)
{
    if (ct_trace_file_before(path, UINT32_MAX, NULL) > 0)
        return EEXIST;
    const int fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    if (fd < 0)
        return errno;
    close(fd);
    return 0;
}

bool ct_new_trace_take(const char *path, char chosen[PATH_MAX])
{
    enum { NUMBER_MAX = 10000 };
    const size_t stem = ct_trace_stem(path);
    int n = snprintf(chosen, PATH_MAX, "%s", path), error = n < PATH_MAX ? create(chosen) : ENAMETOOLONG;
    for (int number = 2; error == EEXIST && number <= NUMBER_MAX; number++) {
        n = snprintf(chosen, PATH_MAX, "%.*s-%d%s", (int)stem, path, number, path + stem);
        error = n < PATH_MAX ? create(chosen) : ENAMETOOLONG;
    }
    if (error)
        return ct_fail(false, "run: cannot create '%s': %s", chosen, strerror(error));
    if (strcmp(chosen, path) != 0)
        ct_fail(0, "run: '%s' exists, so this run is traced into '%s'", path, chosen);
    return true;
}

void ct_new_trace_give_back(const char *chosen)
{
    struct stat status;
    if (stat(chosen, &status) == 0 && status.st_size == 0)
        unlink(chosen);
}
