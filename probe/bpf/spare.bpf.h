/* The spare channels of processes that the probe does not know yet, and the notices about such processes.
 * Included by calls.bpf.c only. */
#ifndef CT_PROBE_SPARE_BPF_H
#define CT_PROBE_SPARE_BPF_H

#include "tasks.bpf.h"

/* The channels that are free for processes that the probe does not know yet. */
struct {
    __uint(type, BPF_MAP_TYPE_QUEUE);
    __uint(max_entries, CT_PROBE_PROCESSES);
    __type(value, __u32);
} spare SEC(".maps");

struct {
    __uint(type, BPF_MAP_TYPE_RINGBUF);
    __uint(max_entries, CT_NOTICES_BYTES);
} notices SEC(".maps");

/* The number of channels in `spare`, of those that processes hold, and of those that they can hold at most.
 */
__u32 spares, held, room = CT_PROBE_PROCESSES;
struct ct_probe_user users[CT_PROBE_USERS];
/* Processes without a channel whose notice was lost. */
__u32 unnoticed;

/* For each process without a channel, the time of the first call that was not recorded. */
struct {
    __uint(type, BPF_MAP_TYPE_LRU_HASH);
    __uint(max_entries, 16 * CT_PROBE_PROCESSES);
    __type(key, __u32);
    __type(value, __u64);
} missed SEC(".maps");

/* For each process that called exec() while it had a channel, the time of the last such call. */
struct {
    __uint(type, BPF_MAP_TYPE_LRU_HASH);
    __uint(max_entries, CT_PROBE_PROCESSES);
    __type(key, __u32);
    __type(value, __u64);
} executed SEC(".maps");

/* ---- notices ---- */

/* The process may have ended when the probe reads its command line. */
static void read_arguments(struct ct_probe_notice *notice, struct task_struct *current)
{
    const __u64 start = BPF_CORE_READ(current, mm, arg_start), end = BPF_CORE_READ(current, mm, arg_end);
    const bool is_read =
        bpf_probe_read_user(notice->arguments, sizeof(notice->arguments), (const void *)start) == 0;
    notice->arguments_bytes = is_read && end > start ? (__u32)(end - start) : 0;
}

static bool notify_of(__u32 kind, __u32 tgid, __u32 channel, __u64 missed_ns, __u32 cause)
{
    struct ct_probe_notice *notice = bpf_ringbuf_reserve(&notices, sizeof(*notice), 0);
    if (!notice)
        return false;
    notice->kind = kind;
    notice->tgid = tgid;
    notice->channel = channel;
    struct task_struct *current = bpf_get_current_task_btf();
    const __u64 owner = bpf_get_current_uid_gid();
    notice->uid = (__u32)owner;
    notice->gid = owner >> 32;
    notice->cause = cause;
    notice->started_ns = BPF_CORE_READ(current, group_leader, start_boottime);
    bpf_get_current_comm(notice->name, sizeof(notice->name));
    notice->missed_ns = missed_ns;
    __u64 *executed_ns = bpf_map_lookup_elem(&executed, &tgid);
    notice->executed_ns = executed_ns ? *executed_ns : 0;
    notice->reserved = 0;
    read_arguments(notice, current);
    notice->ns = bpf_ktime_get_ns();
    bpf_ringbuf_submit(notice, BPF_RB_FORCE_WAKEUP);
    return true;
}

static bool notify(__u32 kind, __u32 tgid, __u32 channel, __u64 missed_ns)
{
    return notify_of(kind, tgid, channel, missed_ns, 0);
}

/* Notes that calls of the process are not recorded from now on. */
static void miss(__u32 tgid, enum ct_probe_full_cause cause)
{
    __u64 now = bpf_ktime_get_ns();
    if (bpf_map_update_elem(&missed, &tgid, &now, BPF_NOEXIST) == 0 &&
        !notify_of(CT_PROBE_FULL, tgid, 0, now, cause))
        __sync_fetch_and_add(&unnoticed, 1);
}

/* ---- channels ---- */

static struct ct_probe_user *current_user(void)
{
    return &users[(__u32)bpf_get_current_uid_gid() % CT_PROBE_USERS];
}

static bool is_over_share(const struct ct_probe_user *user)
{
    const __u32 left = room > held ? room - held : 0;
    return user->held >= CT_PROBE_SHARE * left || user->taken >= CT_PROBE_SHARE * spares;
}

/* Returns a spare channel, or CT_PROBE_PROCESSES if there is none for the current user. */
static __u32 take_spare(__u32 tgid)
{
    struct ct_probe_user *user = current_user();
    __u32 channel;
    const bool is_over = spares > 0 && is_over_share(user);
    if (is_over || bpf_map_pop_elem(&spare, &channel) != 0) {
        miss(tgid, is_over ? CT_FULL_SHARE : CT_FULL_NONE_FREE);
        return CT_PROBE_PROCESSES;
    }
    __sync_fetch_and_add(&spares, -1);
    __sync_fetch_and_add(&held, 1);
    __sync_fetch_and_add(&user->held, 1);
    __sync_fetch_and_add(&user->taken, 1);
    return channel;
}

/* Returns a channel that the process has not used. */
static void return_spare(__u32 channel)
{
    struct ct_probe_user *user = current_user();
    __sync_fetch_and_add(&user->held, -1);
    __sync_fetch_and_add(&held, -1);
    __sync_fetch_and_add(&spares, 1);
    bpf_map_push_elem(&spare, &channel, 0);
}

#endif
