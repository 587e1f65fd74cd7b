/* Determines by the rule in clock.h which clock this machine's kernel trusts. The daemon uses the result for
 * its session, and `cudatrace doctor` reports it. */
#ifndef CT_PROTO_CLOCK_SOURCE_H
#define CT_PROTO_CLOCK_SOURCE_H

#include "clock.h"

#include <stdbool.h>
#include <stdio.h>
#include <string.h>

enum { CT_CLOCK_SOURCES_BYTES = 256 };

/* Reads the first line of a file in the kernel's clock source directory into `text`, or "" if the file cannot
 * be read. */
static inline void ct_clock_source_read(const char *file, char text[CT_CLOCK_SOURCES_BYTES])
{
    char path[128];
    snprintf(path, sizeof(path), "/sys/devices/system/clocksource/clocksource0/%s", file);
    FILE *from = fopen(path, "re");
    if (!from || !fgets(text, CT_CLOCK_SOURCES_BYTES, from))
        text[0] = '\0';
    if (from)
        fclose(from);
    text[strcspn(text, "\n")] = '\0';
}

/* Returns the clock to use, and copies the name of the kernel's clock source to `current`. */
static inline enum ct_clock_kind ct_clock_choose(char current[CT_CLOCK_SOURCES_BYTES])
{
    ct_clock_source_read("current_clocksource", current);
    bool trusted = false;
#if defined(__x86_64__)
    char available[CT_CLOCK_SOURCES_BYTES];
    ct_clock_source_read("available_clocksource", available);
    trusted = strcmp(current, "tsc") == 0 || strcmp(current, "hyperv_clocksource_tsc_page") == 0 ||
              (strcmp(current, "kvm-clock") == 0 && strstr(available, "tsc"));
#elif defined(__aarch64__)
    trusted = strcmp(current, "arch_sys_counter") == 0;
#endif
    return trusted ? CT_CLOCK_COUNTER : CT_CLOCK_MONOTONIC;
}

#endif
