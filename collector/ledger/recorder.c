#include "recorder.h"

#include "dump_buffer.h"
#include "log.h"
#include "own_file.h"
#include "own_path.h"
#include "private_file.h"
#include "segment.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

struct ct_recorder {
    char *path;
    int fd;         /* -1: the recording has ended */
    uint64_t bytes; /* bytes written */
    bool is_new;    /* created by this process; removed if nothing is recorded */
    struct ct_dump_header header;
    uint32_t epoch; /* 1 + rollbacks so far; threads recorded in an earlier epoch are recorded again */
    struct ct_dump_buffer batch;
};

/* An existing file of this user is overwritten only if it is empty or contains a recording. */
static const char *refuse(int fd)
{
    uint64_t magic = 0;
    const ssize_t got = pread(fd, &magic, sizeof(magic), 0);
    return got == 0 || (got == sizeof(magic) && magic == CT_DUMP_MAGIC)
               ? NULL
               : "it exists and is not a recording; name another file with --record";
}

static bool write_all(int fd, const void *data, size_t bytes)
{
    for (const uint8_t *at = data; bytes > 0;) {
        const ssize_t n = write(fd, at, bytes);
        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0)
            return false;
        at += n;
        bytes -= (size_t)n;
    }
    return true;
}

int ct_recorder_create(const char *path, const char *session, struct ct_recorder **result,
                       char message[CT_MESSAGE_BYTES])
{
    struct ct_recorder *recorder = calloc(1, sizeof(*recorder));
    const char *reason = "out of memory";
    if (!recorder || !(recorder->path = strdup(path)))
        goto fail;
    recorder->epoch = 1;
    recorder->header = (struct ct_dump_header){ .magic = CT_DUMP_MAGIC,
                                                .version = CT_DUMP_VERSION,
                                                .record_version = CT_PROTO_VERSION };
    /* Do not block on a FIFO or follow a link. */
    const int flags = O_RDWR | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY;
    recorder->fd = ct_own_path_open(path, flags | O_CREAT | O_EXCL, 0600);
    recorder->is_new = recorder->fd >= 0;
    if (recorder->fd < 0 && errno == EEXIST)
        recorder->fd = ct_own_path_open(path, flags, 0);
    if (recorder->fd < 0 || ct_origin_here(&recorder->header.origin, session) != 0) {
        reason = strerror(errno);
        goto fail;
    }
    reason = NULL;
    if (ct_own_file_check(recorder->fd, path, message, CT_MESSAGE_BYTES) != 0 ||
        (reason = refuse(recorder->fd)) != NULL)
        goto fail;
    *result = recorder;
    return 0;

fail:
    if (reason)
        ct_message(message, "cannot record to '%s': %s", path, reason);
    ct_recorder_destroy(recorder);
    return -1;
}

int ct_recorder_begin(struct ct_recorder *recorder, char message[CT_MESSAGE_BYTES])
{
    if (!recorder)
        return 0;
    if (ct_private_own_fd(recorder->fd, recorder->path, &CT_PRIVATE, message, CT_MESSAGE_BYTES) != 0)
        return -1;
    if (ftruncate(recorder->fd, 0) != 0 ||
        !write_all(recorder->fd, &recorder->header, sizeof(recorder->header)))
        return ct_message(message, "cannot record to '%s': %s", recorder->path, strerror(errno));
    recorder->bytes = sizeof(recorder->header);
    return 0;
}

void ct_recorder_destroy(struct ct_recorder *recorder)
{
    if (!recorder)
        return;
    if (recorder->is_new && recorder->bytes == 0)
        ct_own_path_unlink(recorder->path);
    if (recorder->fd >= 0)
        close(recorder->fd);
    ct_dump_buffer_finish(&recorder->batch);
    free(recorder->path);
    free(recorder);
}

/* ---- batches ---- */

/* Ends the recording and discards the batch in memory. */
static void stop(struct ct_recorder *recorder, const char *reason)
{
    char name[CT_LOG_NAME_BYTES];
    if (ftruncate(recorder->fd, (off_t)recorder->bytes) != 0)
        reason = strerror(errno);
    close(recorder->fd);
    recorder->fd = -1;
    ct_dump_buffer_finish(&recorder->batch);
    ct_log(CT_LOG_recording_stopped, "cannot continue the recording %s: %s; the trace continues without it",
           ct_log_quote(name, recorder->path), reason);
}

void ct_recorder_forget(struct ct_recorder *recorder)
{
    if (!recorder)
        return;
    recorder->batch.used = 0;
    recorder->epoch++;
}

void ct_recorder_commit(struct ct_recorder *recorder, uint64_t until_ns)
{
    if (!recorder || recorder->fd < 0 || recorder->batch.used == 0)
        return;
    const struct ct_dump_frame *frame = ct_dump_seal(&recorder->batch, until_ns);
    const size_t bytes = sizeof(*frame) + frame->bytes;
    errno = 0;
    if (frame->bytes > CT_DUMP_FRAME_MAX) {
        char reason[96];
        snprintf(reason, sizeof(reason), "a batch of %llu bytes is larger than the maximum of %llu bytes",
                 (unsigned long long)frame->bytes, (unsigned long long)CT_DUMP_FRAME_MAX);
        stop(recorder, reason);
    } else if (!write_all(recorder->fd, frame, bytes)) {
        stop(recorder, strerror(errno));
    } else {
        recorder->bytes += bytes;
        recorder->batch.used = 0;
    }
}

/* ---- events ---- */

void ct_recorder_event(struct ct_recorder *recorder, enum ct_dump_type type, const void *body,
                       const char *const *text)
{
    if (recorder && recorder->fd >= 0 && !ct_dump_add_texts(&recorder->batch, type, body, text))
        stop(recorder, "out of memory");
}

void ct_recorder_thread(struct ct_recorder *recorder, struct ct_caller *caller, const char *name)
{
    if (!recorder || (!name && (caller->thread_id == 0 || caller->recorded == recorder->epoch)))
        return;
    const struct ct_dump_thread body = { caller->account->segment_id, caller->thread_id, caller->tid };
    ct_recorder_event(recorder, CT_DUMP_THREAD, &body, &(const char *){ name ? name : "" });
    caller->recorded = recorder->epoch;
}

void ct_recorder_call(struct ct_recorder *recorder, const struct ct_call *call)
{
    if (!recorder)
        return;
    struct ct_caller *caller = call->caller;
    ct_recorder_thread(recorder, caller, NULL);
    const struct ct_dump_call body = {
        .segment_id = caller->account->segment_id,
        .thread_id = caller->thread_id,
        .function_id = call->callee ? call->callee->function_id : 0,
        .end_ns = call->end_ns,
        .duration_ns = call->duration_ns,
        .value = call->value,
        .status = call->status,
        .kind = call->kind,
        .depth = call->depth,
        .flags = call->flags,
    };
    if (recorder->fd < 0)
        return;
    uint8_t *payload =
        ct_dump_add(&recorder->batch, ct_kind_is_call(call->kind) ? CT_DUMP_CALL : CT_DUMP_NOTE, &body,
                    call->payload_bytes);
    if (payload)
        memcpy(payload, call->payload, call->payload_bytes);
    else
        stop(recorder, "out of memory");
}

void ct_recorder_fact(struct ct_recorder *recorder, const struct ct_fact *fact)
{
    if (fact->caller)
        ct_recorder_thread(recorder, fact->caller, NULL);
    ct_recorder_event(recorder, (enum ct_dump_type)(CT_DUMP_LANE + fact->type), &fact->lane, fact->text);
}
