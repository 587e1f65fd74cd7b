/* The daemon's command socket: one line in, an answer out. Loop thread. The system's daemon answers all
 * users: `flush`, `hold` and `release` do for them what they do for root, `status` says less, and whatever
 * else they ask for is answered with `refused …`. Users who may read the trace are told where it lies.
 *
 *   flush     ok | error …      all that was recorded before is in the database; `ok SENTENCE` tells root
 *                               what of others is not
 *   status    key value lines   and an empty one behind them
 *   stop      ok COUNT PID …    once the daemon is about to leave. Processes that run on untraced: their
 *                               number, and the pids of the first CT_LEFT_NAMED_MAX
 *   hold      ok DATABASE       the connection counts as a user of the daemon until it ends
 *   release   ok                gives the hold back. If the daemon leaves for it, it answers as to stop
 *   database  DATABASE          the file being written
 *   set       ok | error …      [layers=L] [calls=P] [sample=N]: what processes of the session are to
 *                               record (proto/selection.h)
 */
#ifndef CT_COMMAND_H
#define CT_COMMAND_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>
#include <uv.h>

struct ct_commands;

struct ct_command_handler {
    /* A flush is wanted; ct_commands_flushed() answers it. */
    void (*flush)(uint64_t flush_ns, void *data);
    void (*stop)(void *data);
    /* Changes the selection; false with a sentence when that is none. */
    bool (*set)(const char *wishes, char *problem, size_t bytes, void *data);
    /* Writes the answer to `status`. */
    void (*status)(char *text, size_t bytes, void *data);
    /* Returns whether the daemon may still be held. */
    bool (*may_hold)(void *data);
    /* The number of holders changed; true when the daemon leaves for it. */
    bool (*holders)(size_t count, void *data);
    /* The socket is for all users: what each may ask is in a table. `status_for_others` writes their answer.
     */
    bool system;
    void (*status_for_others)(char *text, size_t bytes, uint32_t uid, void *data);
    const char *database;
    gid_t readers; /* the group that may read it, or CT_NO_GROUP */
    void *data;
};

/* Listens on the socket at `path`, which it takes over if nobody serves it. 0 or a libuv error. */
int ct_commands_create(uv_loop_t *loop, const char *path, const struct ct_command_handler *handler,
                       struct ct_commands **commands);
/* Tells whether the socket still has its name. */
bool ct_commands_are_named(const struct ct_commands *commands);
/* Makes the socket anew under its name; connections go on. False when that failed. */
bool ct_commands_renew(struct ct_commands *commands);
/* Answers what a flush must know of the user who asks. */
struct ct_flush_answers {
    /* Tells whether calls of his were left over: he waits on. A user waits for his own calls, and so never
     * for another who has more than his share. */
    bool (*held)(uint32_t uid, const void *data);
    /* Tells whether something of his, or of anybody's where `all`, is not stored however long he waits, and
     * writes a sentence about it. */
    bool (*missing)(uint32_t uid, bool all, char *text, size_t bytes, const void *data);
    const void *data;
};
/* Answers the flushes that were asked for up to `flushed_ns`, with the error when there is one: those that
 * the failed batch could not know of wait for the next. `answers`: NULL where there is nothing to know. */
void ct_commands_flushed(struct ct_commands *commands, uint64_t flushed_ns,
                         const struct ct_flush_answers *answers, const char *error);
/* The oldest flush that waits, 0 for none. */
uint64_t ct_commands_waiting(const struct ct_commands *commands);
/* Answers what waits, with `error` unless it is NULL, takes the socket away and closes. `left` answers those
 * who stopped the daemon. NULL for the commands is fine. */
void ct_commands_destroy(struct ct_commands *commands, const char *left, const char *error);

#endif
