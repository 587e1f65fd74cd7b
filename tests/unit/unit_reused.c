/* Tests the hook's graphs.c and addresses.c. If the driver reuses a handle or an address before the call that
 * freed it has returned, the handle or address must belong to its new owner. A handle or an address that was
 * not reused must be forgotten. */
#include "addresses.h"
#include "current.h"
#include "graphs.h"
#include "producer.h"

#include <stdio.h>
#include <stdlib.h>

/* ---- the parts of the hook that these files need ---- */

bool ct_clock_is_counter;
struct ct_replayed ct_replayed;

uint64_t ct_now_ns(void)
{
    return ct_monotonic_ns();
}
static struct ct_segment segment;
struct ct_segment *ct_process_current(void)
{
    return &segment;
}
_Thread_local struct ct_producer *ct_self;

static void expect(const char *what, uint64_t seen, uint64_t wanted)
{
    if (seen == wanted)
        return;
    fprintf(stderr, "%s: %llu, and should be %llu\n", what, (unsigned long long)seen,
            (unsigned long long)wanted);
    exit(EXIT_FAILURE);
}

static struct ct_graph_nodes nodes_of(uint64_t handle)
{
    bool all;
    return ct_graphs_nodes(handle, &all);
}

int main(void)
{
    const uint64_t graph = 0x1000, exec = 0x2000, address = UINT64_C(0x7f0000000000);
    ct_graphs_create(graph);
    ct_graphs_add(graph, 0x3000, CT_NODE_KERNEL, 0);
    const uint64_t began = ct_now();
    ct_graphs_copy(exec, graph);
    ct_addresses_learn(address, 4096);
    ct_graphs_destroy(exec, began);
    ct_addresses_forget(address, began);
    expect("kernels of a graph that was made since", nodes_of(exec).count[CT_NODE_KERNEL], 1);
    expect("memory that was got since", ct_addresses_are_device(address), true);
    ct_graphs_destroy(exec, ct_now() + 1);
    ct_addresses_forget(address, ct_now() + 1);
    expect("kernels of a graph that is gone", nodes_of(exec).count[CT_NODE_KERNEL], 0);
    expect("memory that is gone", ct_addresses_are_device(address), false);
    return EXIT_SUCCESS;
}
