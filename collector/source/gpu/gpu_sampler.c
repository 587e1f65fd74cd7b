#include "gpu_sampler.h"

#include "clock.h"
#include "log.h"
#include "room.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define SECOND_NS   UINT64_C(1000000000)
#define PATIENCE_NS SECOND_NS /* how long the stop waits for a call of the library */

/* Instances of divided GPUs can be created and destroyed at any time, so they are listed again each time this
 * many samples have been taken. */
enum { LISTED_EVERY = 10 };

struct ct_gpu_sampler {
    pthread_t thread;
    uint64_t interval_ns;
    pthread_mutex_t mutex;
    pthread_cond_t cond;

    /* Protected by the mutex. */
    bool is_wanted, stop;
    bool is_calling; /* the thread is in the library */
    bool has_ended;
    struct ct_gpu_items items;
    uint64_t lost;

    /* Owned by the thread. The GPUs stay at their addresses. */
    struct ct_nvml *nvml;
    struct ct_gpu **known;
    size_t known_count, known_room;
    struct ct_gpu **present;
    size_t present_count, present_room;
    bool is_divided;                /* a GPU is divided */
    unsigned samples;               /* since the library was opened */
    char problem[CT_MESSAGE_BYTES]; /* the last reason for not sampling */
};

static struct timespec moment(uint64_t ns)
{
    return (struct timespec){ (time_t)(ns / SECOND_NS), (long)(ns % SECOND_NS) };
}

/* ---- items ---- */

static void add(struct ct_gpu_sampler *sampler, const struct ct_gpu_item *item)
{
    struct ct_gpu_items *items = &sampler->items;
    pthread_mutex_lock(&sampler->mutex);
    if (items->count < CT_GPU_ITEMS_MAX &&
        ct_make_room(&items->item, items->count, &items->room, sizeof(*item)))
        items->item[items->count++] = *item;
    else
        sampler->lost++;
    pthread_mutex_unlock(&sampler->mutex);
}

uint64_t ct_gpu_sampler_take(struct ct_gpu_sampler *sampler, struct ct_gpu_items *items)
{
    pthread_mutex_lock(&sampler->mutex);
    const struct ct_gpu_items collected = sampler->items;
    const uint64_t lost = sampler->lost;
    sampler->items = *items;
    sampler->lost = 0;
    pthread_mutex_unlock(&sampler->mutex);
    *items = collected;
    return lost;
}

/* ---- the library ---- */

/* Returns the known GPU with the same description. If there is none, adds the GPU, and reports it in an item.
 * Returns NULL if out of memory. */
static struct ct_gpu *know(struct ct_gpu_sampler *sampler, const struct ct_gpu *described)
{
    for (size_t i = 0; i < sampler->known_count; i++) {
        struct ct_gpu *gpu = sampler->known[i];
        if (memcmp(gpu->text, described->text, sizeof(gpu->text)) == 0 &&
            memcmp(&gpu->facts, &described->facts, sizeof(gpu->facts)) == 0) {
            /* Do not change `text` and `facts`, because the source may be reading them. */
            gpu->device = described->device;
            gpu->whole = described->whole;
            if (gpu->processes_until_us == 0)
                gpu->processes_until_us = described->processes_until_us;
            return gpu;
        }
    }
    struct ct_gpu *gpu = malloc(sizeof(*gpu));
    if (!gpu ||
        !ct_make_room(&sampler->known, sampler->known_count, &sampler->known_room, sizeof(*sampler->known))) {
        free(gpu);
        return NULL;
    }
    *gpu = *described;
    sampler->known[sampler->known_count++] = gpu;
    add(sampler, &(struct ct_gpu_item){ .gpu = gpu, .type = CT_FACT_GPU });
    return gpu;
}

static void note_problem(struct ct_gpu_sampler *sampler, bool is_absent, const char *problem)
{
    if (strcmp(sampler->problem, problem) != 0)
        ct_log(is_absent ? CT_LOG_gpus_absent : CT_LOG_gpus_failed, "GPUs are not sampled: %s", problem);
    snprintf(sampler->problem, sizeof(sampler->problem), "%s", problem);
}

static struct ct_gpu *add_present(struct ct_gpu_sampler *sampler, const struct ct_gpu *described)
{
    struct ct_gpu *gpu = know(sampler, described);
    if (!gpu || !ct_make_room(&sampler->present, sampler->present_count, &sampler->present_room,
                              sizeof(*sampler->present)))
        return NULL;
    return sampler->present[sampler->present_count++] = gpu;
}

/* Lists the GPUs, each followed by its instances. */
static void list_gpus(struct ct_gpu_sampler *sampler)
{
    struct ct_gpu described;
    const unsigned count = ct_nvml_count(sampler->nvml);
    sampler->present_count = 0;
    sampler->is_divided = false;
    for (unsigned place = 0; place < count; place++) {
        struct ct_gpu *gpu =
            ct_nvml_describe(sampler->nvml, place, &described) ? add_present(sampler, &described) : NULL;
        if (!gpu)
            continue;
        const size_t before = sampler->present_count;
        const unsigned instances = ct_nvml_instance_count(sampler->nvml, gpu);
        for (unsigned i = 0; i < instances; i++) {
            if (ct_nvml_describe_instance(sampler->nvml, gpu, i, &described))
                add_present(sampler, &described);
        }
        gpu->has_instances = sampler->present_count > before;
        sampler->is_divided |= gpu->facts.is_mig == 1;
    }
    if (sampler->present_count == 0)
        note_problem(sampler, count == 0, count == 0 ? "NVML lists no GPU" : "NVML cannot identify any GPU");
}

static void open_library(struct ct_gpu_sampler *sampler)
{
    char problem[CT_MESSAGE_BYTES] = "";
    bool is_absent;
    sampler->present_count = 0;
    if (ct_nvml_open(&sampler->nvml, &is_absent, problem) != 0) {
        sampler->nvml = NULL;
        note_problem(sampler, is_absent, problem);
        return;
    }
    sampler->samples = 0;
    list_gpus(sampler);
}

static void close_library(struct ct_gpu_sampler *sampler)
{
    for (size_t i = 0; sampler->nvml && i < sampler->known_count; i++)
        ct_nvml_release(sampler->nvml, sampler->known[i]);
    ct_nvml_close(sampler->nvml);
    sampler->nvml = NULL;
}

static void sample(struct ct_gpu_sampler *sampler)
{
    if (sampler->is_divided && ++sampler->samples % LISTED_EVERY == 0)
        list_gpus(sampler);
    for (size_t i = 0; i < sampler->present_count; i++) {
        struct ct_gpu *gpu = sampler->present[i];
        struct ct_gpu_item item = { .gpu = gpu, .type = CT_FACT_GPU_SAMPLE };
        if (!ct_nvml_sample(sampler->nvml, gpu, sampler->interval_ns < SECOND_NS, &item.sample))
            continue;
        const int64_t time_ns = item.sample.time_ns;
        add(sampler, &item);
        const struct ct_gpu_process_facts *list;
        const size_t count = ct_nvml_processes(sampler->nvml, gpu, &list);
        for (size_t n = 0; n < count; n++) {
            item = (struct ct_gpu_item){ .gpu = gpu, .type = CT_FACT_GPU_PROCESS, .process = list[n] };
            item.process.time_ns = time_ns;
            add(sampler, &item);
        }
    }
}

/* ---- the thread ---- */

/* Releases the mutex while it calls a function that in turn calls the library. */
static void call(struct ct_gpu_sampler *sampler, void (*function)(struct ct_gpu_sampler *sampler))
{
    sampler->is_calling = true;
    pthread_mutex_unlock(&sampler->mutex);
    function(sampler);
    pthread_mutex_lock(&sampler->mutex);
    sampler->is_calling = false;
}

/* Takes samples until they are no longer wanted. If the library cannot be opened, waits until then. */
static void take_samples(struct ct_gpu_sampler *sampler)
{
    uint64_t due_ns = ct_monotonic_ns();
    call(sampler, open_library);
    while (sampler->is_wanted && !sampler->stop) {
        if (!sampler->nvml || sampler->present_count == 0) {
            pthread_cond_wait(&sampler->cond, &sampler->mutex);
            continue;
        }
        call(sampler, sample);
        /* If this sample took longer than the interval, skip the samples that are already due. */
        do
            due_ns += sampler->interval_ns;
        while (due_ns <= ct_monotonic_ns());
        const struct timespec due = moment(due_ns);
        while (sampler->is_wanted && !sampler->stop &&
               pthread_cond_timedwait(&sampler->cond, &sampler->mutex, &due) == 0)
            ;
    }
    call(sampler, close_library);
}

static void *thread_main(void *data)
{
    struct ct_gpu_sampler *sampler = data;
    pthread_mutex_lock(&sampler->mutex);
    while (!sampler->stop) {
        if (sampler->is_wanted)
            take_samples(sampler);
        else
            pthread_cond_wait(&sampler->cond, &sampler->mutex);
    }
    sampler->has_ended = true;
    pthread_cond_broadcast(&sampler->cond);
    pthread_mutex_unlock(&sampler->mutex);
    return NULL;
}

void ct_gpu_sampler_set(struct ct_gpu_sampler *sampler, bool is_wanted)
{
    pthread_mutex_lock(&sampler->mutex);
    if (sampler->is_wanted != is_wanted)
        pthread_cond_broadcast(&sampler->cond);
    sampler->is_wanted = is_wanted;
    pthread_mutex_unlock(&sampler->mutex);
}

struct ct_gpu_sampler *ct_gpu_sampler_create(uint64_t interval_ns)
{
    struct ct_gpu_sampler *sampler = calloc(1, sizeof(*sampler));
    if (!sampler)
        return NULL;
    sampler->interval_ns = interval_ns;
    pthread_mutex_init(&sampler->mutex, NULL);
    pthread_condattr_t attributes;
    pthread_condattr_init(&attributes);
    pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
    pthread_cond_init(&sampler->cond, &attributes);
    pthread_condattr_destroy(&attributes);
    if (pthread_create(&sampler->thread, NULL, thread_main, sampler) == 0) {
        pthread_setname_np(sampler->thread, "gpu-samples");
        return sampler;
    }
    free(sampler);
    return NULL;
}

/* Exits without running the library's destructors, because a thread is still executing the library's code. */
static void exit_at_once(int status, void *data)
{
    (void)data;
    fflush(NULL);
    _exit(status);
}

void ct_gpu_sampler_destroy(struct ct_gpu_sampler *sampler)
{
    if (!sampler)
        return;
    const struct timespec until = moment(ct_monotonic_ns() + PATIENCE_NS);
    pthread_mutex_lock(&sampler->mutex);
    sampler->stop = true;
    pthread_cond_broadcast(&sampler->cond);
    int error = 0;
    while (!sampler->has_ended && !error)
        error = pthread_cond_timedwait(&sampler->cond, &sampler->mutex, &until);
    const bool has_ended = sampler->has_ended;
    pthread_mutex_unlock(&sampler->mutex);
    if (!has_ended) {
        ct_log(CT_LOG_gpu_call_hangs,
               "a call of NVML has not returned, and is abandoned: the daemon exits without it");
        pthread_detach(sampler->thread);
        on_exit(exit_at_once, NULL);
        return;
    }
    pthread_join(sampler->thread, NULL);
    for (size_t i = 0; i < sampler->known_count; i++)
        free(sampler->known[i]);
    free(sampler->known);
    free(sampler->present);
    free(sampler->items.item);
    pthread_cond_destroy(&sampler->cond);
    pthread_mutex_destroy(&sampler->mutex);
    free(sampler);
}
