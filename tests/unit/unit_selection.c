/* Tests patterns, layers and samples as defined in proto/selection.h: which names are selected, and which
 * patterns are rejected. */
#include "selection.h"

#include <stdio.h>

static int failures;

static void takes(const char *calls, const char *name, bool expected)
{
    struct ct_selection selection = ct_selection_everything();
    if (!ct_selection_set_calls(&selection, calls) ||
        ct_selection_takes(&selection, CT_LAYER_DRIVER, name) != expected ||
        !ct_selection_takes(&selection, CT_LAYER_IOCTL, name)) {
        fprintf(stderr, "'%s' should%s take %s\n", calls, expected ? "" : " not", name);
        failures++;
    }
}

static void refuses(const char *calls)
{
    struct ct_selection selection = ct_selection_everything();
    const struct ct_selection before = selection;
    if (ct_selection_set_calls(&selection, calls) || memcmp(&before, &selection, sizeof(before)) != 0) {
        fprintf(stderr, "'%s' should be refused\n", calls);
        failures++;
    }
}

static void layers(const char *text, bool fine, uint32_t expected)
{
    struct ct_selection selection = { .layers = 99 };
    if (ct_selection_set_layers(&selection, text) != fine || selection.layers != (fine ? expected : 99)) {
        fprintf(stderr, "layers '%s' gave %u\n", text, selection.layers);
        failures++;
    }
}

static void sample(const char *text, bool fine, uint32_t expected)
{
    struct ct_selection selection = { .sample = 99 };
    if (ct_selection_set_sample(&selection, text) != fine || selection.sample != (fine ? expected : 99)) {
        fprintf(stderr, "sample '%s' gave %u\n", text, selection.sample);
        failures++;
    }
}

int main(void)
{
    takes("", "cuInit", true);
    takes("*", "cuInit", true);
    takes("cuInit", "cuInit", true);
    takes("cuInit", "cuInit2", false);
    takes("cuInit", "cuIni", false);
    takes("cuMem*", "cuMemAlloc_v2", true);
    takes("cuMem*", "cuModuleLoad", false);
    takes("*Async*", "cuMemcpyHtoDAsync_v2", true);
    takes("*Async", "cuMemcpyHtoDAsync_v2", false);
    takes("cu?emAlloc*", "cuMemAlloc_v2", true);
    takes("*a*b*c", "xaxbxbxc", true);
    takes("*a*b*c", "xaxbxbxcx", false);
    takes("!cuCtxGet*", "cuCtxGetDevice_v2", false);
    takes("!cuCtxGet*", "cuMemAlloc_v2", true);
    takes("cuMem*,!cuMemGetInfo*", "cuMemGetInfo_v2", false);
    takes("cuMem*,!cuMemGetInfo*", "cuMemFree_v2", true);
    takes("cuMem*,!cuMemGetInfo*", "cuInit", false);
    takes("!*,cuInit", "cuInit", true); /* the last match decides */
    takes("!*,cuInit", "cuMemFree_v2", false);
    takes("cuInit,cuMemFree_v2", "cuMemFree_v2", true);

    refuses(",");
    refuses("a,");
    refuses(",a");
    refuses("a,,b");
    refuses("!");
    refuses("a b");
    refuses("a!b");
    char longest[CT_SELECTION_CALLS_BYTES + 1];
    memset(longest, 'a', sizeof(longest));
    longest[CT_SELECTION_CALLS_BYTES] = '\0';
    refuses(longest);
    longest[CT_SELECTION_CALLS_BYTES - 1] = '\0';
    takes(longest, longest, true);

    layers("driver", true, 1U << CT_LAYER_DRIVER);
    layers("nvtx,runtime", true, 1U << CT_LAYER_NVTX | 1U << CT_LAYER_RUNTIME);
    layers("all", true, (1U << CT_LAYER_COUNT) - 1);
    layers("", false, 0);
    layers("driver,", false, 0);
    layers("drive", false, 0);
    layers("driverx", false, 0);

    sample("1", true, 1);
    sample("1000000000", true, CT_SAMPLE_MAX);
    sample("1000000001", false, 0);
    sample("0", false, 0);
    sample("-1", false, 0);
    sample("2x", false, 0);
    sample("", false, 0);
    return failures ? EXIT_FAILURE : EXIT_SUCCESS;
}
