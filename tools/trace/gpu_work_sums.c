#include "gpu_work_sums.h"

#include "room.h"

#include <stdlib.h>
#include <string.h>

static void add_row(struct sweep *sweep, const struct ct_gpu_task *task, int64_t graph)
{
    struct ct_gpu_sums *sums = sweep->sums;
    if (!ct_make_room(&sums->work, sums->works, &sweep->work_room, sizeof(*sums->work))) {
        fail(sweep, SQLITE_NOMEM);
        return;
    }
    sums->work[sums->works++] = (struct ct_gpu_work){ .device = task->device,
                                                      .process_id = task->process_id,
                                                      .kind = copy_text(sweep, task->kind),
                                                      .kernel = copy_text(sweep, task->kernel),
                                                      .mangled = copy_text(sweep, task->mangled),
                                                      .copy_kind = copy_text(sweep, task->copy_kind),
                                                      .graph = graph,
                                                      .bytes = NONE };
}

/* Returns the row of a task, after adding it if necessary, or NULL if out of memory. Equal strings of tasks
 * have the same address. */
static struct ct_gpu_work *row_of(struct sweep *sweep, const struct ct_gpu_task *task)
{
    size_t *row = &sweep->of_task[task->number].work;
    if (*row == 0) {
        const int64_t graph = *task->kind == 'g' && task->graph != 0 ? task->graph : NONE;
        const int64_t key[CT_WORK_KEY_BYTES / sizeof(int64_t)] = { task->device,
                                                                   task->process_id,
                                                                   (intptr_t)task->kind,
                                                                   (intptr_t)task->kernel,
                                                                   (intptr_t)task->mangled,
                                                                   (intptr_t)task->copy_kind,
                                                                   graph };
        bool is_new;
        *row = (size_t)ct_intern_get(&sweep->work_found, key, &is_new);
        if (*row == 0)
            fail(sweep, SQLITE_NOMEM);
        else if (is_new)
            add_row(sweep, task, graph);
    }
    return sweep->error == SQLITE_OK ? &sweep->sums->work[*row - 1] : NULL;
}

void ct_sweep_work(struct sweep *sweep, const struct work *work)
{
    const struct ct_gpu_run *run = &work->run;
    struct ct_gpu_work *row = row_of(sweep, run->task);
    if (!row)
        return;
    row->runs++;
    row->duration_ns += run->duration_ns;
    row->longest_ns = row->runs == 1 ? run->duration_ns : later(row->longest_ns, run->duration_ns);
    if (run->queued_ns != CT_GPU_UNKNOWN) {
        row->queued_ns += run->queued_ns;
        row->queued_runs++;
    }
    if (run->bytes != CT_GPU_UNKNOWN)
        row->bytes = later(row->bytes, 0) + run->bytes;
}

void ct_gpu_work_finish(struct ct_gpu_sums *sums)
{
    for (size_t i = 0; i < sums->works; i++) {
        free(sums->work[i].kind);
        free(sums->work[i].kernel);
        free(sums->work[i].mangled);
        free(sums->work[i].copy_kind);
    }
    free(sums->work);
}
