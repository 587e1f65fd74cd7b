/* fstat() without the C library: the name is one of glibc 2.33, which older ones lack (see glibc.h). */
#ifndef CT_FILE_STATUS_H
#define CT_FILE_STATUS_H

#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

static inline int ct_file_status(int fd, struct stat *status)
{
    return (int)syscall(SYS_fstat, fd, status);
}

#endif
