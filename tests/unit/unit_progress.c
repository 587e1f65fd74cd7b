/* Tests when the line that shows the progress of work is shown, and that nothing of it remains. */
#include "progress.h"

#include <stdlib.h>
#include <string.h>

static char *text;
static size_t bytes;

static void check(const struct ct_progress *progress, const char *wanted)
{
    fflush(progress->to);
    if (bytes == strlen(wanted) && memcmp(text, wanted, bytes) == 0)
        return;
    fprintf(stderr, "got '%s', expected '%s'\n", text, wanted);
    exit(EXIT_FAILURE);
}

static void show_if_due(struct ct_progress *progress, int64_t at_ms, bool is_due, const char *line)
{
    if (ct_progress_is_due(progress, at_ms * 1000000) != is_due) {
        fprintf(stderr, "at %d ms: expected %s\n", (int)at_ms, is_due ? "due" : "not due");
        exit(EXIT_FAILURE);
    }
    if (is_due)
        ct_progress_show(progress, at_ms * 1000000, line);
}

int main(void)
{
    struct ct_progress progress = ct_progress_begin("report", 5000000000);
    progress.to = NULL; /* not a terminal */
    show_if_due(&progress, 9000, false, "");
    ct_progress_clear(&progress);
    progress.to = open_memstream(&text, &bytes);
    show_if_due(&progress, 6999, false, "");
    ct_progress_clear(&progress);
    check(&progress, "");
    show_if_due(&progress, 7000, true, "1 of 9");
    check(&progress, "\rreport: 1 of 9\033[K");
    show_if_due(&progress, 7199, false, "");
    show_if_due(&progress, 7200, true, "2 of 9");
    ct_progress_clear(&progress);
    ct_progress_clear(&progress);
    check(&progress, "\rreport: 1 of 9\033[K\rreport: 2 of 9\033[K\r\033[K");
    fclose(progress.to);
    free(text);
    return EXIT_SUCCESS;
}
