/* Implements `cudatrace detach`, which ends a recording that `cudatrace attach` started and left running. */
#include "attach_message.h"
#include "attach_process.h"
#include "client.h"
#include "number.h"
#include "outcome.h"
#include "session_choice.h"
#include "session_files.h"
#include "subcommand.h"

#include <string.h>
#include <time.h>
#include <unistd.h>

/* Detaches from a process whose `attach` command was killed while waiting for the next call. Such a process
 * contains only the thunks, and possibly the jumps that lead to them. */
static bool take_out(struct ct_attachment *attachment, uint64_t until_ns)
{
    attachment->state = CT_ATTACHMENT_ARMED;
    if (!ct_attachment_leave(attachment, until_ns))
        return false;
    ct_fail(0, "detach: process %d (%s) was not recorded yet, and will not be", (int)attachment->target.pid,
            attachment->target.name);
    return true;
}

static bool refuse(struct ct_attachment *attachment)
{
    struct ct_target *target = &attachment->target;
    const bool is_free = target->kind == CT_TARGET_FINE || target->kind == CT_TARGET_NO_DRIVER;
    if (is_free)
        snprintf(target->why, sizeof(target->why), "%s", "is not attached to: it has no active hook");
    ct_attachment_say_why(attachment);
    return false;
}

/* Returns whether the process has named a valid session, in a folder in which its daemon may be looked for.
 * Another user's process may name any folder, so only the usual one is used for it. */
static bool is_trusted(const struct ct_target *target, const struct ct_visit *visit)
{
    return ct_session_valid(visit->session) && (!*visit->shm_dir || target->uid == geteuid());
}

static struct ct_session_choice choice_of(const struct ct_visit *visit)
{
    struct ct_session_choice choice = { .session = visit->session };
    snprintf(choice.shm_dir, sizeof(choice.shm_dir), "%.*s", (int)sizeof(choice.shm_dir) - 1,
             *visit->shm_dir ? visit->shm_dir : CT_SHM_DIR);
    return choice;
}

/* Returns whether the daemon has stored all calls of the process and exited. A daemon that is exiting is
 * given some seconds to do so. Reports if the daemon was killed or does not respond. */
static bool has_stored(const struct ct_visit *visit)
{
    enum { TIMES = 300, PAUSE_NS = 10000000 };
    static struct ct_control control;
    const struct ct_session_choice choice = choice_of(visit);
    char path[CT_NAME_BYTES];
    ct_session_control_path(path, choice.shm_dir, ct_session_uid(), choice.session);
    enum ct_serving serving = ct_control_read(path, ct_session_uid(), &control);
    for (int n = 0; serving == CT_SERVED && n < TIMES; n++) {
        nanosleep(&(struct timespec){ .tv_nsec = PAUSE_NS }, NULL);
        serving = ct_control_read(path, ct_session_uid(), &control);
    }
    if (serving == CT_SERVED_NOT)
        return true;
    ct_fail(0,
            "detach: the daemon of session '%s' %s; calls that it has not stored stay in shared memory for "
            "the session's next daemon",
            choice.session, serving == CT_SERVED_LEFT ? "was killed" : "does not respond");
    return false;
}

/* Returns a connection to the daemon that stores the process's calls, or -1 if there is no daemon. The
 * connection keeps the daemon alive even if the attaching command now releases it. */
static int hold_daemon(const struct ct_visit *visit, char database[CT_ANSWER_BYTES])
{
    const struct ct_session_choice choice = choice_of(visit);
    const int daemon = ct_client_connect(&choice);
    if (daemon < 0 || ct_client_ask(daemon, "hold", database, CT_ANSWER_S) == CT_ANSWER_OK)
        return daemon;
    close(daemon);
    return -1;
}

static bool detach_one(struct ct_attachment *attachment, pid_t pid, const struct ct_library *library,
                       uint64_t until_ns, bool is_verbose)
{
    ct_attachment_open(attachment, "detach", pid, library);
    struct ct_area_data *data = &attachment->visitor.area.data;
    data->visit.session[sizeof(data->visit.session) - 1] = '\0';
    data->visit.shm_dir[sizeof(data->visit.shm_dir) - 1] = '\0';
    const struct ct_area *area = &attachment->visitor.area;
    const bool is_armed = ct_area_has_thunks(area) || (area->address && data->made_in);
    if (!ct_attachment_records(attachment))
        return is_armed && attachment->lock >= 0 ? take_out(attachment, until_ns) : refuse(attachment);
    char database[CT_ANSWER_BYTES], answer[CT_ANSWER_BYTES];
    const struct ct_visit visit = data->visit; /* the process may change its own copy at any time */
    const bool trusts = is_trusted(&attachment->target, &visit);
    const int daemon = trusts ? hold_daemon(&visit, database) : -1;
    bool is_fine = ct_attachment_leave(attachment, until_ns);
    if (is_verbose)
        ct_attachment_say(attachment);
    if (!trusts)
        return ct_fail(false,
                       "detach: process %d of user %u names session '%s' in '%s', where detach looks for no "
                       "daemon: calls may not be stored yet",
                       (int)pid, attachment->target.uid, visit.session, visit.shm_dir);
    if (daemon < 0)
        return has_stored(&visit) && is_fine;
    is_fine = ct_attach_flush("detach", daemon) && is_fine;
    ct_attach_tell("detach", &attachment->target, database);
    ct_client_ask(daemon, "release", answer, 0);
    close(daemon);
    return is_fine;
}

static int detach(int argc, char **argv)
{
    bool is_verbose = false, has_failed = false;
    int64_t pid;
    const struct ct_option table[] = {
        { "verbose", NULL, "print the time of each step", &is_verbose },
        { 0 },
    };
    const struct ct_usage usage = {
        .options = table,
        .arguments = "PID…",
        .about =
            "Stops recording processes that `cudatrace attach` attached to: the hook undoes all changes.\n"
            "Returns when all recorded calls are in the database.\n",
    };
    int first;
    const int status = ct_options_parse(argc, argv, &usage, &first);
    if (status != CT_GO_ON)
        return status;
    if (first >= argc)
        return ct_fail(EXIT_USAGE, "detach: specify a process ID (see cudatrace detach --help)");
    for (int i = first; i < argc; i++) {
        if (!ct_number_parse(argv[i], 1, INT32_MAX, &pid))
            return ct_fail(EXIT_USAGE, "detach: invalid process ID '%s'", argv[i]);
    }
    struct ct_library library;
    if (!ct_library_read(&library, "detach"))
        return EXIT_FAILURE;
    const uint64_t until_ns = ct_attachment_deadline();
    for (int i = first; i < argc; i++) {
        struct ct_attachment attachment;
        ct_number_parse(argv[i], 1, INT32_MAX, &pid);
        has_failed |= !detach_one(&attachment, (pid_t)pid, &library, until_ns, is_verbose);
        ct_attachment_close(&attachment);
    }
    ct_library_free(&library);
    return has_failed ? EXIT_FAILURE : EXIT_SUCCESS;
}

const struct ct_subcommand ct_subcommand_detach = { "detach", "stop tracing processes that were attached to",
                                                    detach };
