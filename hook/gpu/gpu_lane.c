#include "gpu_lane.h"

#include "current.h"
#include "find_daemon.h"
#include "gpu_device.h"
#include "lock.h"
#include "ring.h"
#include "table.h"
#include "texts.h"
#include "thread.h"

#include <string.h>

static struct ct_producer *producer; /* NULL: no lane yet */
static uint32_t number;              /* of the recording */
static uint64_t dropped;             /* records that no report has counted yet */
/* A bit for each device: it needs no description any more, the driver has been asked for it, and it is known.
 */
static uint64_t described, asked, known;
enum { DEVICES = 64 };

void ct_gpu_lane_begin(uint32_t recording)
{
    number = recording;
    dropped = 0;
    described = asked = 0;
}

/* Returns the producer, or NULL if there is no lane in the process's current segment. */
static struct ct_producer *take(void)
{
    struct ct_segment *segment = ct_process_current();
    if (!producer && segment) {
        struct ct_thread_identity own = { .tid = ct_thread_number() };
        strcpy(own.name.name, "cudatrace-gpu");
        producer = ct_thread_take_for(segment, &own);
    }
    return producer && producer->epoch == ct_process_epoch() ? producer : NULL;
}

void ct_gpu_lane_end(void)
{
    if (producer)
        ct_thread_give_back_for(producer);
    producer = NULL;
}

void ct_gpu_lane_forget(void)
{
    producer = NULL;
}

/* Does what ct_attach_apply() does for other lanes. This lane needs no new selection. The recording's thread
 * checks itself whether the segment has been abandoned. */
static void ring(void)
{
    const uint64_t wake = ct_lane_wake(producer->lane);
    if (producer->position >= wake && ct_daemon_ring() && wake != 0)
        ct_lane_rung(producer->lane, wake);
}

/* Writes a record of GPU work. Returns false if there is no lane or no room. */
static bool write_work(struct ct_record *record, struct ct_gpu_work *work, uint32_t string)
{
    if (!take())
        return false;
    ct_record_measure(record, sizeof(*work));
    ct_record_hold(producer, 0);
    work->kernel = ct_texts_number(string, producer);
    const bool room = ct_record_room(producer, record->slots);
    if (room)
        ct_record_write(producer, record, work, sizeof(*work));
    ct_record_release(producer);
    ring();
    return room;
}

/* Describes a device before the recording's first work on it. Devices after the 64th have no description. The
 * driver is asked only once, even if there is no room. */
static void describe(uint32_t device)
{
    static struct ct_device description[DEVICES];
    const uint64_t bit = UINT64_C(1) << device % DEVICES;
    if (device >= DEVICES || described & bit || !take())
        return;
    if (!(asked & bit))
        known = ct_gpu_device_query(device, &description[device]) ? known | bit : known & ~bit;
    asked |= bit;
    bool room = true;
    if (known & bit) {
        struct ct_record record = { .end = ct_now(), .kind = CT_KIND_DEVICE, .value = device };
        ct_record_measure(&record, sizeof(description[device]));
        ct_record_hold(producer, 0);
        room = ct_record_room(producer, record.slots);
        if (room)
            ct_record_write(producer, &record, &description[device], sizeof(description[device]));
        ct_record_release(producer);
    }
    if (room)
        described |= bit;
}

uint32_t ct_gpu_lane_text(const char *name)
{
    if (!ct_table_lock())
        return 0;
    const uint32_t string = ct_texts_hold(name, CT_STRING_MAX);
    ct_table_unlock();
    return string;
}

void ct_gpu_lane_release(uint32_t string)
{
    if (!string || !ct_table_lock())
        return;
    ct_texts_release(string);
    ct_table_unlock();
}

void ct_gpu_lane_work(const struct ct_gpu_work *work, uint64_t end, uint64_t duration, uint32_t correlation)
{
    struct ct_gpu_work own = *work;
    struct ct_record record = {
        .end = end,
        .span = ct_span(duration, 0, 0),
        .kind = CT_KIND_GPU_WORK,
        .value = ct_correlation(number, correlation),
    };
    describe(work->device);
    if (!write_work(&record, &own, work->kernel))
        dropped++;
}

void ct_gpu_lane_drop(uint64_t count)
{
    dropped += count;
    if (!dropped)
        return;
    struct ct_gpu_work report = { .kind = CT_GPU_DROPPED, .bytes = dropped };
    struct ct_record record = { .end = ct_now(), .kind = CT_KIND_GPU_WORK };
    if (write_work(&record, &report, 0))
        dropped = 0;
}
