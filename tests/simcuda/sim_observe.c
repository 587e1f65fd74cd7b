/* sim_observe.c: reports calls and work to an observer (simcuda_observe.h). */
#include "sim_observe.h"

#include "sim_entry.h"

#include <stddef.h>

static const struct sim_observer *_Atomic current;
static _Thread_local uint64_t own_correlation; /* of the thread's open call; 0: none, or not observed */

EXPORTED void simcuda_observe(const struct sim_observer *observer)
{
    atomic_store(&current, observer);
    if (observer)
        atomic_fetch_or(&sim_watch, WATCH_OBSERVED);
    else
        atomic_fetch_and(&sim_watch, ~(unsigned)WATCH_OBSERVED);
}

uint64_t observe_enter(uint32_t row)
{
    const struct sim_observer *observer = atomic_load(&current);
    const uint64_t interrupted = own_correlation;
    own_correlation = observer ? observer->enter(sim_functions[row].name) : 0;
    return interrupted;
}

void observe_leave(uint32_t row, uint64_t interrupted)
{
    const struct sim_observer *observer = atomic_load(&current);
    if (observer && own_correlation)
        observer->leave(sim_functions[row].name, own_correlation);
    own_correlation = interrupted;
}

bool observe_is_on(void)
{
    return atomic_load(&current) != NULL;
}

uint64_t observe_correlation(void)
{
    return own_correlation;
}

static enum sim_place place_of(const struct side *side)
{
    if (side->type == CU_MEMORYTYPE_ARRAY)
        return SIM_PLACE_ARRAY;
    if (side->type == CU_MEMORYTYPE_HOST)
        return SIM_PLACE_HOST;
    const struct region *region = region_at(side->address);
    return region && region->kind == REGION_DEVICE ? SIM_PLACE_DEVICE : SIM_PLACE_HOST;
}

/* Fills in the fields that all kinds of work have in common. */
static struct sim_work work_of(const struct op_origin *origin, CUstream stream, int64_t start_ns)
{
    return (struct sim_work){
        .correlation = origin->correlation,
        .start_ns = start_ns,
        .end_ns = stream->busy_until_ns,
        .context = (uint32_t)stream->context->handle.generation,
        .stream = (uint32_t)stream->handle.generation,
        .node = origin->node,
        .graph = origin->graph,
    };
}

void observe_graph(const struct op_origin *origin, CUstream stream, int64_t start_ns)
{
    const struct sim_observer *observer = atomic_load(&current);
    if (!observer || !origin->correlation)
        return;
    struct sim_work work = work_of(origin, stream, start_ns);
    work.kind = SIM_WORK_GRAPH;
    observer->work(&work);
}

void observe_work(const struct op *op, CUstream stream, int64_t start_ns)
{
    const struct sim_observer *observer = atomic_load(&current);
    if (!observer || !op->origin.correlation)
        return;
    struct sim_work work = work_of(&op->origin, stream, start_ns);
    switch (op->kind) {
    case OP_KERNEL:
        work.kind = SIM_WORK_KERNEL;
        work.name = op->launch.function->name;
        break;
    case OP_COPY:
        work.kind = SIM_WORK_COPY;
        work.bytes = op->copy.bytes * op->copy.height * op->copy.depth;
        work.from = place_of(&op->copy.from);
        work.to = place_of(&op->copy.to);
        break;
    case OP_SET:
        work.kind = SIM_WORK_SET;
        work.bytes = op->set.count;
        break;
    default:
        return;
    }
    observer->work(&work);
}
