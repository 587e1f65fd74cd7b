/* The daemon's command socket: one line in, one answer out. Used only on the loop thread. The system daemon
 * answers all users. For users other than root, `flush`, `hold` and `release` work as usual, `status` shows
 * less, and all other commands are answered with `refused …`. Only users who may read the trace receive its
 * path.
 *
 *   flush     ok | error …      everything recorded before the command is in the database. `ok SENTENCE`
 *                               informs root of other users' calls that are missing
 *   status    key value lines   followed by an empty line
 *   stop      ok COUNT PID …    when the daemon is about to exit: the number of processes that keep running
 *                               untraced, and the first CT_LEFT_NAMED_MAX pids
 *   hold      ok DATABASE       the connection counts as a user of the daemon until it ends
 *   release   ok                ends the hold; if the daemon then exits, the answer is the same as for stop
 *   database  DATABASE          the file being written
 *   set       ok | error …      [layers=L] [calls=P] [sample=N]: selects the calls that the session's
 *                               processes record (proto/selection.h)
 *   gpu       ok SENTENCE |     SECONDS|on|off [PID]: records GPU work in the session's processes. The answer
 *             error …           describes the result. It is sent when all processes have followed the
 *                               request, or at the next check after ct_gpu_request_due_ns()
 */
#ifndef CT_COMMAND_H
#define CT_COMMAND_H

#include "gpu_request.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>
#include <uv.h>

struct ct_commands;

struct ct_command_handler {
    /* Requests a flush; ct_commands_flushed() answers it. */
    void (*flush)(uint64_t flush_ns, void *data);
    void (*stop)(void *data);
    /* Changes the selection. Returns false with a sentence in `problem` if `settings` is invalid. */
    bool (*set)(const char *settings, char *problem, size_t bytes, void *data);
    /* Requests the recording of GPU work. Returns false with a sentence in `problem` if the request is
     * invalid. */
    bool (*gpu)(const char *text, struct ct_gpu_request *request, char *problem, size_t bytes, void *data);
    /* Writes the answer to `status`. */
    void (*status)(char *text, size_t bytes, void *data);
    /* Returns whether the daemon still accepts the command `hold`. */
    bool (*may_hold)(void *data);
    /* Called when the number of holders changes to `count`. `begins` is true if a run begins with the new
     * holder. Returns true if the change makes the daemon exit. */
    bool (*holders)(bool begins, size_t count, void *data);
    /* If set, the socket serves all users. A table in command.c lists the rights that each command needs.
     * `status_for_others` writes the answer for users other than root. */
    bool system;
    void (*status_for_others)(char *text, size_t bytes, uint32_t uid, void *data);
    const char *database;
    gid_t readers; /* the group that may read the database, or CT_NO_GROUP */
    void *data;
};

/* Listens on the socket at `path`. Replaces a socket that is not in use. Returns 0 or a libuv error. */
int ct_commands_create(uv_loop_t *loop, const char *path, const struct ct_command_handler *handler,
                       struct ct_commands **commands);
/* Returns whether the path still refers to the socket. */
bool ct_commands_are_named(const struct ct_commands *commands);
/* Recreates the socket at its path. Existing connections continue. Returns false on failure. */
bool ct_commands_renew(struct ct_commands *commands);
/* Functions that determine the answer to a user's flush. */
struct ct_flush_answers {
    /* Returns whether some of this user's calls (or of any user's if `all` is set) are still held back, in
     * which case the client keeps waiting. Only root waits for other users' calls, and only for a limited
     * time, because a user can exceed a share for ever. */
    bool (*held)(uint32_t uid, bool all, const void *data);
    /* Returns whether calls of this user (or of any user if `all` is set) would remain unstored even if the
     * client kept waiting. Writes a sentence about them. */
    bool (*missing)(uint32_t uid, bool all, char *text, size_t bytes, const void *data);
    const void *data;
};
/* Answers the flushes requested up to `flushed_ns`. If `error` is not NULL, the answer is that error. Flushes
 * that were requested later wait for the next batch. `answers` may be NULL. */
void ct_commands_flushed(struct ct_commands *commands, uint64_t flushed_ns,
                         const struct ct_flush_answers *answers, const char *error);
/* Answers GPU requests that all processes have followed, or that have waited long enough. Call after each
 * batch, and once in a while. */
void ct_commands_answer_gpu(struct ct_commands *commands, const struct ct_gpu_targets *targets);
/* Returns the time of the oldest waiting flush, or 0 if there is none. */
uint64_t ct_commands_waiting(const struct ct_commands *commands);
/* Answers all waiting clients. If `error` is not NULL, the answer is that error. Then removes the socket and
 * closes the connections. Clients that stopped the daemon get `left` as the answer. `commands` may be
 * NULL. */
void ct_commands_destroy(struct ct_commands *commands, const char *left, const char *error);

#endif
