#include "graphs.h"

#include "current.h"
#include "pool.h"
#include "producer.h"
#include "table.h"

/* The number of nodes of each kind in a graph, an executable graph or a capture in progress. The struct is
 * identified by its index in the pool. Index 0 means none. */
struct nodes {
    struct ct_pool_link link;
    uint32_t owners; /* number of handles and captures that refer to this struct */
    _Atomic uint32_t count[CT_NODE_KINDS];
    _Atomic bool partly; /* there may be more nodes, added without the hook's knowledge */
    uint64_t serial;     /* identifies this use of the pool object */
    uint64_t named;      /* ct_now() when a handle was last assigned to this struct; 0 if nothing was
                          * recorded */
};

static struct ct_pool all_nodes = { .object_bytes = sizeof(struct nodes) };
static uint64_t last_use;

static struct ct_table by_handle; /* maps a CUgraph or a CUgraphExec to an index */
static struct ct_table by_node;   /* maps a CUgraphNode to index << 4 | kind + 1; index 0 if only the kind is
                                   * known */
static struct ct_table disabled;  /* maps a mix of an executable graph's serial and a node to kind + 1 */

enum { CAPTURES_MAX = 128 };
_Atomic int32_t ct_captures;
static struct capture {
    uint32_t nodes;  /* index; 0: no capture */
    uint32_t serial; /* 1 to SERIAL_MAX, different for each capture in this place */
    uint64_t origin; /* key of the stream that the capture began on */
} captures[CAPTURES_MAX];
static uint32_t last_serial;
enum { SERIAL_MAX = 0xffffff };

/* Map a stream or an event to its capture (serial << 8 | place), which may have ended. */
static struct ct_table by_stream;
static struct ct_table by_event;

/* ---- node counts; these functions require the table lock ---- */

static struct nodes *nodes_at(uint32_t index)
{
    return ct_pool_at(&all_nodes, index);
}

/* Returns the index of a new struct with one owner and no nodes, or 0 if out of memory. */
static uint32_t acquire(void)
{
    const uint32_t index = ct_pool_take(&all_nodes);
    if (index) {
        struct nodes *nodes = nodes_at(index);
        for (int kind = 0; kind < CT_NODE_KINDS; kind++)
            atomic_store_explicit(&nodes->count[kind], 0, memory_order_relaxed);
        atomic_store_explicit(&nodes->partly, false, memory_order_relaxed);
        nodes->owners = 1;
        nodes->serial = ++last_use;
    }
    return index;
}

static void forget_node(uint64_t node, uint32_t value, void *index)
{
    if (value >> 4 == *(const uint32_t *)index)
        ct_table_set(&by_node, node, 0);
}

static void release(uint32_t index)
{
    if (index == 0 || --nodes_at(index)->owners > 0)
        return;
    ct_table_each(&by_node, forget_node, &index);
    ct_pool_give(&all_nodes, index);
}

/* Makes `handle` refer to `index`. The handle then owns `index` in place of the caller. */
static void assign(uint64_t handle, uint32_t index)
{
    const uint32_t before = ct_table_get(&by_handle, handle);
    if (index)
        nodes_at(index)->named = ct_process_current() ? ct_now() : 0;
    if (!ct_table_set(&by_handle, handle, index) && index)
        release(index);
    release(before);
}

static uint32_t index_of(uint64_t handle)
{
    uint32_t index = ct_table_get(&by_handle, handle);
    if (!index && handle) {
        index = acquire();
        if (index) {
            atomic_store_explicit(&nodes_at(index)->partly, true, memory_order_relaxed);
            assign(handle, index);
        }
        index = ct_table_get(&by_handle, handle);
    }
    return index;
}

static void change(uint32_t index, uint32_t kind, int32_t by)
{
    if (index && kind < CT_NODE_KINDS)
        atomic_fetch_add_explicit(&nodes_at(index)->count[kind], (uint32_t)by, memory_order_relaxed);
}

static bool is_partly(uint32_t index)
{
    return !index || atomic_load_explicit(&nodes_at(index)->partly, memory_order_relaxed);
}

static void add_all(uint32_t index, uint32_t other)
{
    if (index && is_partly(other))
        atomic_store_explicit(&nodes_at(index)->partly, true, memory_order_relaxed);
    for (uint32_t kind = 0; index && other && kind < CT_NODE_KINDS; kind++)
        change(index, kind,
               (int32_t)atomic_load_explicit(&nodes_at(other)->count[kind], memory_order_relaxed));
}

/* ---- graphs ---- */

void ct_graphs_create(uint64_t graph)
{
    if (!ct_table_lock())
        return;
    assign(graph, acquire());
    ct_table_unlock();
}

void ct_graphs_copy(uint64_t handle, uint64_t original)
{
    if (!ct_table_lock())
        return;
    const uint32_t copy = acquire();
    add_all(copy, ct_table_get(&by_handle, original));
    assign(handle, copy);
    ct_table_unlock();
}

void ct_graphs_destroy(uint64_t handle, uint64_t began)
{
    if (!ct_table_lock())
        return;
    const uint32_t index = ct_table_get(&by_handle, handle);
    if (index && nodes_at(index)->named < began)
        assign(handle, 0);
    ct_table_unlock();
}

void ct_graphs_add(uint64_t graph, uint64_t node, enum ct_node_kind kind, uint64_t child)
{
    if (kind >= CT_NODE_KINDS || !ct_table_lock())
        return;
    const uint32_t index = index_of(graph);
    change(index, kind, 1);
    if (child)
        add_all(index, ct_table_get(&by_handle, child));
    ct_table_set(&by_node, node, index << 4 | ((uint32_t)kind + 1));
    ct_table_unlock();
}

void ct_graphs_node_is(uint64_t node, enum ct_node_kind kind)
{
    if (kind >= CT_NODE_KINDS || ct_table_get(&by_node, node) || !ct_table_lock())
        return;
    ct_table_set(&by_node, node, (uint32_t)kind + 1);
    ct_table_unlock();
}

void ct_graphs_remove(uint64_t node)
{
    if (!ct_table_lock())
        return;
    const uint32_t value = ct_table_get(&by_node, node);
    if (value >> 4)
        change(value >> 4, (value & 15) - 1, -1);
    ct_table_set(&by_node, node, 0);
    ct_table_unlock();
}

void ct_graphs_enable(uint64_t exec, uint64_t node, bool enabled)
{
    if (!ct_table_lock())
        return;
    const uint32_t index = ct_table_get(&by_handle, exec);
    /* Handles are below 2^48, so the upper 16 bits are free for the serial. Keys are unique as long as
     * serials differ by less than 2^16, and programs have fewer than 2^16 executable graphs at the same
     * time. */
    const uint64_t pair = index ? nodes_at(index)->serial << 48 ^ node : 0;
    const uint32_t was_off = ct_table_get(&disabled, pair);
    const uint32_t kind = ct_table_get(&by_node, node) & 15;
    if (enabled && was_off) {
        change(index, was_off - 1, 1);
        ct_table_set(&disabled, pair, 0);
    } else if (!enabled && !was_off && kind && ct_table_set(&disabled, pair, kind)) {
        change(index, kind - 1, -1);
    }
    ct_table_unlock();
}

struct ct_graph_nodes ct_graphs_nodes(uint64_t handle, bool *all)
{
    struct ct_graph_nodes nodes = { .exec = handle };
    const uint32_t index = ct_table_get(&by_handle, handle);
    *all = !is_partly(index);
    for (int kind = 0; index && kind < CT_NODE_KINDS; kind++)
        nodes.count[kind] = atomic_load_explicit(&nodes_at(index)->count[kind], memory_order_relaxed);
    return nodes;
}

/* ---- captures ---- */

/* Handles are aligned, so an odd key cannot collide with another stream's key. The legacy stream cannot be
 * captured. */
static uint64_t key_of(uint64_t stream)
{
    const uint64_t per_thread = 2;
    const uint64_t thread = ct_replayed.thread ? ct_replayed.thread : (uint64_t)(uintptr_t)&ct_self;
    return stream == per_thread ? thread | 1 : stream;
}

static struct capture *capture_of(uint32_t value)
{
    struct capture *capture = &captures[value & 0xff];
    return value && capture->nodes && capture->serial == value >> 8 ? capture : NULL;
}

void ct_capture_begin(uint64_t stream, uint64_t graph)
{
    if (!ct_table_lock())
        return;
    uint32_t place = 0;
    while (place < CAPTURES_MAX && captures[place].nodes)
        place++;
    uint32_t nodes = 0;
    if (place < CAPTURES_MAX && (nodes = graph ? index_of(graph) : acquire()) != 0) {
        if (graph)
            nodes_at(nodes)->owners++;
        const uint64_t key = key_of(stream);
        last_serial = last_serial % SERIAL_MAX + 1;
        captures[place] = (struct capture){ .nodes = nodes, .serial = last_serial, .origin = key };
        ct_table_set(&by_stream, key, last_serial << 8 | place);
        atomic_fetch_add_explicit(&ct_captures, 1, memory_order_relaxed);
    }
    ct_table_unlock();
}

static void forget_stream(uint64_t key, uint32_t value, void *table)
{
    if (!capture_of(value))
        ct_table_set(table, key, 0);
}

void ct_capture_end(uint64_t stream, uint64_t graph)
{
    if (!ct_capturing() || !ct_table_lock())
        return;
    const uint64_t key = key_of(stream);
    struct capture *capture = capture_of(ct_table_get(&by_stream, key));
    if (capture && capture->origin == key) {
        const uint32_t nodes = capture->nodes;
        capture->nodes = 0;
        atomic_fetch_sub_explicit(&ct_captures, 1, memory_order_relaxed);
        ct_table_each(&by_stream, forget_stream, &by_stream);
        ct_table_each(&by_event, forget_stream, &by_event);
        if (graph)
            assign(graph, nodes);
        else
            release(nodes);
    }
    ct_table_unlock();
}

void ct_capture_graph(uint64_t stream, uint64_t graph)
{
    if (!ct_capturing() || !graph || !ct_table_lock())
        return;
    struct capture *capture = capture_of(ct_table_get(&by_stream, key_of(stream)));
    if (capture && ct_table_get(&by_handle, graph) != capture->nodes) {
        nodes_at(capture->nodes)->owners++;
        assign(graph, capture->nodes);
    }
    ct_table_unlock();
}

bool ct_capture_active(uint64_t stream)
{
    return ct_capturing() && capture_of(ct_table_get(&by_stream, key_of(stream)));
}

void ct_capture_add(uint64_t stream, enum ct_node_kind kind, uint32_t count)
{
    if (!ct_capturing() || !ct_table_lock())
        return;
    const struct capture *capture = capture_of(ct_table_get(&by_stream, key_of(stream)));
    if (capture)
        change(capture->nodes, kind, (int32_t)count);
    ct_table_unlock();
}

void ct_capture_record(uint64_t stream, uint64_t event)
{
    if (!ct_capturing() || !ct_table_lock())
        return;
    const uint32_t value = ct_table_get(&by_stream, key_of(stream));
    ct_table_set(&by_event, event, capture_of(value) ? value : 0);
    ct_table_unlock();
}

void ct_capture_wait(uint64_t stream, uint64_t event)
{
    if (!ct_capturing() || !ct_table_lock())
        return;
    const uint32_t value = ct_table_get(&by_event, event);
    if (capture_of(value) && !capture_of(ct_table_get(&by_stream, key_of(stream))))
        ct_table_set(&by_stream, key_of(stream), value);
    ct_table_unlock();
}
