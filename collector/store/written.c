#include "written.h"

#include "log.h"

#include <sys/stat.h>

void ct_written_note(struct ct_database *database)
{
    struct stat status;
    if (fstat(database->lock_fd, &status) == 0)
        database->written = status.st_mtim;
}

void ct_written_check(struct ct_database *database)
{
    struct stat status;
    const struct timespec *noted = &database->written;
    if (noted->tv_sec == 0 || fstat(database->lock_fd, &status) != 0 ||
        (status.st_mtim.tv_sec == noted->tv_sec && status.st_mtim.tv_nsec == noted->tv_nsec))
        return;
    char name[CT_LOG_NAME_BYTES];
    ct_log(CT_LOG_file_overwritten,
           "another program has written the database %s: rows may be damaged; send SIGHUP to the daemon to "
           "begin the next file",
           ct_log_quote(name, database->path));
    database->written = status.st_mtim;
}
