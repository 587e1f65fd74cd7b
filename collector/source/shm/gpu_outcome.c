#include "gpu_outcome.h"

#include "gpu_recording.h"
#include "interner.h"

#include <stdio.h>
#include <string.h>

static const char *const texts[] = {
    [CT_GPU_ON] = CT_GPU_RECORDED,
    [CT_GPU_ENDED] = CT_GPU_RECORDED,
    [CT_GPU_NO_LIBRARY] = CT_GPU_LIBRARY " is not in the hook's folder",
    [CT_GPU_NO_CUPTI] = "there is no libcupti",
    [CT_GPU_FORKED] = "the parent of the process has used CUPTI",
    [CT_GPU_FILTERED] = "the program's system call filter does not permit it",
};

/* Copies the name before it is checked, because the process may change it at any time. Replaces control
 * characters, because the text is printed on terminals. */
static void describe_holder(const struct ct_segment *segment, char text[CT_GPU_TEXT_BYTES])
{
    char raw[sizeof(segment->gpu_holder)], holder[sizeof(raw) + 1];
    memcpy(raw, segment->gpu_holder, sizeof(raw));
    ct_text_clean(holder, raw, strnlen(raw, sizeof(raw)));
    for (char *c = holder; *c; c++)
        *c = (unsigned char)*c < ' ' || *c == 127 ? '?' : *c;
    snprintf(text, CT_GPU_TEXT_BYTES, "%s uses CUPTI", *holder ? holder : "another tool");
}

bool ct_gpu_outcome(const struct ct_segment *segment, uint32_t gpu, char text[CT_GPU_TEXT_BYTES])
{
    const uint32_t state = gpu & 255;
    *text = '\0';
    if (state == CT_GPU_TAKEN)
        describe_holder(segment, text);
    else if (state == CT_GPU_REFUSED)
        snprintf(text, CT_GPU_TEXT_BYTES, "CUPTI failed with %u", gpu >> 8);
    else if (state == CT_GPU_NO_THREAD)
        snprintf(text, CT_GPU_TEXT_BYTES, "no thread could be created: %s", strerror((int)(gpu >> 8)));
    else if (state < sizeof(texts) / sizeof(*texts) && texts[state])
        snprintf(text, CT_GPU_TEXT_BYTES, "%s", texts[state]);
    return *text != '\0';
}
