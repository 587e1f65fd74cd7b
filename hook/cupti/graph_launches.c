#include "graph_launches.h"

#include <stddef.h>
#include <string.h>

enum { GRAPHS = 64, LAUNCHES = 256 };

static struct graph {
    uint32_t graph, newest; /* newest: the place of the last launch */
    struct launch {
        uint64_t first, last; /* the starts of its first and its last work */
        uint32_t correlation; /* 0: unused */
    } launch[LAUNCHES];
} graphs[GRAPHS]; /* by the graph's number */

/* Returns the launch with the correlation, which is a new one if none of the last launches has it. The work
 * of several streams is returned alternately. */
static struct launch *launch_of(struct graph *graph, uint32_t correlation)
{
    enum { LATEST = 8 };
    for (uint32_t i = 0; i < LATEST; i++) {
        struct launch *launch = &graph->launch[(graph->newest + LAUNCHES - i) % LAUNCHES];
        if (launch->correlation == correlation)
            return launch;
    }
    graph->newest = (graph->newest + 1) % LAUNCHES;
    struct launch *launch = &graph->launch[graph->newest];
    *launch = (struct launch){ .first = UINT64_MAX, .correlation = correlation };
    return launch;
}

void ct_graph_launches_note(uint32_t graph, uint32_t correlation, uint64_t at)
{
    struct graph *found = &graphs[graph % GRAPHS];
    if (found->graph != graph) {
        memset(found, 0, sizeof(*found));
        found->graph = graph;
    }
    struct launch *launch = launch_of(found, correlation);
    launch->first = at < launch->first ? at : launch->first;
    launch->last = at > launch->last ? at : launch->last;
}

uint32_t ct_graph_launches_find(uint32_t graph, uint64_t at)
{
    const struct graph *found = &graphs[graph % GRAPHS];
    for (size_t i = 0; found->graph == graph && i < LAUNCHES; i++) {
        const struct launch *launch = &found->launch[i];
        if (launch->correlation != 0 && at >= launch->first && at <= launch->last)
            return launch->correlation;
    }
    return 0;
}

void ct_graph_launches_forget(void)
{
    memset(graphs, 0, sizeof(graphs));
}
