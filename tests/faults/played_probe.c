/* Plays a probe: creates a segment for another process, and writes to the segment as ordered by lines on
 * standard input. The program answers each line with `done`, and keeps the segment locked until it exits.
 *
 *   played_probe DIR SESSION PID START_TICKS IMAGE_NS [MAKER]
 *
 *   call END TICKS         publishes a plain record
 *   open START             shows an open call
 *   complete END           declares that all calls that returned before END are published
 *   lose CALLS TICKS END   sets the number and the total time of lost calls, and the time when they returned
 *   flags FLAGS            sets the segment's flags (enum ct_segment_flags)
 *   function LAYER NAME    defines the next function, from number 2 on
 *
 *   fields FUNCTION END TICKS [NAME=TYPE VALUE]…
 *
 * publishes a call with fields. TYPE is u or s for a number, or x for a text in hexadecimal. x without a
 * VALUE means NULL.
 *
 *   record KIND FUNCTION END TICKS VALUE [HEX]
 *
 * publishes a record of any kind, whose payload is given in hexadecimal. */
#include "../made_segment.h"
#include "control.h"
#include "fields.h"
#include "session_names.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

enum { NUMBERS_MAX = 5, FUNCTION = 1, BYTES = (int)CT_LANE_OFFSET + CT_LANE_HEADER_BYTES + CT_CHUNK_BYTES };

static struct ct_segment *segment;
static uint64_t position;

static struct ct_lane *lane(void)
{
    return (struct ct_lane *)(void *)((uint8_t *)segment + CT_LANE_OFFSET);
}

/* Publishes a record with its payload. The ring has room for a few thousand records. */
static void publish(struct ct_record record, const void *payload, size_t bytes)
{
    uint8_t *to = (uint8_t *)lane() + CT_LANE_HEADER_BYTES + position * CT_SLOT_BYTES;
    ct_record_measure(&record, bytes);
    if (position + record.slots > CT_RING_FIRST_SLOTS)
        abort();
    ct_record_put(to, &record);
    if (bytes > 0)
        memcpy(to + sizeof(record), payload, bytes);
    position += record.slots;
    ct_lane_publish(lane(), position);
}

/* ---- commands ---- */

static bool call(const uint64_t numbers[NUMBERS_MAX], char *rest)
{
    (void)rest;
    publish((struct ct_record){ .function = FUNCTION,
                                .kind = CT_KIND_CALL,
                                .end = numbers[0],
                                .span = ct_span(numbers[1], 0, 0) },
            NULL, 0);
    return true;
}

static bool open_call(const uint64_t numbers[NUMBERS_MAX], char *rest)
{
    (void)rest;
    ct_lane_enter(lane(), 0, FUNCTION, numbers[0]);
    return true;
}

static bool complete(const uint64_t numbers[NUMBERS_MAX], char *rest)
{
    (void)rest;
    atomic_store_explicit(&segment->complete, numbers[0], memory_order_release);
    return true;
}

static bool lose(const uint64_t numbers[NUMBERS_MAX], char *rest)
{
    (void)rest;
    struct ct_function *function = ct_segment_directory(segment) + FUNCTION;
    atomic_store(&function->lost_ticks, numbers[1]);
    atomic_store(&function->lost_calls, numbers[0]);
    ct_segment_note_drop(segment);
    atomic_store(&segment->unlaned[CT_UNLANED_MEMORY].first, numbers[2]);
    atomic_store(&segment->unlaned[CT_UNLANED_MEMORY].last, numbers[2]);
    atomic_store(&segment->unlaned[CT_UNLANED_MEMORY].calls, numbers[0]);
    return true;
}

static bool set_flags(const uint64_t numbers[NUMBERS_MAX], char *rest)
{
    (void)rest;
    atomic_fetch_or_explicit(&segment->flags, (uint32_t)numbers[0], memory_order_release);
    return true;
}

static bool define_function(const uint64_t numbers[NUMBERS_MAX], char *rest)
{
    struct ct_function *function = ct_segment_directory(segment) + segment->functions;
    if (strlen(rest) >= sizeof(function->name))
        return false;
    strcpy(function->name, rest);
    function->layer = (uint8_t)numbers[0];
    function->category = CT_CATEGORY_other;
    atomic_fetch_add_explicit(&segment->functions, 1, memory_order_release);
    return true;
}

/* Replaces hexadecimal digits with the bytes that they represent, followed by a NUL. Returns the number of
 * bytes. */
static size_t decode_hex(char *text)
{
    size_t bytes = 0;
    for (unsigned byte; sscanf(text + 2 * bytes, "%2x", &byte) == 1; bytes++)
        text[bytes] = (char)byte;
    text[bytes] = '\0';
    return bytes;
}

static bool record(const uint64_t numbers[NUMBERS_MAX], char *rest)
{
    publish((struct ct_record){ .kind = numbers[0] & CT_KIND_MASK,
                                .function = (uint16_t)numbers[1],
                                .end = numbers[2],
                                .span = ct_span(numbers[3], 0, 0),
                                .value = numbers[4] },
            rest, decode_hex(rest));
    return true;
}

static bool fields(const uint64_t numbers[NUMBERS_MAX], char *rest)
{
    struct ct_field field[CT_FIELDS_MAX] = { 0 };
    uint8_t payload[CT_FIELDS_BYTES_MAX];
    uint32_t count = 0;
    char *left;
    for (char *word = strtok_r(rest, " ", &left); word; word = strtok_r(NULL, " ", &left), count++) {
        char *type = strchr(word, '=');
        if (count == CT_FIELDS_MAX || !type)
            return false;
        *type++ = '\0';
        field[count].name = word;
        field[count].value = strtoull(type + 1, NULL, 10);
        field[count].type = *type == 'x' ? CT_FIELD_TEXT : *type == 's' ? CT_FIELD_SIGNED : CT_FIELD_UNSIGNED;
        if (*type == 'x' && type[1]) {
            decode_hex(type + 1);
            field[count].text = type + 1;
        }
    }
    const size_t bytes = ct_fields_write(payload, field, count);
    publish((struct ct_record){ .function = (uint16_t)numbers[0],
                                .kind = CT_KIND_FIELDS,
                                .end = numbers[1],
                                .span = ct_span(numbers[2], 0, 0) },
            payload, bytes);
    return bytes > 0;
}

static const struct {
    const char *name;
    int numbers;
    bool (*act)(const uint64_t numbers[NUMBERS_MAX], char *rest);
} steps[] = { { "call", 2, call },     { "open", 1, open_call },  { "complete", 1, complete },
              { "lose", 3, lose },     { "flags", 1, set_flags }, { "function", 1, define_function },
              { "fields", 3, fields }, { "record", 5, record } };

static bool act(char *line)
{
    line[strcspn(line, "\n")] = '\0';
    const size_t length = strcspn(line, " ");
    char *rest = line + length;
    for (size_t i = 0; i < sizeof(steps) / sizeof(steps[0]); i++) {
        uint64_t numbers[NUMBERS_MAX] = { 0 };
        if (strlen(steps[i].name) != length || strncmp(line, steps[i].name, length) != 0)
            continue;
        for (int n = 0; n < steps[i].numbers; n++)
            numbers[n] = strtoull(rest, &rest, 10);
        return steps[i].act(numbers, rest + strspn(rest, " "));
    }
    return false;
}

/* ---- the segment ---- */

/* Fills in the header with the data of the watched process. The probe's times are on CLOCK_MONOTONIC,
 * regardless of the session's clock. */
static void describe(char **arguments)
{
    *segment = made_segment(CT_RING_BYTES_MIN);
    segment->maker = arguments[6] ? (uint32_t)atoi(arguments[6]) : CT_MAKER_PROBE;
    segment->held = 1;
    segment->pid = atoi(arguments[3]);
    segment->uid = geteuid();
    segment->process_start = strtoull(arguments[4], NULL, 10);
    segment->exec_ns = strtoull(arguments[5], NULL, 10);
    segment->anchor = ct_anchor_read(1);
    segment->complete = segment->anchor.monotonic_ns;
    strcpy(segment->exe, "/watched");
    segment->lanes = 1;
    segment->functions = FUNCTION + 1;
    struct ct_function *functions = ct_segment_directory(segment);
    strcpy(functions[0].name, "(directory full)");
    strcpy(functions[FUNCTION].name, "cuWatched");
    publish((struct ct_record){ .kind = CT_KIND_THREAD, .value = (uint64_t)segment->pid },
            &(struct ct_thread_name){ .name = "watched" }, sizeof(struct ct_thread_name));
}

/* Creates the segment's file. The file has no name at first, so that the daemon never sees an incomplete
 * file. The lock on the file lasts until the program exits. */
static bool make(char **arguments)
{
    char path[CT_NAME_BYTES], link[64];
    const struct flock whole = { .l_type = F_WRLCK, .l_whence = SEEK_SET };
    const int fd = open(arguments[1], O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
    if (fd < 0 || ftruncate(fd, BYTES) != 0 || fcntl(fd, F_OFD_SETLK, &whole) != 0)
        return false;
    segment = mmap(NULL, BYTES, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if (segment == MAP_FAILED)
        return false;
    describe(arguments);
    snprintf(link, sizeof(link), "/proc/self/fd/%d", fd);
    ct_session_segment_path(path, arguments[1], geteuid(), arguments[2], false, segment->pid,
                            ct_monotonic_ns());
    return linkat(AT_FDCWD, link, AT_FDCWD, path, AT_SYMLINK_FOLLOW) == 0;
}

/* Increments the number of segments in the session's control segment, so that the daemon looks for the new
 * segment. */
static bool count(char **arguments)
{
    char path[CT_NAME_BYTES];
    ct_session_control_path(path, arguments[1], geteuid(), arguments[2]);
    const int fd = open(path, O_RDWR | O_CLOEXEC);
    struct ct_control *control =
        fd < 0 ? MAP_FAILED : mmap(NULL, sizeof(*control), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if (control == MAP_FAILED)
        return false;
    atomic_fetch_add_explicit(&control->segments, 1, memory_order_release);
    close(fd);
    return munmap(control, sizeof(*control)) == 0;
}

int main(int argc, char **argv)
{
    static char line[16384];
    if (argc < 6 || argc > 7 || !make(argv) || !count(argv)) {
        fputs("Usage: played_probe DIR SESSION PID START_TICKS IMAGE_NS [MAKER]\n", stderr);
        return EXIT_FAILURE;
    }
    do {
        puts("done");
        fflush(stdout);
    } while (fgets(line, sizeof(line), stdin) && act(line));
    return EXIT_SUCCESS;
}
