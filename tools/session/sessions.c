#include "sessions.h"

#include "client.h"
#include "room.h"
#include "session_files.h"
#include "trace_file.h"
#include "trace_files.h"
#include "trace_open.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { ANSWER_S = 2 };

/* A session that a daemon serves, either this user's or the system's. */
struct served {
    char name[CT_SESSION_MAX + 1];
    uint32_t uid;
    int32_t pid;
    uint64_t trace;
};
struct list {
    struct served *served;
    size_t count;
};

static bool read_served(const char *dir, uint32_t uid, const char *name, struct served *served)
{
    static struct ct_control control;
    char path[CT_NAME_BYTES];
    ct_session_control_path(path, dir, uid, name);
    if (ct_control_read(path, uid, &control) != CT_SERVED || control.version != CT_PROTO_VERSION ||
        (uid != ct_session_uid() && !control.system))
        return false;
    *served = (struct served){ .uid = uid, .pid = control.daemon_pid, .trace = control.trace };
    snprintf(served->name, sizeof(served->name), "%s", name);
    return true;
}

static int compare(const void *left, const void *right)
{
    const struct served *a = left, *b = right;
    return strcmp(a->name, b->name);
}

/* Returns a list of the served sessions, sorted by name, which the caller frees. */
static struct list list_served(const char *dir)
{
    struct list list = { 0 };
    size_t room = 0;
    struct ct_session_file file;
    struct served served;
    for (DIR *folder = opendir(dir); ct_session_files_next(folder, &file);) {
        if (file.kind == CT_FILE_CONTROL && (file.uid == ct_session_uid() || file.uid == 0) &&
            read_served(dir, file.uid, file.session, &served) &&
            ct_make_room(&list.served, list.count, &room, sizeof(served)))
            list.served[list.count++] = served;
    }
    if (list.count)
        qsort(list.served, list.count, sizeof(*list.served), compare);
    return list;
}

static void take(struct ct_session_choice *choice, const char *name)
{
    snprintf(choice->session_found, sizeof(choice->session_found), "%s", name);
    choice->session = choice->session_found;
}

/* Queries a session's daemon for the path of the file that it writes. */
static bool ask_database(const struct ct_session_choice *choice, const struct served *served,
                         char database[CT_ANSWER_BYTES])
{
    char path[CT_NAME_BYTES];
    ct_session_socket_path(path, choice->shm_dir, served->uid, served->name);
    const int fd = ct_client_connect_path(path, served->uid);
    const bool said = fd >= 0 && ct_client_ask(fd, "database", database, ANSWER_S) == CT_ANSWER_OK;
    if (fd >= 0)
        close(fd);
    return said;
}

/* Returns whether the file may be a hard link, a mounted file or a numbered file, whose identity differs from
 * that of the trace. */
static bool may_have_other_name(const char *path)
{
    char first[PATH_MAX];
    uint32_t number;
    struct stat status;
    return ct_trace_split(path, first, sizeof(first), &number) ||
           (stat(path, &status) == 0 && status.st_nlink > 1) || ct_trace_file_is_elsewhere(path);
}

bool ct_session_find_writer(struct ct_session_choice *choice, const char *path)
{
    const uint64_t trace = ct_trace_identity(path);
    const struct list list = list_served(choice->shm_dir);
    const bool ask = may_have_other_name(path);
    bool found = false;
    for (size_t i = 0; i < list.count && !found; i++) {
        char database[CT_ANSWER_BYTES];
        const struct served *served = &list.served[i];
        found = served->uid == ct_session_uid() &&
                ((trace && served->trace == trace) ||
                 (ask && ask_database(choice, served, database) && ct_series_has(path, database)));
        if (found)
            take(choice, served->name);
    }
    free(list.served);
    return found;
}

void ct_session_derive(struct ct_session_choice *choice, const char *path)
{
    char name[CT_SESSION_MAX + 1];
    snprintf(name, sizeof(name), "db-%016" PRIx64, ct_trace_identity(path));
    take(choice, name);
}

bool ct_session_is_served(const struct ct_session_choice *choice, uint64_t *trace)
{
    struct served served;
    if (!read_served(choice->shm_dir, ct_session_uid(), choice->session, &served))
        return false;
    *trace = served.trace;
    return true;
}

static bool take_only_one(struct ct_session_choice *choice, const char *command)
{
    const struct list list = list_served(choice->shm_dir);
    const bool found = list.count == 1;
    if (found) {
        take(choice, list.served[0].name);
        ct_fail(0, "%s: using session '%s' (process %d), the only one", command, choice->session,
                list.served[0].pid);
    }
    free(list.served);
    return found;
}

bool ct_session_choose(struct ct_session_choice *choice, const char *command, enum ct_guess guess)
{
    uint64_t trace;
    struct served served;
    if (choice->session_option || (choice->session_named && !choice->database))
        return true;
    if (choice->database)
        return ct_session_find_writer(choice, choice->database);
    return ct_session_is_served(choice, &trace) || ct_session_find_writer(choice, "trace.db") ||
           read_served(choice->shm_dir, 0, choice->session, &served) ||
           (guess == CT_GUESS_ONLY_ONE && take_only_one(choice, command));
}

void ct_session_prefer_live(struct ct_session_choice *choice, const char *command)
{
    if (!choice->database && access("trace.db", F_OK) != 0 &&
        ct_session_choose(choice, command, CT_GUESS_ONLY_ONE))
        choice->session_option = choice->session;
}

/* Connects to the trace's daemon, as ct_session_connect_writer() does. If `says_why`, reports that the daemon
 * is stopped or does not respond. A daemon reports the path of its first file, which may be any file of the
 * trace. */
static int connect_writer(const struct ct_session_choice *choice, const char *path, bool says_why)
{
    struct ct_session_choice whose = *choice;
    char served[CT_ANSWER_BYTES], first[PATH_MAX];
    uint32_t number;
    const bool is_numbered = ct_trace_split(path, first, sizeof(first), &number);
    const bool is_known = whose.session_option || ct_session_find_writer(&whose, path) ||
                          (is_numbered && ct_session_find_writer(&whose, first));
    const int daemon = ct_client_connect(&whose);
    const enum ct_answer answer =
        daemon >= 0 ? ct_client_ask(daemon, "database", served, ANSWER_S) : CT_ANSWER_NONE;
    if (answer == CT_ANSWER_OK &&
        (ct_series_has(path, served) || (is_numbered && ct_series_has(first, served))))
        return daemon;
    if (answer == CT_ANSWER_REFUSED && choice->session_option)
        return daemon;
    if (says_why && is_known && answer == CT_ANSWER_NONE && daemon >= 0 && ct_client_is_silent(daemon))
        ct_fail(0, "the daemon of session '%s' %s; until then, the trace lacks its newest calls",
                whose.session, ct_client_why(daemon));
    if (daemon >= 0)
        close(daemon);
    return -1;
}

int ct_session_connect_writer(const struct ct_session_choice *choice, const char *path)
{
    return connect_writer(choice, path, false);
}

int64_t ct_session_now(const struct ct_session_choice *choice, const char *path)
{
    const int daemon = connect_writer(choice, path, true);
    if (daemon < 0)
        return 0;
    close(daemon);
    return (int64_t)ct_monotonic_ns();
}

void ct_sessions_say(const struct ct_session_choice *choice)
{
    const struct list list = list_served(choice->shm_dir);
    for (size_t i = 0; i < list.count; i++) {
        char database[CT_ANSWER_BYTES];
        const struct served *served = &list.served[i];
        const bool is_ours = served->uid == ct_session_uid();
        const bool said = is_ours && ask_database(choice, served, database);
        ct_fail(0, "  session %s, process %d, %s%s", served->name, served->pid,
                said      ? "writes "
                : is_ours ? "does not respond"
                          : "belongs to the system",
                said ? database : "");
    }
    if (list.count)
        ct_fail(0, "select one with --session NAME, or with --db FILE by its trace");
    free(list.served);
}

/* Queries the session's daemon for the path of its trace. If no daemon answers, sets the path to ./trace.db.
 * Returns false after reporting an error. */
static bool ask_trace(const struct ct_session_choice *choice, char path[CT_ANSWER_BYTES])
{
    const int daemon = ct_client_connect(choice);
    const enum ct_answer said =
        daemon >= 0 ? ct_client_ask(daemon, "database", path, CT_ANSWER_S) : CT_ANSWER_NONE;
    const bool is_silent = said == CT_ANSWER_NONE && daemon >= 0 && ct_client_is_silent(daemon);
    if (said == CT_ANSWER_REFUSED)
        ct_fail(0,
                "session '%s' is served by the system daemon, whose trace only root, or a group chosen by "
                "root, can read",
                choice->session);
    else if (is_silent)
        ct_fail(0, "the daemon of session '%s' %s; use --db to select a trace without the daemon",
                choice->session, ct_client_why(daemon));
    else if (said != CT_ANSWER_OK)
        strcpy(path, "trace.db");
    if (daemon >= 0)
        close(daemon);
    return said != CT_ANSWER_REFUSED && !is_silent;
}

sqlite3 *ct_meant_trace_open(const struct ct_session_choice *choice, struct ct_series *found)
{
    char path[CT_ANSWER_BYTES];
    if (!choice->database && choice->session_option)
        return ask_trace(choice, path) ? ct_trace_open(path, found) : NULL;
    const char *named = choice->database ? choice->database : "trace.db";
    struct ct_session_choice whose = *choice;
    const bool is_elsewhere = ct_trace_file_is_elsewhere(named) && ct_session_find_writer(&whose, named) &&
                              ask_trace(&whose, path) && ct_series_has(named, path);
    return ct_trace_open(is_elsewhere ? path : named, found);
}
