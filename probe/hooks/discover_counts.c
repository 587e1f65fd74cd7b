#include "discover_counts.h"

#include "discover.skel.h" /* needs discovered.h */

#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <errno.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <unistd.h>

struct ct_counts {
    struct ct_discover *programs; /* the skeleton */
    struct bpf_link *follow, **link;
    size_t links;
    bool is_multi;
};

static int load(struct ct_counts *counts, size_t numbers, bool is_multi)
{
    counts->is_multi = is_multi;
    counts->programs = ct_discover__open();
    if (!counts->programs)
        return -errno;
    bpf_program__set_autoload(counts->programs->progs.count_multi, is_multi);
    bpf_program__set_autoload(counts->programs->progs.count_event, !is_multi);
    int error = bpf_map__set_max_entries(counts->programs->maps.discovered, (uint32_t)numbers);
    if (!error)
        error = ct_discover__load(counts->programs);
    if (error)
        return error;
    counts->follow = bpf_program__attach(counts->programs->progs.follow);
    return counts->follow ? 0 : -errno;
}

static int attach_multi(struct ct_counts *counts, const struct ct_count_place *place, size_t places)
{
    unsigned long *addresses = calloc(places, sizeof(*addresses));
    uint64_t *cookies = calloc(places, sizeof(*cookies));
    int error = addresses && cookies ? 0 : -ENOMEM;
    for (size_t i = 0; !error && i < places; i++) {
        addresses[i] = place[i].address;
        cookies[i] = place[i].number;
    }
    LIBBPF_OPTS(bpf_kprobe_multi_opts, options, .addrs = addresses, .cookies = (const __u64 *)cookies,
                .cnt = places);
    if (!error && !(counts->link[0] = bpf_program__attach_kprobe_multi_opts(
                        counts->programs->progs.count_multi, NULL, &options)))
        error = -errno;
    counts->links = !error;
    free(addresses);
    free(cookies);
    return error;
}

/* Functions are left out if the kernel refuses to probe them. */
static int attach_events(struct ct_counts *counts, const struct ct_count_place *place, size_t places,
                         size_t *refused)
{
    if (places > CT_COUNTS_EVENTS_MAX)
        return -E2BIG;
    int error = -ENODATA;
    for (size_t i = 0; i < places; i++) {
        LIBBPF_OPTS(bpf_kprobe_opts, options, .bpf_cookie = place[i].number);
        struct bpf_link *link =
            bpf_program__attach_kprobe_opts(counts->programs->progs.count_event, place[i].symbol, &options);
        if (!link)
            error = -errno;
        else
            counts->link[counts->links++] = link;
    }
    *refused = places - counts->links;
    return counts->links > 0 ? 0 : error;
}

static void detach(struct ct_counts *counts)
{
    while (counts->links > 0)
        bpf_link__destroy(counts->link[--counts->links]);
    bpf_link__destroy(counts->follow);
    ct_discover__destroy(counts->programs);
    counts->follow = NULL;
    counts->programs = NULL;
}

static int print_nothing(enum libbpf_print_level level, const char *format, va_list arguments)
{
    (void)level, (void)format, (void)arguments;
    return 0;
}

int ct_counts_begin(struct ct_counts **result, const struct ct_count_place *place, size_t places,
                    size_t numbers, bool is_multi, size_t *refused)
{
    struct ct_counts *counts = calloc(1, sizeof(*counts));
    int error = counts && (counts->link = calloc(places, sizeof(*counts->link))) ? -EOPNOTSUPP : -ENOMEM;
    libbpf_set_print(print_nothing);
    *refused = 0;
    if (error == -EOPNOTSUPP && is_multi && !(error = load(counts, numbers, true)))
        error = attach_multi(counts, place, places);
    if (error && error != -ENOMEM) {
        detach(counts);
        error = load(counts, numbers, false);
        if (!error)
            error = attach_events(counts, place, places, refused);
    }
    *result = counts;
    if (!error)
        return 0;
    ct_counts_end(counts);
    *result = NULL;
    return error;
}

int ct_counts_follow(const struct ct_counts *counts, pid_t pid)
{
    const int process = (int)syscall(SYS_pidfd_open, pid, 0);
    void *thread = calloc(1, bpf_map__value_size(counts->programs->maps.threads));
    int error = process < 0 ? -errno : thread ? 0 : -ENOMEM;
    if (!error &&
        bpf_map_update_elem(bpf_map__fd(counts->programs->maps.threads), &process, thread, BPF_NOEXIST) != 0)
        error = -errno;
    free(thread);
    if (process >= 0)
        close(process);
    return error;
}

int ct_counts_read(const struct ct_counts *counts, uint32_t number, struct ct_discovered *discovered)
{
    return bpf_map_lookup_elem(bpf_map__fd(counts->programs->maps.discovered), &number, discovered) == 0
               ? 0
               : -errno;
}

bool ct_counts_is_multi(const struct ct_counts *counts)
{
    return counts->is_multi;
}

uint64_t ct_counts_missed(const struct ct_counts *counts)
{
    return counts->programs->bss->missed_threads;
}

void ct_counts_end(struct ct_counts *counts)
{
    if (!counts)
        return;
    detach(counts);
    free(counts->link);
    free(counts);
}
