#include "html_gpus.h"

#include "schema_sql.h"

enum { STEPS = 2000, COUNTERS_MAX = 5 };

/* The GPU being printed, and the sums of its samples in a time step. */
struct gpus {
    int64_t gpu_id; /* 0: none yet */
    int64_t step, at_ns;
    bool has_points;
    int counters;
    int64_t sum[COUNTERS_MAX], samples[COUNTERS_MAX];
};

static void print_point(struct ct_export *to)
{
    struct gpus *gpus = to->state;
    if (gpus->step < 0)
        return;
    fprintf(to->to, "%s[%lld", gpus->has_points ? "," : "", (long long)gpus->at_ns);
    for (int c = 0; c < gpus->counters; c++) {
        if (gpus->samples[c] > 0)
            fprintf(to->to, ",%lld", (long long)(gpus->sum[c] / gpus->samples[c]));
        else
            fputs(",null", to->to);
        gpus->sum[c] = gpus->samples[c] = 0;
    }
    fputc(']', to->to);
    gpus->has_points = true;
}

static void end_gpu(struct ct_export *to)
{
    struct gpus *gpus = to->state;
    if (gpus->gpu_id == 0)
        return;
    print_point(to);
    fputs("]}", to->to);
}

static void begin_gpu(struct ct_export *to, sqlite3_stmt *row)
{
    struct gpus *gpus = to->state;
    end_gpu(to);
    fprintf(to->to, "%s{\"name\":", gpus->gpu_id ? ",\n" : "");
    ct_export_string(to, ct_export_text(row, CT_GPU_COLUMN_NAME));
    fputs(",\"counters\":[", to->to);
    const int columns = sqlite3_column_count(row) - CT_GPU_COLUMN_COUNTERS;
    gpus->counters = columns < COUNTERS_MAX ? columns : COUNTERS_MAX;
    for (int c = 0; c < gpus->counters; c++) {
        fputs(c ? "," : "", to->to);
        ct_export_string(to, sqlite3_column_name(row, CT_GPU_COLUMN_COUNTERS + c));
    }
    fputs("],\"points\":[", to->to);
    gpus->gpu_id = sqlite3_column_int64(row, CT_GPU_COLUMN_ID);
    gpus->step = -1;
    gpus->has_points = false;
}

/* Rows are ordered by GPU and then by time. */
static bool take_sample(struct ct_export *to, sqlite3_stmt *row)
{
    struct gpus *gpus = to->state;
    const int64_t at_ns = sqlite3_column_int64(row, CT_GPU_COLUMN_TIME) - to->extent.begin_ns;
    const int64_t length_ns = to->extent.end_ns - to->extent.begin_ns;
    const int64_t step = at_ns / ((length_ns > 0 ? length_ns : 0) / STEPS + 1);
    if (at_ns < 0)
        return true;
    if (sqlite3_column_int64(row, CT_GPU_COLUMN_ID) != gpus->gpu_id)
        begin_gpu(to, row);
    if (step != gpus->step)
        print_point(to);
    gpus->step = step;
    gpus->at_ns = at_ns;
    for (int c = 0; c < gpus->counters; c++) {
        if (sqlite3_column_type(row, CT_GPU_COLUMN_COUNTERS + c) == SQLITE_NULL)
            continue;
        gpus->sum[c] += sqlite3_column_int64(row, CT_GPU_COLUMN_COUNTERS + c);
        gpus->samples[c]++;
    }
    return true;
}

bool ct_html_print_gpus(const struct ct_export *to)
{
    struct gpus gpus = { .step = -1 };
    struct ct_export mine = *to;
    mine.state = &gpus;
    fputs(",\n\"gpus\":[", to->to);
    const bool good = ct_export_each_of_newer(&mine, ct_sql_exports_gpu_counters, take_sample);
    end_gpu(&mine);
    fputc(']', to->to);
    return good;
}
