/* Selects the calls to record. The daemon publishes its session's selection in the control segment
 * (`cudatrace set`). A process starts with the selection in its environment (`cudatrace run --layers …`).
 * Calls that the selection leaves out are only counted, together with their time and bytes.
 *
 * Patterns are names of driver and runtime functions, separated by commas, and may contain the wildcards '*'
 * and '?'. A '!' before a pattern leaves out matching functions. If several patterns match, the last one
 * decides. A function that matches no pattern is recorded only if the first pattern begins with '!', or if
 * there are no patterns. */
#ifndef CT_PROTO_SELECTION_H
#define CT_PROTO_SELECTION_H

#include "segment.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#define CT_LAYERS_ENV "CUDATRACE_LAYERS"
#define CT_CALLS_ENV  "CUDATRACE_CALLS"
#define CT_SAMPLE_ENV "CUDATRACE_SAMPLE"

enum { CT_SELECTION_CALLS_BYTES = 1024, CT_SAMPLE_MAX = 1000000000 };

struct ct_selection {
    uint32_t layers; /* bit 1 << enum ct_layer is set for each layer that is recorded */
    /* Of every `sample` outermost calls, one is recorded, together with the calls inside it. From 1 to
     * CT_SAMPLE_MAX. */
    uint32_t sample;
    char calls[CT_SELECTION_CALLS_BYTES]; /* patterns; "" if there are none */
};
static_assert(sizeof(struct ct_selection) == 1032, "ct_selection");

static inline struct ct_selection ct_selection_everything(void)
{
    return (struct ct_selection){ .layers = (1U << CT_LAYER_COUNT) - 1, .sample = 1 };
}

/* Parses "all", or layer names separated by commas. If any other name is found, returns false and changes
 * nothing. */
static inline bool ct_selection_set_layers(struct ct_selection *selection, const char *text)
{
    uint32_t layers = 0;
    if (strcmp(text, "all") == 0)
        layers = ct_selection_everything().layers;
    for (const char *name = text; layers == 0 || name != text;) {
        const size_t length = strcspn(name, ",");
        uint32_t layer = 0;
        while (layer < CT_LAYER_COUNT &&
               (strlen(ct_layer_names[layer]) != length || strncmp(ct_layer_names[layer], name, length) != 0))
            layer++;
        if (layer == CT_LAYER_COUNT)
            return false;
        layers |= 1U << layer;
        if (!name[length])
            break;
        name += length + 1;
    }
    selection->layers = layers;
    return true;
}

/* Parses a sampling rate. Returns false unless `text` is a number from 1 to CT_SAMPLE_MAX. */
static inline bool ct_selection_set_sample(struct ct_selection *selection, const char *text)
{
    char *end;
    const unsigned long sample = strtoul(text, &end, 10);
    if (*text < '0' || *text > '9' || *end || sample < 1 || sample > CT_SAMPLE_MAX)
        return false;
    selection->sample = (uint32_t)sample;
    return true;
}

/* Returns false if the text is too long, or if a pattern is empty or contains a character that is not allowed
 * in names or patterns. */
static inline bool ct_selection_set_calls(struct ct_selection *selection, const char *text)
{
    static const char letters[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_*?";
    const size_t length = strlen(text);
    if (length >= sizeof(selection->calls))
        return false;
    for (const char *pattern = text; length > 0;) {
        pattern += *pattern == '!';
        const size_t n = strspn(pattern, letters);
        if (n == 0 || (pattern[n] != ',' && pattern[n] != '\0'))
            return false;
        if (!pattern[n])
            break;
        pattern += n + 1;
    }
    memset(selection->calls, 0, sizeof(selection->calls));
    memcpy(selection->calls, text, length);
    return true;
}

/* True if the pattern, which is `length` characters long, matches all of `name`. */
static inline bool ct_pattern_matches(const char *pattern, size_t length, const char *name)
{
    const char *const end = pattern + length, *star = NULL, *star_name = NULL;
    while (*name) {
        if (pattern < end && *pattern == '*') {
            star = ++pattern;
            star_name = name;
        } else if (pattern < end && (*pattern == '?' || *pattern == *name)) {
            pattern++;
            name++;
        } else if (star) {
            pattern = star;
            name = ++star_name;
        } else {
            return false;
        }
    }
    while (pattern < end && *pattern == '*')
        pattern++;
    return pattern == end;
}

/* True if calls to the function are recorded, sampling aside. */
static inline bool ct_selection_takes(const struct ct_selection *selection, enum ct_layer layer,
                                      const char *name)
{
    if (!(selection->layers & 1U << layer))
        return false;
    const char *pattern = selection->calls;
    if ((layer != CT_LAYER_DRIVER && layer != CT_LAYER_RUNTIME) || !*pattern)
        return true;
    bool takes = *pattern == '!';
    for (;;) {
        const bool without = *pattern == '!';
        pattern += without;
        const size_t length = strcspn(pattern, ",");
        if (ct_pattern_matches(pattern, length, name))
            takes = !without;
        if (!pattern[length])
            return takes;
        pattern += length + 1;
    }
}

#endif
