#include "dump_file.h"

#include "chrome_trace.h"
#include "file_form.h"
#include "segment.h"
#include "unpack.h"

#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static int fail(struct ct_dump_file *file, const char *what)
{
    return ct_message(file->problem, "'%s' %s", file->path ? file->path : "", what);
}

/* Returns the number of bytes read, or -1 on error. */
static ssize_t read_at(const struct ct_dump_file *file, void *to, size_t bytes)
{
    size_t got = 0;
    while (got < bytes) {
        const ssize_t n = pread(file->fd, (uint8_t *)to + got, bytes - got, (off_t)(file->at + got));
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return -1;
        if (n == 0)
            break;
        got += (size_t)n;
    }
    return (ssize_t)got;
}

static int fail_form(struct ct_dump_file *file, ssize_t got)
{
    const unsigned char *byte = (const unsigned char *)&file->header;
    char text[512], hex[16] = "";
    for (int i = 0; i < 4 && i < got; i++)
        snprintf(hex + strlen(hex), sizeof(hex) - strlen(hex), " %02x", byte[i]);
    snprintf(text, sizeof(text),
             "has an unknown format (first bytes:%s): expected a recording (cudatraced --record), JSON lines "
             "(cudatrace export --format jsonl) or a Chrome trace; each may be compressed by gzip",
             hex);
    return fail(file, text);
}

static int check_header(struct ct_dump_file *file, ssize_t got)
{
    const struct ct_dump_header *header = &file->header;
    char text[192];
    if (got < 0)
        return ct_message(file->problem, "cannot read '%s': %s", file->path, strerror(errno));
    if (got == 0)
        return fail(file, "is empty: there is nothing to store");
    if ((size_t)got < sizeof(header->magic) || header->magic != CT_DUMP_MAGIC)
        return fail_form(file, got);
    if ((size_t)got < sizeof(*header)) {
        snprintf(text, sizeof(text),
                 "is truncated after %zd of the %zu bytes of its header: there is nothing to store", got,
                 sizeof(*header));
        return fail(file, text);
    }
    if (header->version != CT_DUMP_VERSION || header->record_version != CT_PROTO_VERSION) {
        snprintf(text, sizeof(text),
                 "is a recording of another version of cudatrace (format %llu.%llu, expected %llu.%llu): "
                 "store it with that version",
                 (unsigned long long)header->version, (unsigned long long)header->record_version,
                 (unsigned long long)CT_DUMP_VERSION, (unsigned long long)CT_PROTO_VERSION);
        return fail(file, text);
    }
    const struct ct_origin *origin = &header->origin;
    const bool good = memchr(origin->session, '\0', sizeof(origin->session)) &&
                      memchr(origin->boot_id, '\0', sizeof(origin->boot_id)) &&
                      memchr(origin->host, '\0', sizeof(origin->host));
    return good ? 0 : fail(file, "is damaged: a name in its header has no end");
}

static int open_unpacked(struct ct_dump_file *file)
{
    const int fd = ct_unpack(file->fd, file->cut, sizeof(file->cut));
    if (fd < 0)
        return fail(file, file->cut);
    close(file->fd);
    file->fd = fd;
    return 0;
}

static int open_lines(struct ct_dump_file *file, int64_t from, bool is_converted)
{
    file->lines = ct_json_lines_open(file->fd, from, is_converted, &file->dropped);
    file->fd = file->lines ? -1 : file->fd;
    return file->lines ? 0 : fail(file, "cannot be read: out of memory");
}

static int open_chrome(struct ct_dump_file *file, int64_t from)
{
    char why[sizeof(file->cut)];
    file->dropped.noun = "event";
    const int fd = ct_chrome_lines(file->fd, from, &file->dropped, why, sizeof(why));
    if (fd < 0)
        return fail(file, why);
    if (!*file->cut) /* the decompression's reason explains why the document is truncated */
        memcpy(file->cut, why, sizeof(why));
    close(file->fd);
    file->fd = fd;
    return open_lines(file, 0, true);
}

static int open_recording(struct ct_dump_file *file)
{
    const ssize_t got = read_at(file, &file->header, sizeof(file->header));
    file->at = sizeof(file->header);
    return check_header(file, got);
}

int ct_dump_open(struct ct_dump_file *file, const char *path)
{
    struct stat status;
    *file = (struct ct_dump_file){ .path = strdup(path), .fd = -1 };
    if (!file->path)
        return fail(file, "out of memory");
    /* Do not block on a FIFO. */
    file->fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
    if (file->fd < 0 || fstat(file->fd, &status) != 0)
        return ct_message(file->problem, "cannot read '%s': %s", path, strerror(errno));
    if (!S_ISREG(status.st_mode))
        return fail(file, "is not a regular file");
    if (ct_is_packed(file->fd) && open_unpacked(file) != 0)
        return -1;
    int64_t from = 0;
    const char *name = "cannot be read: out of memory";
    switch (ct_file_form(file->fd, &from, &name)) {
    case CT_FORM_LINES:
        return open_lines(file, from, false);
    case CT_FORM_CHROME:
        return open_chrome(file, from);
    case CT_FORM_UNKNOWN:
        return open_recording(file);
    default:
        return fail(file, name);
    }
}

static bool end(struct ct_dump_file *file, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* Records the reason why no further frame can be read. Always returns false. */
static bool end(struct ct_dump_file *file, const char *format, ...)
{
    char reason[512], text[600];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(reason, sizeof(reason), format, arguments);
    va_end(arguments);
    snprintf(text, sizeof(text), "%s; %s", reason,
             file->frames > 0 ? "all calls before that point are stored" : "no calls are stored");
    fail(file, text);
    return false;
}

void ct_dump_doubt(struct ct_dump_file *file)
{
    file->frames--;
    if (file->lines)
        end(file, "contains an invalid call");
    else
        end(file, "is damaged: the batch at byte %llu contains an invalid event",
            (unsigned long long)file->frame_at);
}

static bool next_lines(struct ct_dump_file *file)
{
    char problem[CT_DROPPED_BYTES + 128] = "", dropped[CT_DROPPED_BYTES + 64] = "";
    const struct ct_dump_frame *frame = ct_json_lines_next(file->lines, problem, sizeof(problem));
    file->frames += frame != NULL;
    if (*problem || (!frame && *file->cut))
        end(file, "%s", *problem ? problem : file->cut);
    else if (!frame && file->frames == 0 && file->dropped.kinds > 0) {
        ct_dropped_text(&file->dropped, 0, dropped, sizeof(dropped));
        end(file, "contains nothing that can be stored: %s", dropped);
    }
    if (!frame)
        return false;
    file->head = *frame;
    file->events = (const uint8_t *)(frame + 1);
    return true;
}

bool ct_dump_next(struct ct_dump_file *file)
{
    if (file->problem[0])
        return false;
    if (file->lines)
        return next_lines(file);
    const ssize_t got = read_at(file, &file->head, sizeof(file->head));
    const unsigned long long frame_at = file->frame_at = file->at;
    if (got == 0)
        return *file->cut ? end(file, "%s", file->cut) : false;
    const struct ct_dump_frame *head = &file->head;
    const bool whole = got == sizeof(*head);
    if (whole &&
        (head->magic != CT_DUMP_FRAME_MAGIC || head->bytes % 8 != 0 || head->bytes > CT_DUMP_FRAME_MAX))
        return end(file, "is damaged: expected the beginning of a batch at byte %llu", frame_at);
    struct stat status;
    file->at += sizeof(*head);
    if (!whole || fstat(file->fd, &status) != 0 || (uint64_t)status.st_size < file->at + head->bytes)
        return end(file, "is truncated in the batch at byte %llu", frame_at);
    if (head->bytes > file->capacity) {
        uint8_t *frame = realloc(file->frame, head->bytes);
        if (!frame)
            return end(file, "cannot be read: out of memory for the batch of %llu bytes at byte %llu",
                       (unsigned long long)head->bytes, frame_at);
        file->frame = frame;
        file->capacity = head->bytes;
    }
    if (read_at(file, file->frame, head->bytes) != (ssize_t)head->bytes ||
        ct_dump_hash(file->frame, head->bytes) != head->hash)
        return end(file, "is damaged: the batch at byte %llu does not match its checksum", frame_at);
    file->at += head->bytes;
    file->frames++;
    file->events = file->frame;
    return true;
}

void ct_dump_close(struct ct_dump_file *file)
{
    ct_json_lines_close(file->lines);
    if (file->fd >= 0)
        close(file->fd);
    free(file->frame);
    free(file->path);
    *file = (struct ct_dump_file){ .fd = -1 };
}

bool ct_dump_view(const struct ct_dump_file *file, size_t *at, struct ct_dump_view *view)
{
    struct ct_dump_event event;
    const size_t left = file->head.bytes - *at;
    if (left < sizeof(event))
        return false;
    memcpy(&event, file->events + *at, sizeof(event));
    if (event.type >= CT_DUMP_TYPES || event.bytes % 8 != 0 || event.bytes > CT_DUMP_EVENT_MAX ||
        event.bytes > left - sizeof(event) ||
        ct_dump_shapes[event.type].body_bytes + (size_t)event.tail_bytes > event.bytes)
        return false;
    const uint8_t *body = file->events + *at + sizeof(event);
    *view = (struct ct_dump_view){
        .type = (enum ct_dump_type)event.type,
        .body = (const union ct_dump_body *)(const void *)body,
        .tail = body + ct_dump_shapes[event.type].body_bytes,
        .tail_bytes = event.tail_bytes,
    };
    const uint8_t *text = view->tail, *end = view->tail + event.tail_bytes;
    for (int i = 0; i < ct_dump_shapes[event.type].texts; i++) {
        const uint8_t *nul = memchr(text, '\0', (size_t)(end - text));
        if (!nul)
            return false;
        view->text[i] = (const char *)text;
        text = nul + 1;
    }
    *at += sizeof(event) + event.bytes;
    return true;
}
