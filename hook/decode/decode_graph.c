/* Decoders for graphs and stream capture. They update the data in graphs.c and describe the calls. */
#include "decode.h"
#include "graphs.h"

static void about(struct ct_decoded *decoded, enum ct_role first_role, uint64_t first,
                  enum ct_role second_role, uint64_t second)
{
    ct_decode_add_object(decoded, first_role, first);
    ct_decode_add_object(decoded, second_role, second);
}

/* ---- capture ---- */

void ct_decode_capture_begin(const struct ct_frame *frame, struct ct_decoded *decoded)
{
    if (succeeded(frame))
        ct_capture_begin(stream_of(frame, frame->args[0]), 0);
    ct_decode_stream(frame, decoded);
}

void ct_decode_capture_begin_to_graph(const struct ct_frame *frame, struct ct_decoded *decoded)
{
    if (succeeded(frame))
        ct_capture_begin(stream_of(frame, frame->args[0]), frame->args[1]);
    about(decoded, CT_ROLE_stream, stream_of(frame, frame->args[0]), CT_ROLE_graph, frame->args[1]);
}

/* cuStreamEndCapture() ends the capture even if it fails, except with three errors. These errors mean that
 * the stream was not being captured, or that another thread owns the capture. */
void ct_decode_capture_end(const struct ct_frame *frame, struct ct_decoded *decoded)
{
    const ct_status not_capturing = 1; /* CUDA_ERROR_INVALID_VALUE; 900 to 909 are capture errors */
    const ct_status wrong_thread = 908, illegal_state = 401;
    const ct_status status = (ct_status)frame->result;
    const uint64_t made = out(frame, 1), stream = stream_of(frame, frame->args[0]);
    if (status != not_capturing && status != wrong_thread && status != illegal_state)
        ct_capture_end(stream, made);
    about(decoded, CT_ROLE_stream, stream, made ? CT_ROLE_graph : CT_ROLE_none, made);
}

/* cuStreamGetCaptureInfo() returns the graph being captured, and the program may then add nodes to it
 * directly. */
void ct_decode_capture_info(const struct ct_frame *frame, struct ct_decoded *decoded)
{
    const int32_t active = 1;
    int32_t status;
    uint64_t graph;
    if (out_bytes(frame, 1, &status, sizeof(status)) && status == active &&
        out_bytes(frame, 3, &graph, sizeof(graph)))
        ct_capture_graph(stream_of(frame, frame->args[0]), graph);
    ct_decode_stream(frame, decoded);
}

enum {
    EXTERNAL = 1
}; /* CU_EVENT_RECORD_EXTERNAL and CU_EVENT_WAIT_EXTERNAL create a node instead of a dependency */

static void recorded(const struct ct_frame *frame, struct ct_decoded *decoded, uint64_t flags)
{
    const uint64_t event = frame->args[0], stream = stream_of(frame, frame->args[1]);
    about(decoded, CT_ROLE_event, event, CT_ROLE_stream, stream);
    if (flags & EXTERNAL) {
        decoded->flags = ct_decode_captured_as(frame, frame->args[1], CT_NODE_EVENT_RECORD, 1);
    } else {
        decoded->flags = ct_decode_captured(frame, frame->args[1]);
        if (succeeded(frame))
            ct_capture_record(stream, event);
    }
}

void ct_decode_event_record(const struct ct_frame *frame, struct ct_decoded *decoded)
{
    recorded(frame, decoded, 0);
}

void ct_decode_event_record_with_flags(const struct ct_frame *frame, struct ct_decoded *decoded)
{
    recorded(frame, decoded, frame->args[2]);
}

void ct_decode_wait_event(const struct ct_frame *frame, struct ct_decoded *decoded)
{
    const uint64_t stream = stream_of(frame, frame->args[0]), event = frame->args[1];
    about(decoded, CT_ROLE_stream, stream, CT_ROLE_event, event);
    if (frame->args[2] & EXTERNAL) {
        decoded->flags = ct_decode_captured_as(frame, frame->args[0], CT_NODE_WAIT_EVENT, 1);
        return;
    }
    if (succeeded(frame))
        ct_capture_wait(stream, event);
    decoded->flags = ct_decode_captured(frame, frame->args[0]);
}

/* ---- graphs built explicitly ---- */

static void added(const struct ct_frame *frame, struct ct_decoded *decoded, enum ct_node_kind kind,
                  uint64_t child)
{
    const uint64_t node = out(frame, 0), graph = frame->args[1];
    if (node)
        ct_graphs_add(graph, node, kind, child);
    about(decoded, CT_ROLE_graph, graph, node ? CT_ROLE_graph_node : CT_ROLE_none, node);
}

#define ADD(name, kind)                                                                                      \
    void ct_decode_graph_add_##name(const struct ct_frame *frame, struct ct_decoded *decoded)                \
    {                                                                                                        \
        added(frame, decoded, kind, 0);                                                                      \
    }

ADD(kernel, CT_NODE_KERNEL)
ADD(memcpy, CT_NODE_MEMCPY)
ADD(memset, CT_NODE_MEMSET)
ADD(host, CT_NODE_HOST)
ADD(empty, CT_NODE_EMPTY)
ADD(event_wait, CT_NODE_WAIT_EVENT)
ADD(event_record, CT_NODE_EVENT_RECORD)
ADD(semaphores_signal, CT_NODE_SEMAPHORES_SIGNAL)
ADD(semaphores_wait, CT_NODE_SEMAPHORES_WAIT)
ADD(mem_alloc, CT_NODE_MEM_ALLOC)
ADD(mem_free, CT_NODE_MEM_FREE)
ADD(batch_mem_op, CT_NODE_BATCH_MEM_OP)

void ct_decode_graph_add_child(const struct ct_frame *frame, struct ct_decoded *decoded)
{
    added(frame, decoded, CT_NODE_GRAPH, frame->args[4]);
}

/* CUgraphNodeParams. The union member for a child graph begins with the child graph's handle. */
struct node_params {
    uint32_t type;
    int32_t reserved[3];
    uint64_t graph;
};

#define ADD_BY_PARAMS(name, argument)                                                                        \
    void ct_decode_##name(const struct ct_frame *frame, struct ct_decoded *decoded)                          \
    {                                                                                                        \
        struct node_params params;                                                                           \
        if (out_bytes(frame, argument, &params, sizeof(params)))                                             \
            added(frame, decoded, (enum ct_node_kind)params.type,                                            \
                  params.type == CT_NODE_GRAPH ? params.graph : 0);                                          \
        else                                                                                                 \
            ct_decode_add_object(decoded, CT_ROLE_graph, frame->args[1]);                                    \
    }
ADD_BY_PARAMS(graph_add_node, 4)
ADD_BY_PARAMS(graph_add_node_v2, 5)

void ct_decode_graph_create(const struct ct_frame *frame, struct ct_decoded *decoded)
{
    const uint64_t graph = out(frame, 0);
    if (graph)
        ct_graphs_create(graph);
    ct_decode_add_object(decoded, graph ? CT_ROLE_graph : CT_ROLE_none, graph);
}

void ct_decode_graph_clone(const struct ct_frame *frame, struct ct_decoded *decoded)
{
    const uint64_t clone = out(frame, 0);
    if (clone)
        ct_graphs_copy(clone, frame->args[1]);
    about(decoded, CT_ROLE_graph, frame->args[1], clone ? CT_ROLE_graph : CT_ROLE_none, clone);
}

#define DESTROY(name)                                                                                        \
    void ct_decode_##name##_destroy(const struct ct_frame *frame, struct ct_decoded *decoded)                \
    {                                                                                                        \
        if (succeeded(frame))                                                                                \
            ct_graphs_destroy(frame->args[0], began(frame));                                                 \
        ct_decode_add_object(decoded, CT_ROLE_##name, frame->args[0]);                                       \
    }
DESTROY(graph)
DESTROY(graph_exec)

void ct_decode_graph_node_destroy(const struct ct_frame *frame, struct ct_decoded *decoded)
{
    if (succeeded(frame))
        ct_graphs_remove(frame->args[0]);
    ct_decode_add_object(decoded, CT_ROLE_graph_node, frame->args[0]);
}

void ct_decode_graph_node_type(const struct ct_frame *frame, struct ct_decoded *decoded)
{
    uint32_t type;
    if (out_bytes(frame, 1, &type, sizeof(type)))
        ct_graphs_node_is(frame->args[0], (enum ct_node_kind)type);
    ct_decode_add_object(decoded, CT_ROLE_graph_node, frame->args[0]);
}

void ct_decode_graph_node_enable(const struct ct_frame *frame, struct ct_decoded *decoded)
{
    if (succeeded(frame))
        ct_graphs_enable(frame->args[0], frame->args[1], (uint32_t)frame->args[2] != 0);
    about(decoded, CT_ROLE_graph_exec, frame->args[0], CT_ROLE_graph_node, frame->args[1]);
}

/* ---- executable graphs ---- */

void ct_decode_graph_instantiate(const struct ct_frame *frame, struct ct_decoded *decoded)
{
    const uint64_t exec = out(frame, 0);
    if (!exec) {
        ct_decode_add_object(decoded, CT_ROLE_graph, frame->args[1]);
        return;
    }
    ct_graphs_copy(exec, frame->args[1]);
    decoded->kind = CT_KIND_NODES;
    decoded->payload_bytes = sizeof(decoded->payload.nodes);
    decoded->value = frame->args[1];
    bool all;
    decoded->payload.nodes = ct_graphs_nodes(exec, &all);
    decoded->flags = all ? 0 : CT_FLAG_UNKNOWN;
}

void ct_decode_graph_launch(const struct ct_frame *frame, struct ct_decoded *decoded)
{
    const uint64_t exec = frame->args[0], stream = stream_of(frame, frame->args[1]);
    decoded->kind = CT_KIND_GRAPH;
    decoded->payload_bytes = sizeof(decoded->payload.graph);
    decoded->value = stream;
    decoded->flags = ct_decode_captured(frame, frame->args[1]); /* driver 580 refuses to capture a graph
                                                                 * launch */
    bool all;
    const struct ct_graph_nodes nodes = ct_graphs_nodes(exec, &all);
    /* The GPU decides how often the body of a conditional node runs. */
    if (!all || nodes.count[CT_NODE_CONDITIONAL] > 0)
        decoded->flags |= CT_FLAG_UNKNOWN;
    decoded->payload.graph =
        (struct ct_graph_launch){ .exec = exec, .kernel_nodes = nodes.count[CT_NODE_KERNEL] };
}
