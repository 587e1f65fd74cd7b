#include "recorder.h"

#include "dump_buffer.h"
#include "log.h"
#include "own_file.h"
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
    int fd;         /* -1: it has ended */
    uint64_t bytes; /* written */
    bool is_new;    /* made by us: it goes again where nothing is recorded */
    struct ct_dump_header header;
    uint32_t
        epoch; /* counts what was taken back, from 1: threads that were told before have to be told again */
    struct ct_dump_buffer batch;
};

/* A file of ours may be written over if there is nothing in it, or a recording. */
static const char *refuse(int fd)
{
    uint64_t magic = 0;
    const ssize_t got = pread(fd, &magic, sizeof(magic), 0);
    return got == 0 || (got == sizeof(magic) && magic == CT_DUMP_MAGIC) ? NULL : "it is no recording";
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
    /* Neither a FIFO nor a link holds it up, or leads it elsewhere. */
    const int flags = O_RDWR | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY;
    recorder->fd = open(path, flags | O_CREAT | O_EXCL, 0600);
    recorder->is_new = recorder->fd >= 0;
    if (recorder->fd < 0 && errno == EEXIST)
        recorder->fd = open(path, flags);
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
        snprintf(message, CT_MESSAGE_BYTES, "cannot record to '%s': %s", path, reason);
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
        !write_all(recorder->fd, &recorder->header, sizeof(recorder->header))) {
        snprintf(message, CT_MESSAGE_BYTES, "cannot record to '%s': %s", recorder->path, strerror(errno));
        return -1;
    }
    recorder->bytes = sizeof(recorder->header);
    return 0;
}

void ct_recorder_destroy(struct ct_recorder *recorder)
{
    if (!recorder)
        return;
    if (recorder->is_new && recorder->bytes == 0)
        unlink(recorder->path);
    if (recorder->fd >= 0)
        close(recorder->fd);
    ct_dump_buffer_finish(&recorder->batch);
    free(recorder->path);
    free(recorder);
}

/* ---- batches ---- */

/* The batch in memory is not written, and nothing from here on. */
static void stop(struct ct_recorder *recorder, const char *reason)
{
    char name[CT_LOG_NAME_BYTES];
    if (ftruncate(recorder->fd, (off_t)recorder->bytes) != 0)
        reason = strerror(errno);
    close(recorder->fd);
    recorder->fd = -1;
    ct_dump_buffer_finish(&recorder->batch);
    ct_log(CT_LOG_recording_stopped, "the recording %s ends here: %s; the trace goes on",
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
        stop(recorder, "a batch is too large");
    } else if (!write_all(recorder->fd, frame, bytes)) {
        stop(recorder, strerror(errno));
    } else {
        recorder->bytes += bytes;
        recorder->batch.used = 0;
    }
}

/* ---- events ---- */

/* Adds an event. Returns the room for its tail; NULL where nothing is recorded. */
static uint8_t *add(struct ct_recorder *recorder, enum ct_dump_type type, const void *body, size_t body_bytes,
                    size_t tail_bytes)
{
    if (!recorder || recorder->fd < 0)
        return NULL;
    uint8_t *tail = ct_dump_add(&recorder->batch, type, body, body_bytes, tail_bytes);
    if (!tail)
        stop(recorder, "out of memory");
    return tail;
}

static void add_texts(struct ct_recorder *recorder, enum ct_dump_type type, const void *body,
                      size_t body_bytes, size_t count, const char *const *text)
{
    if (recorder && recorder->fd >= 0 &&
        !ct_dump_add_texts(&recorder->batch, type, body, body_bytes, count, text))
        stop(recorder, "out of memory");
}

void ct_recorder_process(struct ct_recorder *recorder, const struct ct_account *account,
                         const struct ct_process_facts *facts)
{
    const struct ct_dump_process body = {
        .process_id = account->process_id,
        .segment_id = account->segment_id,
        .start_ticks = facts->start_ticks,
        .image_ns = facts->image_ns,
        .started_ns = facts->started_ns,
        .absent_ns = facts->absent_ns,
        .changed_ns = facts->changed_ns,
        .pid = facts->pid,
        .uid = facts->uid,
    };
    const char *const text[] = { facts->exe, facts->cmdline, facts->segment };
    if (account->segment_id != 0)
        add_texts(recorder, CT_DUMP_PROCESS, &body, sizeof(body), 3, text);
}

void ct_recorder_function(struct ct_recorder *recorder, int64_t function_id,
                          const struct ct_function_name *name)
{
    const struct ct_dump_function body = { function_id };
    const char *const text[] = { name->layer, name->name, name->category };
    add_texts(recorder, CT_DUMP_FUNCTION, &body, sizeof(body), 3, text);
}

void ct_recorder_thread(struct ct_recorder *recorder, struct ct_caller *caller, const char *name)
{
    if (!recorder)
        return;
    const struct ct_dump_thread body = { caller->account->segment_id, caller->thread_id, caller->tid };
    add_texts(recorder, CT_DUMP_THREAD, &body, sizeof(body), 1, &name);
    caller->recorded = recorder->epoch;
}

/* Tells of a thread that an earlier recording, or a batch that was taken back, has told of. */
static void tell_thread(struct ct_recorder *recorder, struct ct_caller *caller)
{
    if (caller->thread_id != 0 && caller->recorded != recorder->epoch)
        ct_recorder_thread(recorder, caller, "");
}

void ct_recorder_call(struct ct_recorder *recorder, const struct ct_call *call)
{
    if (!recorder)
        return;
    struct ct_caller *caller = call->caller;
    tell_thread(recorder, caller);
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
    uint8_t *payload = add(recorder, ct_kind_is_call(call->kind) ? CT_DUMP_CALL : CT_DUMP_NOTE, &body,
                           sizeof(body), call->payload_bytes);
    if (payload)
        memcpy(payload, call->payload, call->payload_bytes);
}

void ct_recorder_lane(struct ct_recorder *recorder, struct ct_caller *caller, uint32_t lane,
                      uint64_t position)
{
    if (!recorder)
        return;
    tell_thread(recorder, caller);
    const struct ct_dump_lane body = { caller->account->segment_id, caller->thread_id, lane, position };
    add(recorder, CT_DUMP_LANE, &body, sizeof(body), 0);
}

void ct_recorder_loss(struct ct_recorder *recorder, const struct ct_account *account,
                      const struct ct_loss_facts *facts)
{
    const struct ct_dump_loss body = {
        account->segment_id, facts->lane,  facts->tenancy,  facts->tid,
        facts->cause,        facts->calls, facts->first_ns, facts->last_ns,
    };
    add(recorder, CT_DUMP_LOSS, &body, sizeof(body), 0);
}

void ct_recorder_unsent(struct ct_recorder *recorder, const struct ct_account *account, uint32_t entry,
                        int64_t function_id, const struct ct_unsent_facts *facts)
{
    const struct ct_dump_unsent body = {
        account->segment_id, function_id,       entry,
        facts->lost,         facts->lost_ns,    facts->lost_bytes,
        facts->skipped,      facts->skipped_ns, facts->skipped_bytes,
    };
    add(recorder, CT_DUMP_UNSENT, &body, sizeof(body), 0);
}

void ct_recorder_nothing_open(struct ct_recorder *recorder, const struct ct_account *account)
{
    const struct ct_dump_open body = { .segment_id = account->segment_id };
    add(recorder, CT_DUMP_NOTHING_OPEN, &body, sizeof(body), 0);
}

void ct_recorder_open(struct ct_recorder *recorder, struct ct_caller *caller, uint32_t depth,
                      int64_t function_id, uint64_t start_ns)
{
    if (!recorder)
        return;
    tell_thread(recorder, caller);
    const struct ct_dump_open body = { caller->account->segment_id, caller->thread_id, function_id, depth,
                                       start_ns };
    add(recorder, CT_DUMP_OPEN, &body, sizeof(body), 0);
}

void ct_recorder_end(struct ct_recorder *recorder, int64_t process_id, uint64_t ended_ns, const char *state)
{
    const struct ct_dump_end body = { process_id, ended_ns };
    add_texts(recorder, CT_DUMP_END, &body, sizeof(body), 1, &state);
}

void ct_recorder_meta(struct ct_recorder *recorder, const char *key, int64_t value)
{
    const struct ct_dump_meta body = { value };
    add_texts(recorder, CT_DUMP_META, &body, sizeof(body), 1, &key);
}
