#include "descriptor_share.h"

#include "descriptors.h"
#include "user.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

/* A process needs two descriptors. OWN descriptors are reserved for the database, the loop, and the
 * connections of the daemon's user. Without this reserve, the daemon could not even check which processes
 * have ended. Above LARGE, all descriptors that connections may use are reserved. */
enum { OF_PROCESS = 2, OWN = 48, LARGE = 16384 };

/* Counts how many of the `wanted` files can be opened. */
static int count_free(int wanted, int *error)
{
    int fds[CT_DAEMON_DESCRIPTORS_MIN], count = 0;
    *error = 0;
    while (count < wanted && !*error) {
        fds[count] = open("/dev/null", O_RDONLY | O_CLOEXEC);
        if (fds[count] < 0)
            *error = errno;
        else
            count++;
    }
    for (int i = 0; i < count; i++)
        close(fds[i]);
    return count;
}

bool ct_descriptors_require(char message[CT_MESSAGE_BYTES])
{
    enum { OPEN_AT_START = 4 }; /* the standard files, and the pipe to the process that started the daemon */
    const int wanted = CT_DAEMON_DESCRIPTORS_MIN - OPEN_AT_START;
    struct rlimit files = { 0 };
    if (getrlimit(RLIMIT_NOFILE, &files) == 0 && files.rlim_cur < files.rlim_max) {
        files.rlim_cur = files.rlim_max;
        setrlimit(RLIMIT_NOFILE, &files);
        getrlimit(RLIMIT_NOFILE, &files);
    }
    int error;
    const int missing = wanted - count_free(wanted, &error);
    if (!error)
        return true;
    const uint64_t enough = files.rlim_cur + (uint64_t)missing;
    if (error == EMFILE)
        ct_message(
            message,
            "the limit on open files is %llu, too low for a daemon: raise it to at least %llu (ulimit "
            "-n, LimitNOFILE=)",
            (unsigned long long)files.rlim_cur,
            (unsigned long long)(enough > CT_DAEMON_DESCRIPTORS_MIN ? enough : CT_DAEMON_DESCRIPTORS_MIN));
    else
        ct_message(message, "cannot open the %d files that a daemon needs: %s%s", wanted, strerror(error),
                   error == ENFILE ? " (fs.file-max)" : "");
    return false;
}

/* Returns the limit without the daemon's reserve. */
static uint64_t divided(void)
{
    struct rlimit files;
    if (getrlimit(RLIMIT_NOFILE, &files) != 0)
        return UINT32_MAX;
    return files.rlim_cur > OWN ? files.rlim_cur - OWN : 0;
}

/* Returns a quarter of the descriptors, because each `cudatrace run` has a connection and at least one
 * process. */
uint32_t ct_descriptors_for_clients(void)
{
    const uint32_t of_all = ct_share_bounds[CT_SHARED_CLIENTS].of_all;
    const uint64_t quarter = divided() / 4;
    return quarter < 1 ? 1 : quarter < of_all ? (uint32_t)quarter : of_all;
}

uint32_t ct_descriptors_for_processes(uint32_t most, bool system)
{
    const uint64_t free = divided();
    if (free >= (uint64_t)OF_PROCESS * most)
        return most;
    const uint64_t clients = system || free > LARGE - OWN ? ct_descriptors_for_clients() : 0;
    return free > clients + OF_PROCESS ? (uint32_t)((free - clients) / OF_PROCESS) : 1;
}
