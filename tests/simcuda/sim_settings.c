/* sim_settings.c: reads the settings in sim_settings.h from environment variables, once per process, at its
 * first call. */
#include "sim_settings.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

struct settings sim_settings;

_Noreturn void settings_refuse(const char *variable, const char *value, const char *expected)
{
    fprintf(stderr, "simcuda: %s=%s: expected %s\n", variable, value, expected);
    _exit(2);
}

int64_t settings_number(const char *variable, int64_t low, int64_t high, int64_t fallback)
{
    const char *value = getenv(variable);
    if (!value || !*value)
        return fallback;
    char *end;
    errno = 0;
    const long long number = strtoll(value, &end, 10);
    if (errno || *end || number < low || number > high) {
        char expected[64];
        snprintf(expected, sizeof expected, "a number from %lld to %lld", (long long)low, (long long)high);
        settings_refuse(variable, value, expected);
    }
    return number;
}

static double read_bandwidth(const char *variable)
{
    const char *value = getenv(variable);
    if (!value || !*value)
        return 0;
    char *end;
    const double number = strtod(value, &end);
    if (*end || !isfinite(number) || number <= 0)
        settings_refuse(variable, value, "a positive number of GB/s");
    return number;
}

static bool read_fork_mode(const char *variable)
{
    const char *value = getenv(variable);
    if (!value || !*value || !strcmp(value, "refuses"))
        return false;
    if (strcmp(value, "works") != 0)
        settings_refuse(variable, value, "works or refuses");
    return true;
}

void settings_read(void)
{
    sim_settings = (struct settings){
        .launch_ns = settings_number("SIMCUDA_LAUNCH_NS", 0, 3600000000000, 0),
        .queue = settings_number("SIMCUDA_QUEUE", 0, 1 << 20, 0),
        .copy_gbps = read_bandwidth("SIMCUDA_COPY_GBPS"),
        .works_after_fork = read_fork_mode("SIMCUDA_FORK"),
        .ioctls = settings_number("SIMCUDA_IOCTLS", 0, 1, 0) != 0,
        .reuses = settings_number("SIMCUDA_REUSE", 0, 1, 0) != 0,
    };
}
