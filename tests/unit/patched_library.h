/* Gives slots to the functions of a library in this process, and removes the slots again. A failure ends the
 * test. */
#ifndef PATCHED_LIBRARY_H
#define PATCHED_LIBRARY_H

#include "inline_plan.h"

enum { FUNCTIONS_MOST = 2048 };

struct patched {
    void *handle;
    struct ct_inline_image image;
    struct ct_inline_function functions[FUNCTIONS_MOST];
    const char *names[FUNCTIONS_MOST];
    size_t count;
    struct ct_inline_plan plan;
    uint64_t *counters; /* the number of calls through each slot */
};

struct patched *patched_open(const char *path);
/* Adds all exported functions whose names satisfy `wanted`. */
void patched_add(struct patched *library, bool (*wanted)(const char *name));
void *patched_function(const struct patched *library, const char *name);

/* Maps an area near the library, and makes the plan for giving slots to the library's functions. */
void patched_plan(struct patched *library);
enum ct_inline_verdict patched_verdict(const struct patched *library, const char *name);
void patched_say(const struct patched *library, const char *path);

void patched_write_area(const struct patched *library);
/* Applies the plan. Afterwards, each slot points to code that counts the call and passes it on. */
void patched_enter(struct patched *library);
uint64_t *patched_counter(const struct patched *library, const char *name);

/* Returns a copy of the library's code, which the caller must free. */
uint8_t *patched_code(const struct patched *library);
/* Undoes all patches, using only the area and the code, and checks that the code is the same as in the
 * copy. */
void patched_undo(struct patched *library, const uint8_t *code);

#endif
