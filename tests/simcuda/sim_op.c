/* sim_op.c: stream operations. For each kind of operation, a table defines its check, its duration and its
 * effect. Streams, captures, graphs and the driver's thread all use this table. */
#include "sim_graph.h"
#include "sim_observe.h"

struct op_type {
    CUgraphNodeType node;
    CUresult (*check)(const struct op *op); /* NULL: every op is accepted */
    int64_t (*duration_ns)(const struct op *op);
    void (*run)(const struct op *op, CUstream stream);
};

static CUresult check_kernel(const struct op *op)
{
    return launch_check(&op->launch);
}

static int64_t kernel_duration_ns(const struct op *op)
{
    (void)op;
    return sim_settings.launch_ns;
}

static void run_kernel(const struct op *op, CUstream stream)
{
    const CUresult fault = kernel_run(&op->launch);
    if (fault != CUDA_SUCCESS && stream->context->fault == CUDA_SUCCESS)
        stream->context->fault = fault;
}

static CUresult check_copy(const struct op *op)
{
    return copy_check(&op->copy);
}

static int64_t copy_op_duration_ns(const struct op *op)
{
    return copy_duration_ns(&op->copy);
}

static void run_copy(const struct op *op, CUstream stream)
{
    (void)stream;
    copy_run(&op->copy);
}

static CUresult check_set(const struct op *op)
{
    return set_check(&op->set);
}

static void run_set(const struct op *op, CUstream stream)
{
    (void)stream;
    set_run(&op->set);
}

static CUresult check_host(const struct op *op)
{
    return op->host.fn ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

/* Only the driver's thread calls this function. The program's callback runs when the stream's timeline
 * reaches the op. */
static void run_host_function(const struct op *op, CUstream stream)
{
    const int64_t at_ns = stream->busy_until_ns;
    driver_release();
    clock_sleep_until_ns(at_ns);
    sim_in_callback = true;
    op->host.fn(op->host.userData);
    sim_in_callback = false;
    driver_lock();
    stream->busy_until_ns = clock_now_ns();
}

static CUevent op_event(const struct op *op)
{
    return event_of(op->event.event) && op->event.event->handle.generation == op->event.generation
               ? op->event.event
               : NULL;
}

static void run_record(const struct op *op, CUstream stream)
{
    const CUevent event = op_event(op);
    if (event)
        event_record_now(event, stream->busy_until_ns);
}

static void run_wait(const struct op *op, CUstream stream)
{
    const CUevent event = op_event(op);
    if (event && event->recorded && event->at_ns > stream->busy_until_ns)
        stream->busy_until_ns = event->at_ns;
}

static CUresult check_free(const struct op *op)
{
    return region_based_at((uintptr_t)op->address) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

/* Memory that belongs to a graph is not freed, because the next replay allocates it again. */
static void run_free(const struct op *op, CUstream stream)
{
    struct region *region = region_based_at((uintptr_t)op->address);
    (void)stream;
    if (region->nodes == 0)
        region_free(region);
}

static void run_replay(const struct op *op, CUstream stream)
{
    exec_run(op->exec, stream, op->origin.correlation);
}

static const struct op_type types[OP_KIND_COUNT] = {
    [OP_EMPTY] = { .node = CU_GRAPH_NODE_TYPE_EMPTY },
    [OP_CONDITIONAL] = { .node = CU_GRAPH_NODE_TYPE_CONDITIONAL },
    [OP_KERNEL] = { CU_GRAPH_NODE_TYPE_KERNEL, check_kernel, kernel_duration_ns, run_kernel },
    [OP_COPY] = { CU_GRAPH_NODE_TYPE_MEMCPY, check_copy, copy_op_duration_ns, run_copy },
    [OP_SET] = { CU_GRAPH_NODE_TYPE_MEMSET, check_set, NULL, run_set },
    [OP_HOST] = { CU_GRAPH_NODE_TYPE_HOST, check_host, NULL, run_host_function },
    [OP_RECORD] = { CU_GRAPH_NODE_TYPE_EVENT_RECORD, NULL, NULL, run_record },
    [OP_WAIT] = { CU_GRAPH_NODE_TYPE_WAIT_EVENT, NULL, NULL, run_wait },
    [OP_ALLOC] = { .node = CU_GRAPH_NODE_TYPE_MEM_ALLOC }, /* a graph's memory exists as soon as the
                                                            * allocation is captured */
    [OP_FREE] = { CU_GRAPH_NODE_TYPE_MEM_FREE, check_free, NULL, run_free },
    [OP_GRAPH] = { .node = CU_GRAPH_NODE_TYPE_GRAPH },
    [OP_REPLAY] = { .node = CU_GRAPH_NODE_TYPE_GRAPH, .run = run_replay },
};

CUgraphNodeType op_node_type(enum op_kind kind)
{
    return types[kind].node;
}

CUresult op_check(const struct op *op)
{
    return types[op->kind].check ? types[op->kind].check(op) : CUDA_SUCCESS;
}

bool op_needs_thread(const struct op *op)
{
    return op->kind == OP_HOST || (op->kind == OP_REPLAY && exec_needs_thread(op->exec));
}

void op_hold(const struct op *op)
{
    if (op->kind == OP_ALLOC)
        region_hold(op->region);
}

void op_drop(const struct op *op)
{
    if (op->kind == OP_ALLOC)
        region_drop(op->region);
    if (op->kind == OP_GRAPH)
        graph_free(op->child);
}

/* Runs an op when its turn has come: adds the op's duration to the stream's timeline, and performs the op. */
static void run(CUstream stream, const struct op *op)
{
    const struct op_type *type = &types[op->kind];
    const int64_t duration_ns = type->duration_ns ? type->duration_ns(op) : 0;
    const int64_t free_ns = stream_barrier_ns(stream);
    const int64_t now_ns = duration_ns > 0 || observe_is_on() ? clock_now_ns() : 0;
    const int64_t start_ns = free_ns > now_ns ? free_ns : now_ns;
    stream->busy_until_ns = start_ns + duration_ns;
    observe_work(op, stream, start_ns);
    if (type->run)
        type->run(op, stream);
}

void op_run_late(const struct op *op, CUstream stream)
{
    /* The memory may have been freed after the op was checked. A real device would fault, but the simulated
     * one does nothing. */
    if (op_check(op) == CUDA_SUCCESS)
        run(stream, op);
}

static bool must_keep(CUstream stream, const struct op *op)
{
    const CUevent event = op->kind == OP_WAIT ? op_event(op) : NULL;
    return stream_is_held_up(stream) || op_needs_thread(op) || (event && event->kept > 0);
}

CUresult op_submit(CUstream stream, const struct op *op)
{
    CUresult result = op_check(op);
    if (result != CUDA_SUCCESS)
        return capture_spoil(stream, result);
    if (stream->capture)
        return capture_add(stream, op);
    result = capture_forbids_legacy(stream);
    if (result != CUDA_SUCCESS)
        return result;
    struct op own = *op;
    own.origin.correlation = observe_correlation();
    if (must_keep(stream, op))
        return worker_keep(stream, &own);
    run(stream, &own);
    return CUDA_SUCCESS;
}
