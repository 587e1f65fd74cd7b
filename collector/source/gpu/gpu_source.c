#include "gpu_source.h"

#include "gpu_sampler.h"
#include "log.h"
#include "source.h"

#include <stdlib.h>
#include <string.h>

#define INTERVAL_NS_MIN UINT64_C(100000000)
#define INTERVAL_NS_MAX UINT64_C(60000000000)

struct gpu_source {
    struct ct_source source; /* first */
    struct ct_gpu_sampler *sampler;
    struct ct_gpu_items items; /* not committed yet */
    bool is_saved;             /* the batch being made contains the items */
};

static struct gpu_source *source_of(struct ct_source *source)
{
    return (struct gpu_source *)source;
}

static int begin(struct ct_source *source, struct ct_batch *batch)
{
    (void)batch;
    struct gpu_source *gpus = source_of(source);
    const uint64_t lost = gpus->items.count == 0 ? ct_gpu_sampler_take(gpus->sampler, &gpus->items) : 0;
    if (lost > 0)
        ct_log(CT_LOG_gpu_samples_lost,
               "%llu values of GPUs and their processes were lost, because the database could not be written",
               (unsigned long long)lost);
    return 0;
}

static void watermark(struct ct_source *source, struct ct_batch *batch)
{
    (void)source, (void)batch;
}

static int streams(struct ct_source *source, struct ct_batch *batch)
{
    (void)source, (void)batch;
    return 0;
}

static int save_item(struct ct_ledger *ledger, const struct ct_gpu_item *item)
{
    const struct ct_gpu *gpu = item->gpu;
    struct ct_fact fact = {
        .type = item->type, .text = { gpu->text[0], gpu->text[1], gpu->text[2], gpu->text[3], gpu->text[4] }
    };
    if (item->type == CT_FACT_GPU)
        fact.gpu = gpu->facts;
    else if (item->type == CT_FACT_GPU_SAMPLE)
        fact.gpu_sample = item->sample;
    else
        fact.gpu_process = item->process;
    return ct_ledger_save(ledger, &fact);
}

/* A batch with items is committed before the next batch begins, so that publish() and revert() always refer
 * to these items. */
static int save(struct ct_source *source, struct ct_batch *batch)
{
    struct gpu_source *gpus = source_of(source);
    for (size_t i = 0; i < gpus->items.count; i++) {
        if (save_item(batch->ledger, &gpus->items.item[i]) != 0)
            return -1;
    }
    gpus->is_saved = gpus->items.count > 0;
    batch->is_alone |= gpus->is_saved;
    return 0;
}

static void publish(struct ct_source *source, struct ct_batch *batch)
{
    (void)batch;
    struct gpu_source *gpus = source_of(source);
    if (gpus->is_saved)
        gpus->items.count = 0;
    gpus->is_saved = false;
}

static void revert(struct ct_source *source)
{
    source_of(source)->is_saved = false;
}

static void rest(struct ct_source *source, struct ct_report *report)
{
    ct_gpu_sampler_set(source_of(source)->sampler, report->lanes > 0);
}

static const struct ct_source_class gpu_class = {
    .begin = begin,
    .watermark = watermark,
    .streams = streams,
    .save = save,
    .publish = publish,
    .revert = revert,
    .rest = rest,
};

bool ct_gpu_interval_parse(const char *text, uint64_t *interval_ns)
{
    char *end;
    *interval_ns = 0;
    if (strcmp(text, "off") == 0)
        return true;
    const unsigned long long number = strtoull(text, &end, 10);
    const uint64_t unit_ns = strcmp(end, "ms") == 0 ? 1000000 : strcmp(end, "s") == 0 ? 1000000000 : 0;
    if (text[0] < '0' || text[0] > '9' || unit_ns == 0 || number > INTERVAL_NS_MAX / unit_ns)
        return false;
    *interval_ns = number * unit_ns;
    return *interval_ns >= INTERVAL_NS_MIN;
}

struct ct_source *ct_gpu_source_create(uint64_t interval_ns)
{
    struct gpu_source *gpus = interval_ns ? calloc(1, sizeof(*gpus)) : NULL;
    struct ct_gpu_sampler *sampler = gpus ? ct_gpu_sampler_create(interval_ns) : NULL;
    if (sampler) {
        *gpus = (struct gpu_source){ .source.class = &gpu_class, .sampler = sampler };
        return &gpus->source;
    }
    if (interval_ns)
        ct_log(CT_LOG_gpus_failed, "GPUs are not sampled: cannot create the thread");
    free(gpus);
    return NULL;
}

void ct_gpu_source_destroy(struct ct_source *source)
{
    if (!source)
        return;
    struct gpu_source *gpus = source_of(source);
    ct_gpu_sampler_destroy(gpus->sampler);
    free(gpus->items.item);
    free(gpus);
}
