#include "parent.h"

#include "number.h"
#include "probe_options.h"

#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <unistd.h>

void ct_parent_fill_files(void)
{
    int fd;
    do
        fd = open("/dev/null", O_RDWR | O_CLOEXEC); /* a command of --discover has them closed */
    while (fd >= 0 && fd <= STDERR_FILENO);
    if (fd >= 0)
        close(fd);
}

int ct_parent_begin(void)
{
    const char *text = getenv(CT_PROBE_READY_ENV);
    int64_t fd;
    if (!text || !ct_number_parse(text, STDERR_FILENO + 1, INT32_MAX, &fd))
        return -1;
    unsetenv(CT_PROBE_READY_ENV);
    prctl(PR_SET_PDEATHSIG, SIGTERM);
    return (int)fd;
}

bool ct_parent_tell(int ready)
{
    if (ready < 0)
        return false;
    if (write(ready, "r", 1) != 1)
        raise(SIGTERM);
    close(ready);
    return true;
}
