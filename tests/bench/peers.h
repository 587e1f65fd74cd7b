/* The ways to make a call that are compared, all alike to the timer: through the hook, bare, or in a wrapper
 * that does what another tracer does. */
#ifndef BENCH_PEERS_H
#define BENCH_PEERS_H

#include <stdbool.h>
#include <stdint.h>

typedef int bench_call(void **context);

/* A driver call to time: `traced` goes through the hook where there is one, `bare` past it. */
struct bench_subject {
    const char *name;
    bench_call *bare, *traced;
};

/* The subject of a name; NULL when there is none. `spin:NS` is a call that lasts so long, `launch:COUNT`
 * launches so many kernels in turn. Calls cuInit(). */
const struct bench_subject *bench_subject(const char *name, double ns_per_tick);

/* The folder in which the peers write, and the path of the tracepoints' library; either may be NULL when no
 * way needs it. */
struct bench_places {
    const char *folder, *tracepoints;
};

/* The call by a way; NULL, with a line on stderr, when there is none of that name or it cannot be had. Every
 * way but "cudatrace" and the probed ones calls subject->bare. */
bench_call *bench_peer(const char *name, const struct bench_subject *subject,
                       const struct bench_places *places);

/* Files start anew, so that a long run fills no disk. Called between rounds. */
void bench_peers_rewind(void);

#endif
