/* Finds the launch that ran the body of a graph's conditional node. CUPTI links such work to no call, and
 * returns it after the rest of the graph's work (H200, driver 580.159.04, CUPTI 13.0). The launches of an
 * executable graph do not overlap ("Only one instance of hGraphExec may be executing at a time", CUDA Driver
 * API, cuGraphLaunch()), so work between two pieces of work of one launch belongs to that launch. For use by
 * the recording's thread alone. */
#ifndef CT_GRAPH_LAUNCHES_H
#define CT_GRAPH_LAUNCHES_H

#include <stdint.h>

/* Notes that work of a graph, with CUPTI's number of the graph, is linked to a call. `at` is its start, in
 * nanoseconds. */
void ct_graph_launches_note(uint32_t graph, uint32_t correlation, uint64_t at);
/* Returns the correlation of the launch that was running at that time, or 0 if it is unknown, as for a graph
 * whose first or last node is conditional, or after many further launches. */
uint32_t ct_graph_launches_find(uint32_t graph, uint64_t at);
/* Forgets all launches. Must be called when a recording begins. */
void ct_graph_launches_forget(void);

#endif
