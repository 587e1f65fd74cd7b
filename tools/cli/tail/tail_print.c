#include "tail.h"

#include "clock.h"
#include "tail_line.h"
#include "tail_output.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum {
    CHUNK_BYTES = 64 * 1024, /* maximum size of the lines created in one step */
    CUT_WIDTH = 80,          /* width to which long names are truncated on a terminal */
};

/* The polling interval. Two intervals and the daemon's own delay add up to a quarter of a second. */
#define PAUSE_NS UINT64_C(50000000)

struct ct_tail {
    struct ct_tail_plan plan;
    struct ct_follow *follow;
    struct ct_line_style style;
    struct ct_tail_output output;
    uint64_t shown, not_shown;
    uint64_t unreported;     /* the part of `not_shown` not yet reported by a line */
    bool has_removed;        /* calls were removed before they could be read */
    bool removed_unreported; /* the removal has not been reported by a line yet */
    bool is_skipping;        /* calls are counted instead of printed */
    bool is_history;         /* still printing calls up to history_until_id, which were stored before
                              * ct_tail_begin() */
    int64_t history_until_id;
    bool was_idle; /* the last step printed all stored calls */
    /* The last call that the file contained at mark_ns. It must be printed within lag_max_ns. */
    int64_t mark_id;
    uint64_t mark_ns;
    uint32_t mark_files;
};

static bool is_coloured(const struct ct_tail_plan *plan)
{
    const char *no_colour = getenv("NO_COLOR");
    return !plan->is_json &&
           (plan->colour == CT_TAIL_COLOUR_ALWAYS ||
            (plan->colour == CT_TAIL_COLOUR_AUTO && isatty(plan->fd) && !(no_colour && *no_colour)));
}

struct ct_tail *ct_tail_begin(sqlite3 *connection, const struct ct_series *series,
                              const struct ct_tail_plan *plan)
{
    struct ct_tail *tail = calloc(1, sizeof(*tail));
    if (!tail) {
        sqlite3_close(connection);
        ct_fail(0, "out of memory");
        return NULL;
    }
    tail->plan = *plan;
    tail->style = (struct ct_line_style){
        .is_json = plan->is_json,
        .is_coloured = is_coloured(plan),
        .is_relative = plan->is_relative,
        .has_threads = plan->has_threads,
        .text_width = isatty(plan->fd) ? CUT_WIDTH : 0,
    };
    tail->output = (struct ct_tail_output){ .fd = plan->fd, .stop = plan->stop, .mask = plan->mask };
    const bool has_memory = ct_tail_output_open(&tail->output);
    if (!has_memory)
        sqlite3_close(connection);
    tail->follow = has_memory ? ct_follow_begin(connection, series, &plan->follow) : NULL;
    if (tail->follow) {
        tail->history_until_id = ct_follow_last(tail->follow);
        tail->is_history = plan->follow.start != CT_FOLLOW_NOW;
        tail->was_idle = true;
        return tail;
    }
    ct_tail_output_close(&tail->output);
    free(tail);
    return NULL;
}

/* ---- keeping up ---- */

static bool is_stopped(const struct ct_tail *tail)
{
    return (tail->plan.stop && *tail->plan.stop) || tail->output.is_gone;
}

/* Starts skipping calls if the newest call from lag_max_ns ago has not been printed yet. Calls in different
 * files are not compared. When the trace switches to a new file, the new file's last call is marked, and
 * mark_ns is kept. */
static void watch_lag(struct ct_tail *tail)
{
    const uint64_t now_ns = ct_monotonic_ns();
    const uint32_t files = ct_follow_files(tail->follow);
    const int64_t position = ct_follow_position(tail->follow);
    const bool is_same_file = files == tail->mark_files;
    tail->is_history &= position < tail->history_until_id;
    const bool is_reached = tail->is_history || tail->was_idle || position >= tail->mark_id;
    if (is_reached || !is_same_file)
        tail->mark_id = ct_follow_last(tail->follow);
    if (tail->is_history || (is_reached && is_same_file))
        tail->mark_ns = now_ns;
    tail->mark_files = files;
    if (tail->plan.lag_max_ns && now_ns - tail->mark_ns > tail->plan.lag_max_ns)
        tail->is_skipping = true;
}

/* Adds the notice lines that precede the next call, unless calls are being skipped. Returns the number of
 * lines. */
static uint64_t put_notices(struct ct_tail *tail)
{
    uint64_t lines = 0;
    tail->removed_unreported |= ct_follow_has_missed(tail->follow);
    tail->has_removed |= tail->removed_unreported;
    if (tail->is_skipping)
        return 0;
    if (tail->unreported > 0 && ++lines)
        ct_line_not_shown(tail->output.lines, &tail->style, tail->unreported);
    if (tail->removed_unreported && ++lines)
        ct_line_removed(tail->output.lines, &tail->style);
    return lines;
}

/* Adds a line for each newly stored call, or only counts the calls while they are skipped. Returns the number
 * of lines. */
static uint64_t put_calls(struct ct_tail *tail)
{
    struct ct_stream_call call;
    uint64_t lines = 0, skipped = 0;
    tail->style.realtime_offset_ns = ct_follow_realtime_offset_ns(tail->follow);
    while (ct_tail_output_pending(&tail->output) < CHUNK_BYTES && ct_follow_next(tail->follow, &call)) {
        if (tail->is_skipping) {
            skipped++;
            continue;
        }
        ct_line_call(tail->output.lines, &tail->style, ct_follow_stream(tail->follow), &call);
        lines++;
    }
    tail->not_shown += skipped;
    tail->unreported += skipped;
    return lines;
}

/* Sends the lines, notices first. Calls whose lines the output does not accept in time count as not shown. */
static void send_lines(struct ct_tail *tail, uint64_t notices, uint64_t calls)
{
    const bool is_bounded = tail->plan.lag_max_ns && !tail->is_history;
    const uint64_t until_ns = is_bounded ? ct_monotonic_ns() + tail->plan.lag_max_ns : 0;
    const uint64_t dropped = ct_tail_output_send(&tail->output, until_ns);
    const uint64_t dropped_calls = dropped < calls ? dropped : calls;
    const uint64_t dropped_notices = dropped - dropped_calls;
    if (dropped_notices < notices)
        tail->unreported = 0; /* reported by the first notice */
    if (notices > 0 && dropped_notices == 0)
        tail->removed_unreported = false;
    tail->shown += calls - dropped_calls;
    if (dropped == 0 || is_stopped(tail))
        return;
    tail->not_shown += dropped_calls;
    tail->unreported += dropped_calls;
    tail->is_skipping = true;
}

enum ct_tail_state ct_tail_step(struct ct_tail *tail)
{
    if (tail->output.is_gone)
        return CT_TAIL_OVER;
    if (tail->was_idle && ct_tail_output_pending(&tail->output) == 0 && !ct_follow_has_news(tail->follow))
        return CT_TAIL_IDLE;
    if (!ct_follow_look(tail->follow)) {
        ct_follow_rest(tail->follow);
        return CT_TAIL_OVER;
    }
    watch_lag(tail);
    uint64_t notices = put_notices(tail);
    const uint64_t calls = put_calls(tail);
    const bool has_more = ct_follow_rest(tail->follow);
    if (tail->is_skipping && !has_more) {
        tail->is_skipping = false;
        notices = put_notices(tail);
    }
    if (ct_tail_output_pending(&tail->output) > 0)
        send_lines(tail, notices, calls);
    tail->was_idle = !has_more && !tail->is_skipping;
    if (tail->output.is_gone || ct_follow_problem(tail->follow))
        return CT_TAIL_OVER;
    return has_more ? CT_TAIL_MORE : CT_TAIL_IDLE;
}

bool ct_tail_wait(struct ct_tail *tail, int fd)
{
    return ct_tail_output_wait(&tail->output, fd, PAUSE_NS);
}

/* ---- the end ---- */

static void report_not_shown(const struct ct_tail *tail)
{
    if (tail->not_shown > 0)
        ct_fail(0, "%s: %llu of %llu calls were not shown, because the output was slower than the calls",
                tail->plan.command, (unsigned long long)tail->not_shown,
                (unsigned long long)(tail->shown + tail->not_shown));
    if (tail->has_removed)
        ct_fail(0, "%s: more calls were removed before they could be read (--keep or --max-db of the daemon)",
                tail->plan.command);
}

/* Adds the lines that report skipped calls, and closes the trace. Returns the number of lines. */
static uint64_t close_trace(struct ct_tail *tail)
{
    tail->is_skipping = false;
    const uint64_t notices = put_notices(tail);
    ct_follow_end(tail->follow);
    tail->follow = NULL;
    return notices;
}

/* A line that reports skipped calls can usually be dropped, because a later line will report them. No line
 * will follow the last one, so this function waits until the reader has taken the last line and any
 * unfinished line. The wait may be long, so the trace is closed first. */
int ct_tail_finish(struct ct_tail *tail)
{
    ct_follow_hurry(tail->follow);
    while (!is_stopped(tail) && ct_tail_step(tail) == CT_TAIL_MORE)
        ;
    const char *problem = ct_follow_problem(tail->follow);
    int status = problem ? EXIT_FAILURE : EXIT_SUCCESS;
    if (problem)
        ct_fail(0, "%s: cannot read the trace: %s", tail->plan.command, problem);
    const uint64_t notices = close_trace(tail);
    tail->plan.lag_max_ns = 0;
    if (ct_tail_output_pending(&tail->output) > 0)
        send_lines(tail, notices, 0);
    if (tail->output.error)
        ct_fail(0, "%s: cannot write: %s", tail->plan.command, strerror(tail->output.error));
    if (tail->output.is_gone)
        status = EXIT_FAILURE;
    else
        report_not_shown(tail);
    ct_tail_output_close(&tail->output);
    free(tail);
    return status;
}
