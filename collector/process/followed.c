#include "followed.h"

#include <poll.h>
#include <stdlib.h>

/* Limits on the images of one process. All except the current one are about to end: they are programs that
 * the process executed earlier, or were left behind by an earlier daemon. */
enum { IMAGES_LOOKED_AT = 4, IMAGES_MAX = 64 };

/* A followed process. The close callback of the poll handle frees this struct. */
struct ct_follower {
    uv_poll_t poll;
    struct ct_followed *followed;
    struct ct_process *process;
    struct ct_follower *next;
    bool ended;
};

void ct_followed_init(struct ct_followed *followed, uv_loop_t *loop, void (*on_end)(void *data), void *data)
{
    *followed = (struct ct_followed){ .loop = loop, .on_end = on_end, .data = data };
}

static void note_end(struct ct_follower *follower)
{
    if (follower->ended)
        return;
    follower->ended = true;
    uv_poll_stop(&follower->poll);
    atomic_store_explicit(&follower->process->dead, true, memory_order_release);
}

static void on_poll(uv_poll_t *poll, int status, int events)
{
    (void)status, (void)events;
    struct ct_follower *follower = poll->data;
    note_end(follower);
    follower->followed->on_end(follower->followed->data);
}

void ct_followed_add(struct ct_followed *followed, struct ct_process *process)
{
    if (process->pidfd < 0)
        return;
    struct ct_follower *follower = calloc(1, sizeof(*follower));
    if (!follower || uv_poll_init(followed->loop, &follower->poll, process->pidfd) != 0) {
        free(follower);
        process->looked_up = process->seen_pid;
        return;
    }
    follower->followed = followed;
    follower->process = process;
    follower->next = followed->first;
    followed->first = follower;
    follower->poll.data = follower;
    process->follower = follower;
    uv_poll_start(&follower->poll, UV_READABLE, on_poll);
}

static void free_follower(uv_handle_t *handle)
{
    free(handle->data);
}

void ct_followed_remove(struct ct_followed *followed, struct ct_process *process)
{
    struct ct_follower *follower = process->follower;
    if (!follower)
        return;
    struct ct_follower **link = &followed->first;
    while (*link != follower)
        link = &(*link)->next;
    *link = follower->next;
    process->follower = NULL;
    uv_poll_stop(&follower->poll);
    uv_close((uv_handle_t *)&follower->poll, free_follower);
}

void ct_followed_look(struct ct_followed *followed)
{
    for (struct ct_follower *f = followed->first; f; f = f->next) {
        struct pollfd end = { .fd = f->process->pidfd, .events = POLLIN };
        if (!f->ended && poll(&end, 1, 0) == 1)
            note_end(f);
    }
}

static bool is_same_process(const struct ct_process *one, const struct ct_process *other)
{
    return one->seen_pid == other->seen_pid && one->pid == other->pid &&
           one->start_ticks == other->start_ticks;
}

bool ct_followed_disproves(const struct ct_followed *followed, const struct ct_process *process)
{
    for (const struct ct_follower *f = followed->first; f; f = f->next) {
        if (is_same_process(f->process, process) && f->process->exec_ns == process->exec_ns)
            return ct_process_hold(process) == CT_HOLD_NO && ct_process_hold(f->process) == CT_HOLD_YES;
    }
    return false;
}

/* Charges the user for each lookup, because a process may have many mappings and images can be forged. */
void ct_followed_end_earlier_execs(struct ct_followed *followed, const struct ct_process *process)
{
    int looked_at = 0;
    for (struct ct_follower *f = followed->first; f && looked_at < IMAGES_LOOKED_AT; f = f->next) {
        if (f->ended || !is_same_process(f->process, process) || f->process->exec_ns >= process->exec_ns)
            continue;
        looked_at++;
        if (process->user)
            process->user->loop_has.has[CT_SHARED_LOOKS] += CT_USER_LOOKS_MAPS;
        if (ct_process_hold(f->process) != CT_HOLD_YES)
            note_end(f);
    }
}

bool ct_followed_has_many(const struct ct_followed *followed, const struct ct_process *process)
{
    int images = 0;
    for (const struct ct_follower *f = followed->first; process->user && f; f = f->next)
        images += is_same_process(f->process, process);
    return images >= IMAGES_MAX;
}
