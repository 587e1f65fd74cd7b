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

int ct_channels_make(struct ct_programs *programs, struct ct_channel *channels, uint32_t count)
{
    uint32_t made = 0, number = 0;
    int error = 0;
    for (; made < count && !error; made++) {
        while (number < CT_PROBE_PROCESSES && programs->taken[number])
            number++;
        if (number == CT_PROBE_PROCESSES) {
            error = -ENOSPC;
            break;
        }
        channels[made] = (struct ct_channel){ .number = number, .ring = -1, .threads = -1, .lost = -1 };
        programs->taken[number] = true;
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
    const struct ct_calls *calls = programs->calls;
    const struct {
        int map;
        const struct bpf_map *outer;
    } parts[] = { { channel->ring, calls->maps.rings },
                  { channel->threads, calls->maps.threads },
                  { channel->lost, calls->maps.lost } };
    for (size_t i = 0; i < sizeof(parts) / sizeof(parts[0]); i++) {
        if (parts[i].map < 0)
            continue;
        bpf_map__delete_elem(parts[i].outer, &channel->number, sizeof(channel->number), 0);
        close(parts[i].map);
    }
    programs->taken[channel->number] = false;
    *channel = (struct ct_channel){ .ring = -1, .threads = -1, .lost = -1 };
}

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
    return bpf_map__update_elem(programs->calls->maps.spare, NULL, 0, &channel->number,
                                sizeof(channel->number), BPF_ANY);
}
