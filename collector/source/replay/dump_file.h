/* A recording as a file, or a trace in JSON lines, which is made into one: frames are read whole, and none is
 * given out that is not as it was written. Nothing that it says is believed beyond that. */
#ifndef CT_DUMP_FILE_H
#define CT_DUMP_FILE_H

#include "json_lines.h"
#include "message.h"

#include <stdbool.h>

struct ct_dump_file {
    char *path;
    int fd;
    uint64_t at; /* behind the frame */
    struct ct_dump_header header;
    struct ct_dump_frame head;
    const uint8_t *events; /* of the frame */
    uint8_t *frame;        /* room for them */
    size_t capacity;
    uint64_t frames;                /* so many were given out */
    const char *cut;                /* why the lines end too early, or NULL */
    struct ct_json_lines *lines;    /* where the frames come from; NULL: from the file as it is */
    char problem[CT_MESSAGE_BYTES]; /* why there is no further frame; empty at the end of the file */
};

/* 0, or -1 with a sentence in `problem`; to be closed then, too. */
int ct_dump_open(struct ct_dump_file *file, const char *path);
/* Reads the next frame; false when there is none. */
bool ct_dump_next(struct ct_dump_file *file);
/* The frame is not to be believed: nor is what follows. */
void ct_dump_doubt(struct ct_dump_file *file, const char *reason);
void ct_dump_close(struct ct_dump_file *file);

/* An event, within its frame: its body has the size of its type, and its texts end in it. */
struct ct_dump_view {
    enum ct_dump_type type;
    const union ct_dump_body *body;
    const uint8_t *tail; /* payload, */
    uint16_t tail_bytes;
    const char *text[3]; /* or texts */
};

/* The event at *at, which goes on to the next; false at the end of the frame, or where there is none
 * (*at is not the end then). */
bool ct_dump_view(const struct ct_dump_file *file, size_t *at, struct ct_dump_view *view);

#endif
