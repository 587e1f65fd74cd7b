/* Completes calls in JSON lines that another program wrote, with what the function's name implies. */
#ifndef CT_JSON_COMPLETE_H
#define CT_JSON_COMPLETE_H

#include <jansson.h>

/* Adds missing members to the details of a call of the driver or the runtime: `category`; `bytes`, if there
 * is a `size`; `kind` and `async` of copies and sets; `grid_x` and so on of launches, from the arrays `grid`
 * and `block`; `graph_exec` of launches of graphs. Details that have a category are complete. If out of
 * memory, a member may still be missing. */
void ct_json_complete(json_t *details, const char *layer, const char *name);

#endif
