/* sim_settings.h: the settings of the simulated device, which come from environment variables and are read
 * once in each process. README.md describes each variable. */
#ifndef SIMCUDA_SETTINGS_H
#define SIMCUDA_SETTINGS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define SIM_MEMORY_BYTES ((uint64_t)4 << 30)

struct settings {
    int64_t launch_ns;     /* SIMCUDA_LAUNCH_NS */
    int64_t queue;         /* SIMCUDA_QUEUE, kernels; 0: any number */
    double copy_gbps;      /* SIMCUDA_COPY_GBPS, in bytes per nanosecond, or 0 if copies take no time */
    bool works_after_fork; /* SIMCUDA_FORK=works */
    bool ioctls;           /* SIMCUDA_IOCTLS=1 */
    bool reuses;           /* SIMCUDA_REUSE=1 */
};
extern struct settings sim_settings;

void settings_read(void);

/* Returns the value of an environment variable as a number in [low, high], or `fallback` if the variable is
 * not set. */
int64_t settings_number(const char *variable, int64_t low, int64_t high, int64_t fallback);

/* Reports the invalid variable and exits, because a test that runs with the wrong settings proves nothing. */
_Noreturn void settings_refuse(const char *variable, const char *value, const char *expected);

#endif
