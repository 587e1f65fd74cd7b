/* Fuzzes user input: `set` requests to the daemon's socket, patterns, and the names of files in /dev/shm. If
 * a selection is accepted and then written out as text, the text must also be accepted, and must select the
 * same calls. */
#include "session.h"
#include "test_point.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void ct_test_point(const char *name)
{
    (void)name;
}

static void fail(const char *what, const char *text)
{
    fprintf(stderr, "selection: %s: %s\n", what, text);
    abort();
}

/* Checks that formatting the values parsed from a file name gives the same name. */
static void check_name(const char *name, const struct ct_session_file *file)
{
    static void (*const paths[])(char *, const char *, uint32_t, const char *) = {
        [CT_FILE_CONTROL] = ct_session_control_path,
        [CT_FILE_SOCKET] = ct_session_socket_path,
        [CT_FILE_BELL] = ct_session_bell_path,
        [CT_FILE_PROBE] = ct_session_probe_path,
    };
    char path[CT_NAME_BYTES];
    if (file->kind == CT_FILE_SEGMENT)
        ct_session_segment_path(path, "", file->uid, file->session, file->system, file->pid,
                                file->created_ns);
    else
        paths[file->kind](path, "", file->uid, file->session);
    if (strcmp(path + 1, name) != 0)
        fail("a name that is written otherwise", name);
}

int LLVMFuzzerTestOneInput(const uint8_t *input, size_t size);
int LLVMFuzzerTestOneInput(const uint8_t *input, size_t size)
{
    static struct ct_control control;
    static const char *const names[] = { "cuLaunchKernel", "cudaMalloc", "" };
    char *text = malloc(size + 1), problem[128], settings[2 * CT_SELECTION_CALLS_BYTES];
    if (!text)
        abort();
    memcpy(text, input, size);
    text[size] = '\0';
    control = (struct ct_control){ 0 };
    struct ct_session session = { .control = &control, .selection = ct_selection_everything() };
    const struct ct_selection before = session.selection;
    if (!ct_session_select(&session, text, problem, sizeof(problem))) {
        if (strlen(problem) >= sizeof(problem) || memcmp(&before, &session.selection, sizeof(before)) != 0)
            fail("what was refused changed something", text);
    } else {
        const struct ct_selection taken = session.selection;
        if (!memchr(taken.calls, '\0', sizeof(taken.calls)) || taken.sample < 1 ||
            taken.layers >= 1U << CT_LAYER_COUNT || control.selections % 2 != 0)
            fail("what was taken is no selection", text);
        snprintf(settings, sizeof(settings), "calls=%s sample=%u", taken.calls, taken.sample);
        if (!ct_session_select(&session, settings, problem, sizeof(problem)) ||
            memcmp(&taken, &session.selection, sizeof(taken)) != 0)
            fail("what was taken is not taken again", text);
        for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
            if (ct_selection_takes(&taken, CT_LAYER_IOCTL, names[i]) !=
                !!(taken.layers & 1 << CT_LAYER_IOCTL))
                fail("patterns are for functions", text);
            ct_selection_takes(&taken, CT_LAYER_DRIVER, names[i]);
        }
    }
    char path[CT_NAME_BYTES];
    if (ct_session_valid(text))
        ct_session_segment_path(path, CT_SHM_DIR, UINT32_MAX, text, false, INT32_MAX, UINT64_MAX);
    struct ct_session_file file;
    if (ct_session_file_parse(text, &file))
        check_name(text, &file);
    free(text);
    return 0;
}
