#include "command.h"

#include "claimed_name.h"
#include "clock.h"
#include "descriptor_share.h"
#include "listener.h"
#include "private_file.h"
#include "real_user.h"
#include "selection.h"
#include "test_point.h"
#include "user.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

enum {
    LINE_MAX_BYTES = CT_SELECTION_CALLS_BYTES + 256,
    ANSWER_BYTES = 8192,
    UNREAD_MAX_BYTES = 65536,
};
#define OTHERS_MAX_NS UINT64_C(10000000000) /* how long a flush by root waits for other users' calls */

struct client {
    uv_pipe_t pipe;
    struct ct_commands *commands;
    char line[LINE_MAX_BYTES];
    size_t length;
    uid_t uid;      /* from SO_PEERCRED */
    bool is_reader; /* may read the trace */
    bool holds, stops;
    uint64_t flush_ns; /* 0: not waiting */
    struct ct_gpu_request gpu;
    uint64_t gpu_due_ns; /* when the request for GPU work is answered at the latest; 0: not waiting */
    struct client *next;
};

struct ct_commands {
    uv_loop_t *loop;
    struct ct_listener *listener; /* NULL if it could not be recreated */
    char path[128];
    ino_t inode; /* the socket's inode; a successor may have bound the same path */
    struct ct_command_handler handler;
    struct client *clients;
    size_t holders, owners; /* clients that hold the daemon, and the owner's share of these */
};

struct answer {
    uv_write_t write;
    char text[];
};

static void on_closed(uv_handle_t *handle)
{
    free(handle->data);
}

static bool is_owner(const struct client *client)
{
    return client->uid == ct_real_euid() || client->uid == 0;
}

/* Counts a client that holds the daemon, or no longer does. Returns whether the daemon exits. The holds of
 * other users do not keep the owner's hold from beginning a run. */
static bool change_holders(struct client *client, bool is_added)
{
    struct ct_commands *commands = client->commands;
    const bool is_first = is_owner(client) ? commands->owners == 0 : commands->holders == 0;
    client->holds = is_added;
    commands->holders = is_added ? commands->holders + 1 : commands->holders - 1;
    if (is_owner(client))
        commands->owners = is_added ? commands->owners + 1 : commands->owners - 1;
    return commands->handler.holders(is_added && is_first, commands->holders, commands->handler.data);
}

static void drop(struct client *client)
{
    if (uv_is_closing((uv_handle_t *)&client->pipe))
        return;
    struct ct_commands *commands = client->commands;
    for (struct client **link = &commands->clients; *link; link = &(*link)->next) {
        if (*link == client) {
            *link = client->next;
            break;
        }
    }
    uv_close((uv_handle_t *)&client->pipe, on_closed);
    if (client->holds)
        change_holders(client, false);
}

static void on_written(uv_write_t *write, int status)
{
    (void)status;
    free(write->data);
}

static void answer_bytes(struct client *client, const char *text, size_t length)
{
    /* The client sends commands but reads no answers. */
    if (uv_stream_get_write_queue_size((uv_stream_t *)&client->pipe) > UNREAD_MAX_BYTES) {
        drop(client);
        return;
    }
    struct answer *reply = malloc(sizeof(*reply) + length);
    if (!reply) {
        drop(client); /* the closed connection shows the client that no answer will follow */
        return;
    }
    reply->write.data = reply;
    memcpy(reply->text, text, length);
    const uv_buf_t buffer = uv_buf_init(reply->text, (unsigned int)length);
    if (uv_write(&reply->write, (uv_stream_t *)&client->pipe, &buffer, 1, on_written) != 0)
        free(reply);
}

static void answer(struct client *client, const char *text)
{
    answer_bytes(client, text, strlen(text));
}

/* Answers with a line that ends with a path. A newline in the path is sent as a NUL, because it would end the
 * line. */
static void answer_path(struct client *client, const char *begin, const char *path)
{
    char text[ANSWER_BYTES];
    const int written = snprintf(text, sizeof(text), "%s%s\n", begin, path);
    const size_t length = (size_t)written < sizeof(text) ? (size_t)written : sizeof(text) - 1;
    for (size_t i = 0; i + 1 < length; i++) {
        if (text[i] == '\n')
            text[i] = '\0';
    }
    answer_bytes(client, text, length);
}

/* ---- the commands ---- */

static void do_flush(struct client *client)
{
    client->flush_ns = ct_monotonic_ns();
    client->commands->handler.flush(client->flush_ns, client->commands->handler.data);
}

static void do_status(struct client *client)
{
    char text[ANSWER_BYTES];
    const struct ct_command_handler *handler = &client->commands->handler;
    if (is_owner(client))
        handler->status(text, sizeof(text) - 1, handler->data);
    else
        handler->status_for_others(text, sizeof(text) - 1, client->uid, handler->data);
    strcat(text, "\n"); /* an empty line ends the answer */
    answer(client, text);
}

static void do_stop(struct client *client)
{
    client->stops = true;
    client->commands->handler.stop(client->commands->handler.data);
}

static void do_hold(struct client *client)
{
    if (!client->commands->handler.may_hold(client->commands->handler.data)) {
        answer(client, "error the daemon is exiting\n");
        return;
    }
    if (!client->holds)
        change_holders(client, true);
    /* Do not reveal the path of the trace to users who are not allowed to read the trace. */
    answer_path(client, "ok ", client->is_reader ? client->commands->handler.database : "");
}

/* Ends a hold. With --auto, the last holder is answered only when the daemon is about to exit. */
static void do_release(struct client *client)
{
    if (client->holds)
        client->stops = change_holders(client, false);
    if (!client->stops)
        answer(client, "ok\n");
}

static void do_set(struct client *client)
{
    char text[ANSWER_BYTES];
    char problem[ANSWER_BYTES - 16] = "";
    const struct ct_command_handler *handler = &client->commands->handler;
    const char *space = strchr(client->line, ' ');
    const bool done = handler->set(space ? space + 1 : "", problem, sizeof(problem), handler->data);
    snprintf(text, sizeof(text), done ? "ok\n" : "error %s\n", problem);
    answer(client, text);
}

static void do_gpu(struct client *client)
{
    char text[ANSWER_BYTES], problem[ANSWER_BYTES - 16] = "";
    const struct ct_command_handler *handler = &client->commands->handler;
    const char *space = strchr(client->line, ' ');
    if (handler->gpu(space ? space + 1 : "", &client->gpu, problem, sizeof(problem), handler->data)) {
        client->gpu_due_ns = ct_gpu_request_due_ns(&client->gpu);
        return;
    }
    snprintf(text, sizeof(text), "error %s\n", problem);
    answer(client, text);
}

static void do_database(struct client *client)
{
    answer_path(client, "", client->commands->handler.database);
}

enum right { ANYONE, READER, OWNER };

static const struct {
    const char *name;
    void (*run)(struct client *client);
    enum right right;
} commands_known[] = {
    { "flush", do_flush, ANYONE },       { "status", do_status, ANYONE },
    { "hold", do_hold, ANYONE },         { "release", do_release, ANYONE },
    { "database", do_database, READER }, { "set", do_set, OWNER },
    { "stop", do_stop, OWNER },          { "gpu", do_gpu, OWNER },
};

static void run_line(struct client *client)
{
    for (size_t i = 0; i < sizeof(commands_known) / sizeof(commands_known[0]); i++) {
        const size_t length = strlen(commands_known[i].name);
        if (strncmp(client->line, commands_known[i].name, length) == 0 &&
            (client->line[length] == '\0' || client->line[length] == ' ')) {
            const enum right right = commands_known[i].right;
            if ((right == OWNER && !is_owner(client)) || (right == READER && !client->is_reader))
                answer(client, "refused the system daemon accepts this command only from root\n");
            else
                commands_known[i].run(client);
            return;
        }
    }
    answer(client, "error unknown command\n");
}

/* ---- connections ---- */

static void on_alloc(uv_handle_t *handle, size_t suggested, uv_buf_t *buffer)
{
    (void)suggested;
    struct client *client = handle->data;
    *buffer =
        uv_buf_init(client->line + client->length, (unsigned int)(sizeof(client->line) - client->length));
}

static void on_read(uv_stream_t *stream, ssize_t got, const uv_buf_t *buffer)
{
    (void)buffer;
    struct client *client = stream->data;
    if (got < 0) {
        drop(client);
        return;
    }
    client->length += (size_t)got;
    char *newline;
    while (!uv_is_closing((uv_handle_t *)stream) &&
           (newline = memchr(client->line, '\n', client->length)) != NULL) {
        *newline = '\0';
        run_line(client);
        const size_t used = (size_t)(newline + 1 - client->line);
        memmove(client->line, newline + 1, client->length - used);
        client->length -= used;
    }
    if (client->length == sizeof(client->line))
        drop(client); /* longer than any command */
}

/* Returns whether the group that may read the trace is the peer's primary group or one of its supplementary
 * groups. */
static bool is_member(int fd, gid_t first, gid_t group)
{
    enum { GROUPS_MAX = 1024 };
    gid_t groups[GROUPS_MAX];
    socklen_t bytes = sizeof(groups);
    if (group == (gid_t)CT_NO_GROUP)
        return false;
    if (first == group)
        return true;
    if (getsockopt(fd, SOL_SOCKET, SO_PEERGROUPS, groups, &bytes) != 0)
        return false;
    for (size_t i = 0; i < bytes / sizeof(groups[0]); i++) {
        if (groups[i] == group)
            return true;
    }
    return false;
}

/* Determines the peer's user. Returns false if the connection must be refused. */
static bool may_connect(struct client *client, int fd)
{
    struct ucred peer;
    socklen_t bytes = sizeof(peer);
    const struct ct_commands *commands = client->commands;
    if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &bytes) != 0)
        return false;
    client->uid = peer.uid;
    client->is_reader = is_owner(client) || is_member(fd, peer.gid, commands->handler.readers);
    if (is_owner(client))
        return true;
    struct ct_holding his = { 0 }, others = { 0 };
    for (const struct client *other = commands->clients; other; other = other->next) {
        his.has[CT_SHARED_CLIENTS] += other->uid == client->uid;
        others.has[CT_SHARED_CLIENTS] += !is_owner(other);
    }
    return commands->handler.system &&
           ct_share_has_room(&others, &his, CT_SHARED_CLIENTS, ct_descriptors_for_clients());
}

static void on_connection(int fd, void *data)
{
    struct ct_commands *commands = data;
    struct client *client = calloc(1, sizeof(*client));
    if (client)
        client->commands = commands;
    if (!client || !may_connect(client, fd)) {
        close(fd);
        free(client);
        return;
    }
    uv_pipe_init(commands->loop, &client->pipe, 0);
    client->pipe.data = client;
    client->next = commands->clients;
    commands->clients = client;
    const int error = uv_pipe_open(&client->pipe, fd);
    if (error)
        close(fd);
    if (error || uv_read_start((uv_stream_t *)&client->pipe, on_alloc, on_read) != 0)
        drop(client);
}

/* Returns 0 or a libuv error. */
static int start_listening(struct ct_commands *commands)
{
    /* libuv does not bind the socket, because it would later unlink the path, even if another process owned
     * it by then. The session's lock proves that a socket at the path is not in use. */
    const int fd = ct_claimed_socket(commands->path, SOCK_STREAM, commands->handler.system ? 0111 : 0177,
                                     &commands->inode);
    if (fd < 0)
        return uv_translate_sys_error(-fd);
    const int error = ct_listener_create(commands->loop, fd, on_connection, commands, &commands->listener);
    CT_TEST_POINT("command.listening");
    return error;
}

int ct_commands_create(uv_loop_t *loop, const char *path, const struct ct_command_handler *handler,
                       struct ct_commands **result)
{
    struct ct_commands *commands = calloc(1, sizeof(*commands));
    if (!commands)
        return UV_ENOMEM;
    commands->handler = *handler;
    commands->loop = loop;
    snprintf(commands->path, sizeof(commands->path), "%s", path);
    *result = commands;
    return start_listening(commands);
}

bool ct_commands_are_named(const struct ct_commands *commands)
{
    struct stat status;
    return stat(commands->path, &status) == 0 && status.st_ino == commands->inode;
}

bool ct_commands_renew(struct ct_commands *commands)
{
    if (commands->listener)
        ct_listener_destroy(commands->listener);
    commands->listener = NULL;
    return start_listening(commands) == 0;
}

/* Returns whether the client waits for other users' calls, too. */
static bool is_for_all(const struct client *client)
{
    return is_owner(client) && client->commands->handler.system;
}

static bool is_held(const struct client *client, const struct ct_flush_answers *answers)
{
    const bool waits_for_all = is_for_all(client) && ct_monotonic_ns() - client->flush_ns < OTHERS_MAX_NS;
    return answers->held(client->uid, waits_for_all, answers->data);
}

/* In the system session, the answer to root also reports other users' missing calls. It still begins with
 * `ok`, because root's own flush succeeded. */
static void answer_flush(struct client *client, const struct ct_flush_answers *answers)
{
    char text[ANSWER_BYTES], what[ANSWER_BYTES - 16];
    if (answers && answers->missing(client->uid, is_owner(client), what, sizeof(what), answers->data))
        snprintf(text, sizeof(text), "%s %s\n", is_for_all(client) ? "ok" : "error", what);
    else if (answers && is_for_all(client) && answers->held(client->uid, true, answers->data))
        snprintf(text, sizeof(text), "ok some calls of other users are still waiting to be stored\n");
    else
        snprintf(text, sizeof(text), "ok\n");
    answer(client, text);
}

void ct_commands_flushed(struct ct_commands *commands, uint64_t flushed_ns,
                         const struct ct_flush_answers *answers, const char *error)
{
    char text[ANSWER_BYTES];
    snprintf(text, sizeof(text), "error %s\n", error ? error : "");
    for (struct client *client = commands->clients; client; client = client->next) {
        if (client->flush_ns == 0 || client->flush_ns > flushed_ns ||
            (!error && answers && is_held(client, answers)))
            continue;
        client->flush_ns = 0;
        if (error)
            answer(client, text);
        else
            answer_flush(client, answers);
    }
}

void ct_commands_answer_gpu(struct ct_commands *commands, const struct ct_gpu_targets *targets)
{
    const uint64_t now_ns = ct_monotonic_ns();
    for (struct client *client = commands->clients, *next; client; client = next) {
        next = client->next;
        if (client->gpu_due_ns == 0 ||
            (client->gpu_due_ns > now_ns && !ct_gpu_request_is_followed(targets, &client->gpu)))
            continue;
        char text[ANSWER_BYTES], what[ANSWER_BYTES - 16];
        client->gpu_due_ns = 0;
        ct_gpu_request_say(targets, client->gpu.pid, what, sizeof(what));
        snprintf(text, sizeof(text), "ok %s\n", what);
        answer(client, text);
    }
}

uint64_t ct_commands_waiting(const struct ct_commands *commands)
{
    uint64_t oldest = 0;
    for (const struct client *client = commands->clients; client; client = client->next) {
        if (client->flush_ns && (oldest == 0 || client->flush_ns < oldest))
            oldest = client->flush_ns;
    }
    return oldest;
}

void ct_commands_destroy(struct ct_commands *commands, const char *left, const char *error)
{
    if (!commands)
        return;
    char text[ANSWER_BYTES];
    snprintf(text, sizeof(text), error ? "error %s\n" : "ok %s\n", error ? error : left);
    if (ct_commands_are_named(commands))
        unlink(commands->path);
    CT_TEST_POINT("command.removed");
    ct_commands_flushed(commands, UINT64_MAX, NULL, error);
    while (commands->clients) {
        struct client *client = commands->clients;
        if (client->stops)
            answer(client, text);
        client->holds = false;
        /* Answers are so small that they have already been written synchronously. The client knows that the
         * daemon has exited when the connection is closed. */
        drop(client);
    }
    if (commands->listener)
        ct_listener_destroy(commands->listener);
    free(commands);
}
