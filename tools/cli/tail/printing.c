#include "printing.h"

#include "output_target.h"
#include "printable.h"
#include "tail.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

struct ct_print_thread {
    struct ct_tail *tail;
    int ends[2]; /* a pipe, whose write end is closed to end the thread */
    pthread_t thread;
    int status;
};

static bool fail(const struct ct_printing *printing, const char *why)
{
    return ct_fail(false, "%s: cannot print calls: %s", printing->command, why);
}

/* ---- the file ---- */

bool ct_printing_open(struct ct_printing *printing)
{
    const char *why;
    printing->fd = STDERR_FILENO;
    if (!printing->path)
        return true;
    printing->is_wanted = true;
    printing->fd = ct_output_target_open(printing->path, O_WRONLY | O_CREAT | O_NOCTTY, 0600, &why);
    return printing->fd >= 0 || ct_fail(false, "%s: cannot write '%s': %s", printing->command, printing->path,
                                        why ? why : strerror(-printing->fd));
}

/* Truncates the output if it is a regular file other than the trace. Returns whether lines may be written. */
static bool empty_file(const struct ct_printing *printing, const char *database)
{
    static struct ct_series series;
    struct stat file;
    char opened[32]; /* the path may meanwhile name another file */
    if (fstat(printing->fd, &file) != 0 || !S_ISREG(file.st_mode) || !printing->path)
        return true;
    snprintf(opened, sizeof(opened), "/proc/self/fd/%d", printing->fd);
    if (ct_series_find(database, &series) && ct_series_has_file(&series, opened))
        return fail(printing, "the file is the trace itself");
    return ftruncate(printing->fd, 0) == 0 || fail(printing, strerror(errno));
}

/* ---- the thread ---- */

static void *print(void *data)
{
    struct ct_print_thread *thread = data;
    enum ct_tail_state state;
    do
        state = ct_tail_step(thread->tail);
    while (state == CT_TAIL_MORE || (state == CT_TAIL_IDLE && !ct_tail_wait(thread->tail, thread->ends[0])));
    thread->status = ct_tail_finish(thread->tail);
    return NULL;
}

/* Begins to print the trace. If the output is a regular file, no call is skipped, however late. */
static struct ct_tail *begin(const struct ct_printing *printing, const char *database, int64_t since_ns)
{
    struct ct_series series;
    struct stat file = { 0 };
    sqlite3 *connection = NULL;
    struct ct_tail_plan plan = {
        .command = printing->command,
        .fd = printing->fd,
        .is_relative = printing->is_relative,
        .follow = { .scope = ct_scope_all(), .start = CT_FOLLOW_FROM },
    };
    fstat(printing->fd, &file);
    plan.lag_max_ns = S_ISREG(file.st_mode) ? 0 : CT_TAIL_LAG_MAX_NS;
    plan.follow.scope.recorded_ns = plan.follow.scope.from_ns = since_ns;
    if (ct_series_find(database, &series) && ct_series_open(&series, &connection) == SQLITE_OK)
        return ct_tail_begin(connection, &series, &plan);
    sqlite3_close(connection);
    fail(printing, "the trace cannot be read");
    return NULL;
}

/* Starts the thread with all signals blocked, so that the main thread receives them. */
static int start(struct ct_print_thread *thread)
{
    sigset_t all, before;
    if (pipe2(thread->ends, O_CLOEXEC) != 0)
        return errno;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    const int error = pthread_create(&thread->thread, NULL, print, thread);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    if (error) {
        close(thread->ends[0]);
        close(thread->ends[1]);
    }
    return error;
}

bool ct_printing_start(struct ct_printing *printing, const char *database, int64_t since_ns)
{
    if (!printing->is_wanted)
        return true;
    if (!*database)
        return fail(
            printing,
            "only root can read the trace of the system daemon; use --db FILE for a trace of your own");
    struct ct_print_thread *thread = calloc(1, sizeof(*thread));
    if (!thread)
        return fail(printing, "out of memory");
    if (empty_file(printing, database) && (thread->tail = begin(printing, database, since_ns)) != NULL) {
        const int error = start(thread);
        if (!error) {
            printing->thread = thread;
            return true;
        }
        fail(printing, strerror(error));
        ct_tail_finish(thread->tail);
    }
    free(thread);
    return false;
}

bool ct_printing_finish(struct ct_printing *printing)
{
    struct ct_print_thread *thread = printing->thread;
    const bool was_started = thread != NULL;
    int status = EXIT_SUCCESS;
    if (was_started) {
        close(thread->ends[1]);
        pthread_join(thread->thread, NULL);
        close(thread->ends[0]);
        status = thread->status;
        free(thread);
        printing->thread = NULL;
    }
    if (printing->path && printing->fd >= 0)
        close(printing->fd);
    return was_started == printing->is_wanted && status == EXIT_SUCCESS;
}
