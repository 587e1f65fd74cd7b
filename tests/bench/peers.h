/* The ways to make a call that are compared: through the hook, bare, or in a wrapper that works like another
 * tracer. The timer treats all ways alike. */
#ifndef BENCH_PEERS_H
#define BENCH_PEERS_H

#include <stdbool.h>
#include <stdint.h>

typedef int bench_call(void **context);

/* A driver call to time. `traced` calls it through the hook if there is one. `bare` bypasses the hook. */
struct bench_subject {
    const char *name;
    bench_call *bare, *traced;
};

/* Returns the subject of that name, or NULL if there is none. `spin:NS` is a call that lasts NS nanoseconds,
 * `launch:COUNT` launches COUNT kernels in turn. Calls cuInit(). */
const struct bench_subject *bench_subject(const char *name, double ns_per_tick);

/* The folder where the peers write, and the path of the tracepoints' library. Either may be NULL if no way
 * needs it. */
struct bench_places {
    const char *folder, *tracepoints;
};

/* Returns the call for a way. Returns NULL, with a line on stderr, if the name is unknown or the way
 * unavailable. Every way except "cudatrace" and the probed ones calls subject->bare. */
bench_call *bench_peer(const char *name, const struct bench_subject *subject,
                       const struct bench_places *places);

/* Restarts the files at their beginning, so that a long run fills no disk. Called between rounds. */
void bench_peers_rewind(void);

#endif
