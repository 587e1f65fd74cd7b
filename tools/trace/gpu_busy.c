#include "gpu_busy.h"

#include "room.h"

#include <stdlib.h>
#include <string.h>

/* ---- busy times ---- */

/* Returns the time that is covered after `ns`, at which no more work began. */
static int64_t covered_after(const struct device *device, int64_t ns)
{
    const int64_t covered_ns = device->covered_ns[PART_ANY];
    return covered_ns > ns ? covered_ns - ns : 0;
}

/* Leaves out what was counted before the last kernel ended. */
static void forget_late(const struct sweep *sweep, struct device *device)
{
    if (device->late_from_ns == sweep->last_ns || device->busy == 0)
        return;
    struct ct_gpu_busy *busy = &sweep->sums->busy[device->busy - 1];
    busy->late_ns = covered_after(device, sweep->last_ns);
    device->late_from_ns = sweep->last_ns;
}

/* Work that began before the first kernel may end after it. */
static void note_first_kernel(struct sweep *sweep, int64_t start_ns)
{
    sweep->first_ns = start_ns;
    for (size_t i = 0; i < sweep->devices; i++) {
        const struct device *device = &sweep->device[i];
        if (device->busy > 0)
            sweep->sums->busy[device->busy - 1].early_ns -= covered_after(device, start_ns);
    }
}

static void cover(struct sweep *sweep, struct device *device, struct ct_gpu_busy *busy, enum part part,
                  int64_t start_ns, int64_t end_ns)
{
    int64_t *const sum[PARTS] = {
        [PART_ANY] = &busy->busy_ns,    [PART_KERNEL] = &busy->kernel_ns,
        [PART_COPY] = &busy->copy_ns,   [PART_BOTH] = &busy->both_ns,
        [PART_GRAPH] = &busy->graph_ns, [PART_COMPUTING] = &busy->computing_ns,
    };
    const int64_t from_ns = later(start_ns, device->covered_ns[part]);
    if (from_ns > end_ns)
        return;
    device->covered_ns[part] = end_ns;
    *sum[part] += end_ns - from_ns;
    if (part != PART_ANY)
        return;
    if (sweep->first_ns == NONE)
        busy->early_ns += end_ns - from_ns;
    else
        busy->late_ns += later(end_ns - later(from_ns, sweep->last_ns), 0);
}

static struct ct_gpu_busy *busy_of(struct sweep *sweep, struct device *device)
{
    struct ct_gpu_sums *sums = sweep->sums;
    if (device->busy == 0) {
        if (!ct_make_room(&sums->busy, sums->busies, &sweep->busy_room, sizeof(*sums->busy))) {
            fail(sweep, SQLITE_NOMEM);
            return NULL;
        }
        sums->busy[sums->busies++] =
            (struct ct_gpu_busy){ .device = device->number, .from_ns = INT64_MAX, .to_ns = NONE };
        device->busy = sums->busies;
        device->late_from_ns = sweep->last_ns;
        for (int part = 0; part < PARTS; part++)
            device->covered_ns[part] = NONE;
    }
    return &sums->busy[device->busy - 1];
}

void ct_sweep_busy(struct sweep *sweep, struct device *device, const struct work *work)
{
    const int64_t start_ns = later(work->start_ns, sweep->scope->from_ns);
    const int64_t end_ns = earlier(work->end_ns, sweep->scope->to_ns);
    const bool is_kernel = work->kind == 'k', is_copy = work->kind == 'c', is_graph = work->kind == 'g';
    struct ct_gpu_busy *busy = busy_of(sweep, device);
    if (!busy)
        return;
    const bool covers[PARTS] = { [PART_ANY] = true,       [PART_KERNEL] = is_kernel,
                                 [PART_COPY] = is_copy,   [PART_BOTH] = is_kernel || is_copy,
                                 [PART_GRAPH] = is_graph, [PART_COMPUTING] = is_kernel || is_graph };
    if (covers[PART_COMPUTING]) {
        if (sweep->first_ns == NONE)
            note_first_kernel(sweep, start_ns);
        sweep->last_ns = later(sweep->last_ns, end_ns);
    }
    forget_late(sweep, device);
    for (int part = 0; part < PARTS; part++) {
        if (covers[part])
            cover(sweep, device, busy, (enum part)part, start_ns, end_ns);
    }
    busy->from_ns = earlier(busy->from_ns, start_ns);
    busy->to_ns = later(busy->to_ns, end_ns);
    busy->kernels += is_kernel;
    busy->copies += is_copy;
    busy->sets += work->kind == 's';
    busy->graphs += is_graph;
}

void ct_sweep_end_busy(struct sweep *sweep)
{
    struct ct_gpu_sums *sums = sweep->sums;
    int64_t first_ns = sweep->first_ns, last_ns = sweep->last_ns;
    const bool has_kernel = first_ns != NONE;
    for (size_t i = 0; has_kernel && i < sweep->devices; i++)
        forget_late(sweep, &sweep->device[i]);
    for (size_t i = 0; !has_kernel && i < sums->busies; i++) {
        first_ns = i == 0 ? sums->busy[i].from_ns : earlier(first_ns, sums->busy[i].from_ns);
        last_ns = later(last_ns, sums->busy[i].to_ns);
    }
    for (size_t i = 0; i < sums->busies; i++) {
        struct ct_gpu_busy *busy = &sums->busy[i];
        busy->first_ns = has_from(sweep) ? 0 : first_ns;
        busy->last_ns = has_to(sweep) ? INT64_MAX : last_ns;
        busy->early_ns = has_kernel && !has_from(sweep) ? busy->early_ns : 0;
        busy->late_ns = has_kernel && !has_to(sweep) ? busy->late_ns : 0;
    }
}

/* ---- periods of processes ---- */

static struct ct_gpu_share *share_of(struct sweep *sweep, struct device *device, struct period *period)
{
    struct ct_gpu_sums *sums = sweep->sums;
    if (period->share == 0) {
        if (!ct_make_room(&sums->share, sums->shares, &sweep->share_room, sizeof(*sums->share))) {
            fail(sweep, SQLITE_NOMEM);
            return NULL;
        }
        sums->share[sums->shares++] = (struct ct_gpu_share){
            .device = device->number, .process_id = period->process_id, .from_ns = INT64_MAX, .to_ns = NONE
        };
        period->share = sums->shares;
    }
    return &sums->share[period->share - 1];
}

/* Counts a period that has ended, if it is in the window. */
static void end_period(struct sweep *sweep, struct device *device, struct period *period)
{
    const int64_t from_ns = later(period->from_ns, sweep->scope->from_ns);
    const int64_t to_ns = earlier(period->to_ns, sweep->scope->to_ns);
    const int64_t duration_ns = period->to_ns - period->from_ns;
    period->is_open = false;
    if (from_ns > to_ns)
        return;
    struct ct_gpu_share *share = share_of(sweep, device, period);
    if (!share)
        return;
    share->busy_ns += to_ns - from_ns;
    if (duration_ns > 0)
        share->alone_ns += (double)period->alone_ns * ((double)(to_ns - from_ns) / (double)duration_ns);
    share->periods++;
    share->from_ns = earlier(share->from_ns, from_ns);
    share->to_ns = later(share->to_ns, to_ns);
}

/* Returns the open period that ends first, or NULL. Sets *count to the number of open periods. */
static struct period *first_to_end(struct device *device, size_t *count)
{
    struct period *first = NULL;
    *count = 0;
    for (size_t i = 0; i < device->periods; i++) {
        struct period *period = &device->period[i];
        if (!period->is_open)
            continue;
        ++*count;
        if (!first || period->to_ns < first->to_ns)
            first = period;
    }
    return first;
}

/* Ends all periods of the device that end before `until_ns`. */
static void sweep_periods(struct sweep *sweep, struct device *device, int64_t until_ns)
{
    size_t count;
    for (struct period *period; (period = first_to_end(device, &count)) != NULL;) {
        const int64_t at_ns = earlier(period->to_ns, until_ns);
        if (count == 1)
            period->alone_ns += at_ns - device->swept_ns;
        device->swept_ns = at_ns;
        if (period->to_ns >= until_ns)
            break;
        end_period(sweep, device, period);
    }
    device->swept_ns = until_ns;
}

void ct_sweep_period(struct sweep *sweep, struct device *device, const struct work *work)
{
    sweep_periods(sweep, device, work->start_ns);
    size_t i = 0;
    while (i < device->periods && device->period[i].process_id != work->process_id)
        i++;
    if (i == device->periods) {
        if (!ct_make_room(&device->period, i, &device->period_room, sizeof(*device->period))) {
            fail(sweep, SQLITE_NOMEM);
            return;
        }
        device->period[device->periods++] = (struct period){ .process_id = work->process_id };
    }
    struct period *period = &device->period[i];
    if (!period->is_open) {
        period->from_ns = work->start_ns;
        period->to_ns = work->end_ns;
        period->alone_ns = 0;
        period->is_open = true;
    }
    period->to_ns = later(period->to_ns, work->end_ns);
}

void ct_sweep_end_periods(struct sweep *sweep)
{
    for (size_t i = 0; i < sweep->devices; i++)
        sweep_periods(sweep, &sweep->device[i], INT64_MAX);
}
