#include "channels.h"

#include "programs_state.h"

#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <errno.h>
#include <unistd.h>

static int make_map(enum bpf_map_type type, const char *name, uint32_t key, uint32_t value, uint32_t entries,
                    uint32_t flags)
{
    LIBBPF_OPTS(bpf_map_create_opts, options, .map_flags = flags);
    const int map = bpf_map_create(type, name, key, value, entries, &options);
    return map < 0 ? -errno : map;
}

static int make_maps(struct ct_channel *channel)
{
    channel->threads = make_map(BPF_MAP_TYPE_ARRAY, "ct_threads", sizeof(uint32_t),
                                sizeof(struct ct_probe_thread), CT_PROBE_THREADS, BPF_F_MMAPABLE);
    channel->lost = make_map(BPF_MAP_TYPE_ARRAY, "ct_lost", sizeof(uint32_t), sizeof(struct ct_probe_lost),
                             CT_PROBE_FUNCTIONS, BPF_F_MMAPABLE);
    channel->ring = make_map(BPF_MAP_TYPE_RINGBUF, "ct_ring", 0, 0, CT_PROBE_RING_BYTES, 0);
    return channel->threads < 0 ? channel->threads
           : channel->lost < 0  ? channel->lost
           : channel->ring < 0  ? channel->ring
                                : 0;
}

/* Puts the maps into the outer map. After each update of a map of maps, the kernel waits about 10 ms until no
 * program uses the old value. If all updates are made as one batch (Linux 5.17), it waits only once. */
static int insert(const struct bpf_map *outer, const uint32_t *numbers, const int *maps, uint32_t count)
{
    uint32_t done = count;
    if (bpf_map_update_batch(bpf_map__fd(outer), numbers, maps, &done, NULL) == 0)
        return 0;
    for (uint32_t i = 0; i < count; i++) {
        if (bpf_map__update_elem(outer, &numbers[i], sizeof(numbers[i]), &maps[i], sizeof(maps[i]),
                                 BPF_ANY) != 0)
            return -errno;
    }
    return 0;
}

static int insert_all(struct ct_programs *programs, const struct ct_channel *channels, uint32_t count)
{
    const struct ct_calls *calls = programs->calls;
    uint32_t numbers[CT_CHANNELS_AT_ONCE];
    int rings[CT_CHANNELS_AT_ONCE], threads[CT_CHANNELS_AT_ONCE], lost[CT_CHANNELS_AT_ONCE];
    for (uint32_t i = 0; i < count; i++) {
        numbers[i] = channels[i].number;
        rings[i] = channels[i].ring;
        threads[i] = channels[i].threads;
        lost[i] = channels[i].lost;
    }
    int error = insert(calls->maps.threads, numbers, threads, count);
    if (!error)
        error = insert(calls->maps.lost, numbers, lost, count);
    return error ? error : insert(calls->maps.rings, numbers, rings, count);
}

/* States of a channel. The outer maps still contain the maps of a freed channel until they are replaced. */
enum { EMPTY, FREED, TAKEN };

static bool change(struct ct_programs *programs, uint32_t number, uint8_t from, uint8_t to)
{
    return __atomic_compare_exchange_n(&programs->channel[number], &from, to, false, __ATOMIC_ACQ_REL,
                                       __ATOMIC_ACQUIRE);
}

/* Returns a number that no channel has, or CT_PROBE_PROCESSES. */
static uint32_t take_number(struct ct_programs *programs)
{
    uint32_t number = 0;
    while (number < CT_PROBE_PROCESSES && !change(programs, number, EMPTY, TAKEN) &&
           !change(programs, number, FREED, TAKEN))
        number++;
    return number;
}

int ct_channels_make(struct ct_programs *programs, struct ct_channel *channels, uint32_t count)
{
    uint32_t made = 0;
    int error = 0;
    for (; made < count && !error; made++) {
        const uint32_t number = take_number(programs);
        if (number == CT_PROBE_PROCESSES) {
            error = -ENOSPC;
            break;
        }
        channels[made] = (struct ct_channel){ .number = number, .ring = -1, .threads = -1, .lost = -1 };
        programs->calls->bss->ends[number] = 0;
        error = make_maps(&channels[made]);
    }
    if (!error)
        error = insert_all(programs, channels, count);
    for (uint32_t i = 0; error && i < made; i++)
        ct_channel_free(programs, &channels[i]);
    return error;
}

void ct_channel_free(struct ct_programs *programs, struct ct_channel *channel)
{
    const int maps[] = { channel->ring, channel->threads, channel->lost };
    for (size_t i = 0; i < sizeof(maps) / sizeof(maps[0]); i++) {
        if (maps[i] >= 0)
            close(maps[i]);
    }
    if (channel->is_held) {
        struct ct_calls__bss *counts = programs->calls->bss;
        __atomic_fetch_sub(&counts->users[channel->holder % CT_PROBE_USERS].held, 1, __ATOMIC_RELAXED);
        __atomic_fetch_sub(&counts->held, 1, __ATOMIC_RELAXED);
    }
    change(programs, channel->number, TAKEN, FREED);
    *channel = (struct ct_channel){ .ring = -1, .threads = -1, .lost = -1 };
}

/* Makes the maps that replace those of freed channels. */
static bool make_blank(struct ct_programs *programs)
{
    if (programs->blank[0] > 0)
        return true;
    struct ct_channel blank = { .ring = -1, .threads = -1, .lost = -1 };
    const int error = make_maps(&blank);
    const int maps[] = { blank.ring, blank.threads, blank.lost };
    for (int i = 0; i < 3; i++) {
        if (!error)
            programs->blank[i] = maps[i];
        else if (maps[i] >= 0)
            close(maps[i]);
    }
    return !error;
}

void ct_channels_release(struct ct_programs *programs)
{
    struct ct_channel blank[CT_CHANNELS_AT_ONCE];
    uint32_t count = 0;
    for (uint32_t i = 0; i < CT_PROBE_PROCESSES && count < CT_CHANNELS_AT_ONCE; i++) {
        if (!make_blank(programs) || !change(programs, i, FREED, TAKEN))
            continue;
        blank[count++] = (struct ct_channel){
            .number = i, .ring = programs->blank[0], .threads = programs->blank[1], .lost = programs->blank[2]
        };
    }
    const bool is_done = count > 0 && insert_all(programs, blank, count) == 0;
    for (uint32_t i = 0; i < count; i++)
        change(programs, blank[i].number, TAKEN, is_done ? EMPTY : FREED);
}

/* ---- shares ---- */

bool ct_channels_allow(const struct ct_programs *programs, uid_t uid)
{
    const struct ct_calls__bss *counts = programs->calls->bss;
    const uint32_t held = __atomic_load_n(&counts->held, __ATOMIC_RELAXED);
    const uint32_t room = programs->calls->data->room;
    return __atomic_load_n(&counts->users[uid % CT_PROBE_USERS].held, __ATOMIC_RELAXED) <
           CT_PROBE_SHARE * (room > held ? room - held : 0);
}

void ct_channel_hold(struct ct_programs *programs, struct ct_channel *channel, uid_t uid)
{
    struct ct_calls__bss *counts = programs->calls->bss;
    channel->is_held = true;
    channel->holder = uid;
    __atomic_fetch_add(&counts->users[uid % CT_PROBE_USERS].held, 1, __ATOMIC_RELAXED);
    __atomic_fetch_add(&counts->held, 1, __ATOMIC_RELAXED);
}

uint32_t ct_channels_spare(const struct ct_programs *programs)
{
    return __atomic_load_n(&programs->calls->bss->spares, __ATOMIC_RELAXED);
}

void ct_channels_begin_offer(struct ct_programs *programs, bool is_short)
{
    const struct ct_calls__bss *counts = programs->calls->bss;
    const uint32_t held = __atomic_load_n(&counts->held, __ATOMIC_RELAXED);
    programs->calls->data->room = is_short ? held + ct_channels_spare(programs) : CT_PROBE_PROCESSES;
    for (uint32_t i = 0; i < CT_PROBE_USERS; i++)
        __atomic_store_n(&programs->calls->bss->users[i].taken, 0, __ATOMIC_RELAXED);
}

uint32_t ct_channels_take_unnoticed(struct ct_programs *programs)
{
    uint32_t *unnoticed = &programs->calls->bss->unnoticed;
    return __atomic_load_n(unnoticed, __ATOMIC_RELAXED) ? __atomic_exchange_n(unnoticed, 0, __ATOMIC_RELAXED)
                                                        : 0;
}

/* ---- assignments ---- */

const uint32_t *ct_channel_end(const struct ct_programs *programs, const struct ct_channel *channel)
{
    return &programs->calls->bss->ends[channel->number];
}

int ct_channel_give(struct ct_programs *programs, pid_t pid, const struct ct_channel *channel)
{
    const uint32_t tgid = (uint32_t)pid, number = channel ? channel->number : CT_PROBE_PROCESSES;
    return bpf_map__update_elem(programs->calls->maps.channels, &tgid, sizeof(tgid), &number, sizeof(number),
                                channel ? BPF_NOEXIST : BPF_ANY);
}

void ct_channel_take_back(struct ct_programs *programs, pid_t pid, const struct ct_channel *channel)
{
    const struct bpf_map *channels = programs->calls->maps.channels;
    const uint32_t tgid = (uint32_t)pid;
    uint32_t number;
    if (bpf_map__lookup_elem(channels, &tgid, sizeof(tgid), &number, sizeof(number), 0) == 0 &&
        (number == channel->number || number == CT_PROBE_PROCESSES))
        bpf_map__delete_elem(channels, &tgid, sizeof(tgid), 0);
}

void ct_programs_set_machine(struct ct_programs *programs, const struct ct_channel *channel)
{
    programs->calls->bss->machine_channel = channel->number;
}

int ct_companion_give(struct ct_programs *programs, pid_t pid, const struct ct_channel *channel,
                      int32_t producer)
{
    const uint32_t tgid = (uint32_t)pid;
    const struct ct_probe_companion companion = { .producer = (uint64_t)(int64_t)producer,
                                                  .channel = channel->number };
    programs->calls->bss->has_companions = true;
    return bpf_map__update_elem(programs->calls->maps.companions, &tgid, sizeof(tgid), &companion,
                                sizeof(companion), BPF_ANY);
}

void ct_companion_take_back(struct ct_programs *programs, pid_t pid, const struct ct_channel *channel)
{
    const struct bpf_map *companions = programs->calls->maps.companions;
    const uint32_t tgid = (uint32_t)pid;
    struct ct_probe_companion companion;
    if (bpf_map__lookup_elem(companions, &tgid, sizeof(tgid), &companion, sizeof(companion), 0) == 0 &&
        companion.channel == channel->number)
        bpf_map__delete_elem(companions, &tgid, sizeof(tgid), 0);
}

int ct_channel_offer(struct ct_programs *programs, const struct ct_channel *channel)
{
    uint32_t *spares = &programs->calls->bss->spares;
    __atomic_fetch_add(spares, 1, __ATOMIC_RELAXED);
    const int error = bpf_map__update_elem(programs->calls->maps.spare, NULL, 0, &channel->number,
                                           sizeof(channel->number), BPF_ANY);
    if (error)
        __atomic_fetch_sub(spares, 1, __ATOMIC_RELAXED);
    return error;
}
