/* Determines the sizes of files whose paths the program passes to the driver. */
#include "error_guard.h"
#include "system.h"
#include "target_access.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

/* Makes the system call directly, because glibc did not export stat() and fstatat() before version 2.33. */
bool ct_target_file_bytes(uint64_t path, uint64_t *bytes)
{
    CT_ERROR_GUARD;
    struct stat status;
    if (!ct_system_begin())
        return false;
    const bool found = syscall(SYS_newfstatat, AT_FDCWD, (const char *)path, &status, 0) == 0;
    ct_system_end();
    if (!found)
        return false;
    *bytes = (uint64_t)status.st_size;
    return true;
}
