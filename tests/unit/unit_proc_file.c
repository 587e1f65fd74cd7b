/* Tests what is read from /proc about a process that is running, is a zombie, or no longer exists. A process
 * must not be considered to have exited just because no descriptor is available for the check. */
#include "proc_file.h"

#include "identity.h"
#include "namespace.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

static void equal(const char *what, long long seen, long long wanted)
{
    if (seen == wanted)
        return;
    fprintf(stderr, "%s: %lld, and should be %lld\n", what, seen, wanted);
    exit(EXIT_FAILURE);
}

int main(void)
{
    struct ct_proc_stat self, stat;
    struct ct_proc_status status;
    int32_t found;
    equal("this process", ct_proc_stat(getpid(), &self), 0);
    equal("it lives", ct_process_lives(getpid(), self.start_ticks) && !self.ended, true);
    equal("another one of its pid", ct_process_lives(getpid(), self.start_ticks + 1), false);
    equal("its user", ct_proc_status(getpid(), &status), 0);
    equal("the user", status.effective, geteuid());
    equal("looking for it in its namespace", ct_namespace_find(ct_namespace_of(0), getpid(), &found), 0);
    equal("found there", found, getpid());

    const pid_t child = fork();
    if (child == 0)
        _exit(3);
    siginfo_t info;
    equal("a child's end", waitid(P_PID, (id_t)child, &info, WEXITED | WNOWAIT), 0);
    equal("a zombie", ct_proc_stat(child, &stat), 0);
    equal("has ended", stat.ended && stat.first_ended, true);
    equal("its status", WEXITSTATUS(stat.exit_code), 3);
    equal("it does not live", ct_process_lives(child, stat.start_ticks), false);
    equal("how it ended", ct_exit_status(-1, child, stat.start_ticks), CT_ENDING_EXITED);
    equal("another one of its pid", ct_exit_status(-1, child, stat.start_ticks + 1), CT_ENDING_UNKNOWN);
    waitpid(child, NULL, 0);
    equal("a process that is gone", ct_proc_stat(child, &stat), -ESRCH);
    equal("the user of one that is gone", ct_proc_status(child, &status), -ESRCH);

    struct rlimit limit;
    equal("the limit of descriptors", getrlimit(RLIMIT_NOFILE, &limit), 0);
    const struct rlimit none = { 0, limit.rlim_max };
    equal("no more descriptors", setrlimit(RLIMIT_NOFILE, &none), 0);
    equal("this process, unread", ct_proc_stat(getpid(), &stat), -EMFILE);
    equal("its user, unread", ct_proc_status(getpid(), &status), -EMFILE);
    equal("it lives, as far as can be told", ct_process_lives(getpid(), self.start_ticks), true);
    equal("looking for it without a descriptor", ct_namespace_find(ct_namespace_of(0), getpid(), &found),
          -EMFILE);
    equal("descriptors again, which a leak checker wants", setrlimit(RLIMIT_NOFILE, &limit), 0);
    return EXIT_SUCCESS;
}
