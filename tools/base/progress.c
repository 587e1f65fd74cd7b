#include "progress.h"

#include <unistd.h>

enum { WAIT_NS = 2000000000, PAUSE_NS = 200000000 };

struct ct_progress ct_progress_begin(const char *command, int64_t now_ns)
{
    return (struct ct_progress){ .to = isatty(STDERR_FILENO) ? stderr : NULL,
                                 .command = command,
                                 .begun_ns = now_ns };
}

bool ct_progress_is_due(const struct ct_progress *progress, int64_t now_ns)
{
    return progress->to && now_ns - progress->begun_ns >= WAIT_NS && now_ns - progress->shown_ns >= PAUSE_NS;
}

/* A terminal's line is erased from the cursor on by ESC [ K (ECMA-48, EL). */
void ct_progress_show(struct ct_progress *progress, int64_t now_ns, const char *text)
{
    progress->shown_ns = now_ns;
    progress->is_shown = true;
    fprintf(progress->to, "\r%s: %s\033[K", progress->command, text);
    fflush(progress->to);
}

void ct_progress_clear(struct ct_progress *progress)
{
    if (!progress->is_shown)
        return;
    progress->is_shown = false;
    fputs("\r\033[K", progress->to);
    fflush(progress->to);
}
