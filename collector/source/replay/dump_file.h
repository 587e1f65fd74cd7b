/* Reads a recording from a file, or converts a trace in JSON lines to a recording. Returns only complete,
 * undamaged frames. Their contents must not be trusted. */
#ifndef CT_DUMP_FILE_H
#define CT_DUMP_FILE_H

#include "json_lines.h"
#include "message.h"

#include <stdbool.h>

struct ct_dump_file {
    char *path;
    int fd;
    uint64_t at;       /* offset after the frame */
    uint64_t frame_at; /* offset of the frame */
    struct ct_dump_header header;
    struct ct_dump_frame head;
    const uint8_t *events; /* of the current frame */
    uint8_t *frame;        /* buffer for the events */
    size_t capacity;
    uint64_t frames;                /* number of frames returned */
    char cut[CT_MESSAGE_BYTES];     /* why the data ends early; empty if it is complete */
    struct ct_dropped dropped;      /* lines or events that were not returned */
    struct ct_json_lines *lines;    /* the source of the frames; NULL: the file itself */
    char problem[CT_MESSAGE_BYTES]; /* why there is no further frame; empty at the regular end of the file */
};

/* Returns 0, or -1 with a sentence in `problem`. In either case, the caller must call ct_dump_close(). */
int ct_dump_open(struct ct_dump_file *file, const char *path);
/* Reads the next frame. Returns false if there is no further frame. */
bool ct_dump_next(struct ct_dump_file *file);
/* Rejects the current frame, because it contains an invalid event, and all following frames. */
void ct_dump_doubt(struct ct_dump_file *file);
void ct_dump_close(struct ct_dump_file *file);

/* An event within the current frame. The body has the size that the event's type requires, and the strings
 * end within the event. */
struct ct_dump_view {
    enum ct_dump_type type;
    const union ct_dump_body *body;
    const uint8_t *tail; /* payload */
    uint16_t tail_bytes;
    const char *text[CT_FACT_TEXTS]; /* or texts */
};

/* Reads the event at *at and advances to the next one. Returns false at the end of the frame. If the event is
 * invalid, also returns false, but leaves *at before the end of the frame. */
bool ct_dump_view(const struct ct_dump_file *file, size_t *at, struct ct_dump_view *view);

#endif
