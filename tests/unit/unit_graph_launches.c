/* unit_graph_launches.c: work that CUPTI links to no call gets the launch whose other work is around it. */
#include "graph_launches.h"

#include "../ensure.h"

enum { GRAPH = 3, OTHER = 67, MANY = 1000 }; /* both graphs have the same place in the table */

/* A launch has work at its begin and at its end. */
static void launch(uint32_t graph, uint32_t correlation, uint64_t begin, uint64_t end)
{
    ct_graph_launches_note(graph, correlation, begin);
    ct_graph_launches_note(graph, correlation, end);
}

int main(void)
{
    EXPECT(0, ct_graph_launches_find(GRAPH, 10));
    launch(GRAPH, 7, 100, 200);
    launch(GRAPH, 9, 300, 400);
    EXPECT(7, ct_graph_launches_find(GRAPH, 150));
    EXPECT(9, ct_graph_launches_find(GRAPH, 300));
    EXPECT(0, ct_graph_launches_find(GRAPH, 99));  /* the graph may begin with the conditional node */
    EXPECT(0, ct_graph_launches_find(GRAPH, 250)); /* or end with it */
    EXPECT(0, ct_graph_launches_find(GRAPH, 401));

    /* Another stream of the first launch is returned later. */
    launch(GRAPH, 7, 90, 210);
    EXPECT(7, ct_graph_launches_find(GRAPH, 95));
    EXPECT(9, ct_graph_launches_find(GRAPH, 350));

    /* Launches are forgotten, but no other launch is found instead. */
    for (uint32_t i = 0; i < MANY; i++)
        launch(GRAPH, 10 + i, 1000 + 10 * i, 1005 + 10 * i);
    EXPECT(0, ct_graph_launches_find(GRAPH, 150));
    EXPECT(10 + MANY - 1, ct_graph_launches_find(GRAPH, 1000 + 10 * (MANY - 1) + 2));
    EXPECT(0, ct_graph_launches_find(OTHER, 1002));
    launch(OTHER, 5000, 1, 2000);
    EXPECT(5000, ct_graph_launches_find(OTHER, 1002));
    EXPECT(0, ct_graph_launches_find(GRAPH, 1000 + 10 * (MANY - 1) + 2));
    ct_graph_launches_forget();
    EXPECT(0, ct_graph_launches_find(OTHER, 1002));
    return 0;
}
