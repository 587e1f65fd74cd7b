#include "tail_output.h"

#include "clock.h"

#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

/* A pipe that poll() reports as writable accepts this many bytes at once, so that no line is split. */
enum { PIECE_BYTES = 4096 };
/* How long to wait after a stop for a terminal to accept the rest of a partly written line. */
#define LINE_PATIENCE_NS UINT64_C(200000000)

bool ct_tail_output_open(struct ct_tail_output *output)
{
    output->lines = open_memstream(&output->bytes, &output->count);
    return output->lines != NULL;
}

void ct_tail_output_close(struct ct_tail_output *output)
{
    if (output->lines)
        fclose(output->lines);
    free(output->bytes);
}

size_t ct_tail_output_pending(const struct ct_tail_output *output)
{
    const off_t at = ftello(output->lines);
    return at > 0 ? (size_t)at : 0;
}

static bool is_stopped(const struct ct_tail_output *output)
{
    return output->stop && *output->stop;
}

static struct timespec span(uint64_t ns)
{
    return (struct timespec){ .tv_sec = (time_t)(ns / 1000000000), .tv_nsec = (long)(ns % 1000000000) };
}

/* Waits until the output can accept data. Returns false after a signal or at `until_ns`. Also returns true on
 * an error, which write() will report. */
static bool await_room(const struct ct_tail_output *output, uint64_t until_ns)
{
    struct pollfd file = { .fd = output->fd, .events = POLLOUT };
    const uint64_t now_ns = ct_monotonic_ns();
    const struct timespec rest = span(until_ns > now_ns ? until_ns - now_ns : 0);
    return ppoll(&file, 1, until_ns ? &rest : NULL, output->mask) > 0;
}

/* Returns the length of the next piece to write, which consists of whole lines if at least one line fits. */
static size_t piece(const char *bytes, size_t count, bool one_line)
{
    const size_t most = count < PIECE_BYTES ? count : PIECE_BYTES;
    const char *end = one_line ? memchr(bytes, '\n', most) : memrchr(bytes, '\n', most);
    return end ? (size_t)(end - bytes) + 1 : most;
}

/* Writes a piece with signals unblocked, because a terminal that accepts no data blocks the write. Returns
 * the number of bytes written. */
static size_t write_piece(struct ct_tail_output *output, const char *bytes, size_t count)
{
    sigset_t before;
    if (output->mask)
        sigprocmask(SIG_SETMASK, output->mask, &before);
    const ssize_t n = write(output->fd, bytes, count);
    const int error = errno;
    if (output->mask)
        sigprocmask(SIG_SETMASK, &before, NULL);
    if (n > 0) {
        output->is_within_line = bytes[n - 1] != '\n';
        return (size_t)n;
    }
    if (n < 0 && error != EINTR && error != EAGAIN) {
        output->is_gone = true;
        output->error = error == EPIPE ? 0 : error;
    }
    return 0;
}

/* Returns the number of bytes written. */
static size_t write_lines(struct ct_tail_output *output, const char *bytes, size_t count, uint64_t until_ns)
{
    size_t sent = 0;
    bool is_ending = false;
    while (sent < count && !output->is_gone) {
        if (is_stopped(output) && !output->is_within_line)
            break;
        if (is_stopped(output) && !is_ending) {
            is_ending = true;
            until_ns = ct_monotonic_ns() + LINE_PATIENCE_NS;
        }
        if (await_room(output, until_ns))
            sent += write_piece(output, bytes + sent, piece(bytes + sent, count - sent, is_ending));
        else if (until_ns && ct_monotonic_ns() >= until_ns)
            break;
    }
    return sent;
}

/* If a line was only partly written, its remainder is kept and written before the next lines. */
uint64_t ct_tail_output_send(struct ct_tail_output *output, uint64_t until_ns)
{
    uint64_t dropped = 0;
    fflush(output->lines);
    const size_t count = output->count, sent = write_lines(output, output->bytes, count, until_ns);
    const char *end = output->is_within_line ? memchr(output->bytes + sent, '\n', count - sent) : NULL;
    const size_t kept = end ? (size_t)(end - (output->bytes + sent)) + 1 : 0;
    for (size_t at = sent + kept; at < count; at++)
        dropped += output->bytes[at] == '\n';
    memmove(output->bytes, output->bytes + sent, kept);
    fseeko(output->lines, (off_t)kept, SEEK_SET);
    return dropped;
}

bool ct_tail_output_wait(struct ct_tail_output *output, int fd, uint64_t wait_ns)
{
    struct pollfd files[] = { { .fd = output->fd }, { .fd = fd, .events = POLLIN } };
    const struct timespec pause = span(wait_ns);
    if (is_stopped(output) || ppoll(files, 2, &pause, output->mask) <= 0)
        return false;
    output->is_gone |= (files[0].revents & (POLLERR | POLLHUP | POLLNVAL)) != 0;
    return files[1].revents != 0;
}
