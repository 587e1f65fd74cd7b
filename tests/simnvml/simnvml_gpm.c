/* The functions of GPM. A metric has the same value for any two samples, unless a line of the script changes
 * it. For an instance, the value is half as large. */
#include "simnvml.h"

#include <stdlib.h>
#include <time.h>

enum { APART_MS = 100, METRICS_MAX = 98 };

struct sample {
    unsigned gpu, gpu_instance; /* gpu_instance: ~0 for the whole GPU */
    long long taken_ms;         /* 0: not yet */
};
struct support {
    unsigned version, is_supported;
};
struct metric {
    unsigned id;
    int result;
    double value;
    const char *short_name, *long_name, *unit;
};
struct metrics {
    unsigned version, count;
    struct sample *earlier, *later;
    struct metric metric[METRICS_MAX];
};

/* The value of each metric, in percent, or in MiB/s for PCIe traffic (metrics 20 and 21). */
static const double values[METRICS_MAX] = {
    [2] = 80.0625, [3] = 40.125, [4] = 5,           [5] = 50.25, [10] = 30.75,
    [11] = 0,      [12] = 20.5,  [13] = 10.0078125, [20] = 1000, [21] = 2000,
};

int nvmlGpmQueryDeviceSupport(void *device, struct support *support)
{
    ENTER(device);
    support->is_supported = gpu == 0;
    return support->version == 1 ? SUCCESS : INVALID_ARGUMENT;
}

int nvmlGpmSampleAlloc(struct sample **sample)
{
    const int result = simnvml_follow(__func__, 0);
    if (result != SUCCESS)
        return result;
    *sample = calloc(1, sizeof(**sample));
    simnvml_gpm_samples++;
    return SUCCESS;
}

int nvmlGpmSampleFree(struct sample *sample)
{
    free(sample);
    simnvml_gpm_samples--;
    return SUCCESS;
}

static long long now_ms(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return now.tv_sec * 1000LL + now.tv_nsec / 1000000;
}

int nvmlGpmSampleGet(void *device, struct sample *sample)
{
    ENTER(device);
    *sample = (struct sample){ gpu, ~0U, now_ms() };
    return SUCCESS;
}

int nvmlGpmMigSampleGet(void *device, unsigned gpu_instance, struct sample *sample)
{
    ENTER(device);
    *sample = (struct sample){ gpu, gpu_instance, now_ms() };
    for (unsigned index = 0; index < INSTANCES; index++) {
        struct instance instance;
        if (simnvml_instance(100 * (index + 1) + gpu, &instance) && instance.gpu_instance == gpu_instance)
            return SUCCESS;
    }
    return INVALID_ARGUMENT;
}

/* Changes a metric's result and value as the lines of the script specify. */
static void change_metric(unsigned gpu, struct metric *metric)
{
    char line[4096];
    unsigned of, id;
    int result;
    double value;
    FILE *lines = simnvml_script();
    while (lines && fgets(line, sizeof(line), lines)) {
        if (sscanf(line, "metric %u %u %d %lf", &of, &id, &result, &value) == 4 && of == gpu &&
            id == metric->id) {
            metric->result = result;
            metric->value = value;
        }
    }
    if (lines)
        fclose(lines);
}

int nvmlGpmMetricsGet(struct metrics *get)
{
    const struct sample *const earlier = get->earlier, *const later = get->later;
    const int result = simnvml_follow(__func__, later->gpu);
    if (result != SUCCESS)
        return result;
    if (get->version != 1 || get->count == 0 || get->count > METRICS_MAX || earlier->taken_ms == 0 ||
        earlier->gpu != later->gpu || earlier->gpu_instance != later->gpu_instance ||
        later->taken_ms - earlier->taken_ms <= APART_MS) {
        simnvml_log("wrong", __func__);
        return INVALID_ARGUMENT;
    }
    for (unsigned i = 0; i < get->count; i++) {
        const unsigned id = get->metric[i].id;
        get->metric[i] = (struct metric){ .id = id,
                                          .result = id < METRICS_MAX ? SUCCESS : NOT_SUPPORTED,
                                          .value = id < METRICS_MAX ? values[id] : 0 };
        change_metric(later->gpu, &get->metric[i]);
        if (later->gpu_instance != ~0U)
            get->metric[i].value /= 2;
    }
    return SUCCESS;
}
