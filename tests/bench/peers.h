/* The ways of making a call that hook_cost compares: through the hook, bare, or through a wrapper that works
 * like another tracer. All ways are timed by the same code. */
#ifndef BENCH_PEERS_H
#define BENCH_PEERS_H

#include <stdbool.h>
#include <stdint.h>

typedef int bench_call(void **context);

/* A driver call that hook_cost times. `traced` makes the call through the hook if there is one. `bare`
 * bypasses the hook. */
struct bench_subject {
    const char *name;
    bench_call *bare, *traced;
};

/* Returns the subject with the given name, or NULL if the name is unknown. `spin:NS` is a call that lasts NS
 * nanoseconds, and `launch:COUNT` launches COUNT kernels in turn. Calls cuInit(). */
const struct bench_subject *bench_subject(const char *name, double ns_per_tick);

/* The folder for the peers' files, and the path of the library with the tracepoints. Either can be NULL if
 * none of the ways used needs it. */
struct bench_places {
    const char *folder, *tracepoints;
};

/* Returns the function that makes the call in the given way. If the name is unknown or the way is
 * unavailable, prints a line to stderr and returns NULL. Every way except "cudatrace" and the probed ones
 * calls subject->bare. */
bench_call *bench_peer(const char *name, const struct bench_subject *subject,
                       const struct bench_places *places);

/* Makes the peers overwrite their files from the beginning, so that a long run does not fill the disk. Called
 * between rounds. */
void bench_peers_rewind(void);

#endif
