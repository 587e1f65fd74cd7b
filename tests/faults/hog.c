/* A program that plays a user who takes up as many of the system daemon's resources as possible. The program
 * makes its own segments, and keeps filling them with data that the daemon must remember, look up or write.
 * It exits at the end of its standard input.
 *
 *   hog DIR SESSION KIND PROCESSES FIFO     each process writes a byte to FIFO once it has begun */
#include "../made_segment.h"
#include "clock.h"
#include "fields.h"
#include "session_names.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <unistd.h>

enum {
    PROCESSES_MAX = 2000,
    BURST = 1024,
    PAUSE_MS = 10,
    RECORD_SLOTS_MAX = 20, /* of the longest record that is made here */
};

struct hog {
    struct ct_segment *segment;
    uint64_t position; /* position in the first lane */
};

static uint64_t count; /* records made so far */

static struct ct_lane *lane_of(struct hog *hog, uint32_t lane)
{
    return (struct ct_lane *)(void *)((uint8_t *)hog->segment + ct_segment_lane_offset(hog->segment, lane));
}

/* ---- functions that fill in a record, with different contents each time ---- */

static void carry(struct ct_record *record, enum ct_kind kind, const void *payload, size_t bytes)
{
    record->kind = kind & CT_KIND_MASK;
    if (bytes > 0)
        memcpy(record + 1, payload, bytes);
    ct_record_measure(record, bytes);
}
static void function_called(struct ct_record *record)
{
    record->function = (uint16_t)(count % CT_FUNCTIONS_MAX);
}
static void status_returned(struct ct_record *record)
{
    record->status = (int32_t)(count % INT32_MAX);
    ct_record_measure(record, 0);
}
static void objects(struct ct_record *record)
{
    const struct ct_objects payload = { .handle = { count, count, count }, .role = { 1, 2, 3 } };
    carry(record, CT_KIND_OBJECTS, &payload, sizeof(payload));
}
static void shape(struct ct_record *record)
{
    const struct ct_launch payload = { .grid = { (uint32_t)count, 1, 1 }, .block = { 1, 1, 1 } };
    carry(record, CT_KIND_LAUNCH, &payload, sizeof(payload));
}
static void route(struct ct_record *record)
{
    const struct ct_transfer payload = { .stream = count, .transfer = CT_TRANSFER_HTOD };
    carry(record, CT_KIND_TRANSFER, &payload, sizeof(payload));
}
static void allocation(struct ct_record *record)
{
    const struct ct_alloc payload = { .address = 1 + count };
    carry(record, CT_KIND_ALLOC, &payload, sizeof(payload));
}
static void kernel(struct ct_record *record)
{
    char name[24];
    const int length = snprintf(name, sizeof(name), "_Z8k%08llxv", (unsigned long long)count & UINT32_MAX);
    record->value = count;
    carry(record, CT_KIND_STRING, name, (size_t)length + 1);
}
static void thread(struct ct_record *record)
{
    const struct ct_thread_name payload = { .name = "made up" };
    record->value = 1 + count % INT32_MAX;
    carry(record, CT_KIND_THREAD, &payload, sizeof(payload));
}
static void text(struct ct_record *record)
{
    struct {
        struct ct_range range;
        char message[20];
    } payload = { .range.message_bytes = sizeof(payload.message) };
    snprintf(payload.message, sizeof(payload.message), "%019llu", (unsigned long long)count);
    carry(record, CT_KIND_RANGE, &payload, sizeof(payload.range) + sizeof(payload.message));
}
/* The names of the fields are new in every record, so that each record has a new combination of names. */
static void fields(struct ct_record *record)
{
    char name[CT_FIELDS_MAX][CT_FIELD_NAME_MAX + 1];
    struct ct_field field[CT_FIELDS_MAX];
    uint8_t payload[CT_FIELDS_BYTES_MAX];
    for (unsigned i = 0; i < CT_FIELDS_MAX; i++) {
        snprintf(name[i], sizeof(name[i]), "f%u_%020llu", i % 10, (unsigned long long)count);
        field[i] = (struct ct_field){ .name = name[i], .value = count };
    }
    carry(record, CT_KIND_FIELDS, payload, ct_fields_write(payload, field, CT_FIELDS_MAX));
}
/* Each three records are a call, the call's correlation, and the call's GPU work. Each piece of work is on a
 * new stream. */
static void gpu_work(struct ct_record *record)
{
    const struct ct_gpu_work payload = { .kind = CT_GPU_KERNEL, .stream = (uint32_t)count };
    record->value = count % 3 == 0 ? 0 : count / 3;
    if (count % 3 == 1)
        carry(record, CT_KIND_CORRELATION, NULL, 0);
    else if (count % 3 == 2)
        carry(record, CT_KIND_GPU_WORK, &payload, sizeof(payload));
}
static void dropped_work(struct ct_record *record)
{
    const struct ct_gpu_work payload = { .kind = CT_GPU_DROPPED, .bytes = 1 };
    carry(record, CT_KIND_GPU_WORK, &payload, sizeof(payload));
}
static void late(struct ct_record *record)
{
    record->end = 1 + count;
}

/* ---- functions that write data other than records ---- */

static void names(struct hog *hog)
{
    struct ct_function *functions = ct_segment_directory(hog->segment);
    for (int i = 0; i < CT_FUNCTIONS_MAX; i++)
        snprintf(functions[i].name, CT_FUNCTION_NAME_MAX, "cuFake_%d_%llu", (int)getpid(),
                 (unsigned long long)count++);
    atomic_store(&hog->segment->functions, CT_FUNCTIONS_MAX);
}

/* Increments all counters of losses each time, so that the daemon always finds new values. */
static void losses(struct hog *hog)
{
    struct ct_function *functions = ct_segment_directory(hog->segment);
    for (int i = 0; i < CT_FUNCTIONS_MAX; i++)
        atomic_fetch_add(&functions[i].lost_calls, 1);
    ct_segment_note_drop(hog->segment);
    for (uint32_t i = 0; i < atomic_load(&hog->segment->lanes); i++) {
        struct ct_lane *lane = lane_of(hog, i);
        atomic_fetch_add(&lane->loss[CT_LOSS_FULL].calls, 1);
        for (uint32_t k = 0; k < CT_LANE_DROPS; k++) {
            lane->drops[k].key = ct_drop_key(k, CT_DROP_LOST);
            atomic_fetch_add(&lane->drops[k].calls, 1);
        }
    }
}

static void open_calls(struct hog *hog)
{
    for (uint32_t i = 0; i < atomic_load(&hog->segment->lanes); i++) {
        struct ct_lane *lane = lane_of(hog, i);
        for (uint32_t depth = 0; depth < CT_OPEN_MAX; depth++)
            atomic_store(&lane->open[depth].start, ++count);
        atomic_store(&lane->depth, CT_OPEN_MAX);
    }
}

static const struct kind {
    const char *name;
    uint32_t lanes;
    void (*begin)(struct hog *hog);
    void (*record)(struct ct_record *record);
    void (*act)(struct hog *hog);
} kinds[] = {
    { "lanes", CT_LANES_MAX, NULL, NULL, NULL },
    { "names", 1, names, NULL, NULL },
    { "functions", 1, names, function_called, NULL },
    { "statuses", 1, NULL, status_returned, NULL },
    { "objects", 1, NULL, objects, NULL },
    { "shapes", 1, NULL, shape, NULL },
    { "routes", 1, NULL, route, NULL },
    { "allocations", 1, NULL, allocation, NULL },
    { "kernels", 1, NULL, kernel, NULL },
    { "threads", 1, NULL, thread, NULL },
    { "texts", 1, NULL, text, NULL },
    { "fields", 1, NULL, fields, NULL },
    { "gpu_work", 1, NULL, gpu_work, NULL },
    { "dropped_work", 1, NULL, dropped_work, NULL },
    { "late", 1, NULL, late, NULL },
    { "losses", 64, names, NULL, losses },
    { "open", 64, NULL, NULL, open_calls },
};

static uint64_t start_ticks(void)
{
    char text_of[1024];
    FILE *file = fopen("/proc/self/stat", "r");
    const size_t n = file ? fread(text_of, 1, sizeof(text_of) - 1, file) : 0;
    if (file)
        fclose(file);
    text_of[n] = '\0';
    const char *field = strrchr(text_of, ')');
    for (int i = 0; field && i < 20; i++)
        field = strchr(field + 1, ' ');
    return field ? strtoull(field, NULL, 10) : 0;
}

static void make(struct hog *hog, const char *dir, const char *session, const struct kind *kind)
{
    const uint64_t now_ns = ct_monotonic_ns();
    const uint64_t bytes =
        CT_LANE_OFFSET + kind->lanes * (uint64_t)(CT_LANE_HEADER_BYTES + CT_RING_BYTES_MIN);
    char path[CT_NAME_BYTES], link[64];
    ct_session_segment_path(path, dir, geteuid(), session, true, getpid(), now_ns);
    const int fd = open(dir, O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
    if (fd < 0 || ftruncate(fd, (off_t)bytes) != 0)
        abort();
    hog->segment = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_NORESERVE, fd, 0);
    if (hog->segment == MAP_FAILED)
        abort();
    *hog->segment = made_segment(CT_RING_BYTES_MIN);
    hog->segment->uid = geteuid();
    hog->segment->process_start = start_ticks();
    hog->segment->exec_ns = now_ns;
    hog->segment->anchor = ct_anchor_read(1);
    strcpy(hog->segment->exe, "/hog");
    hog->segment->lanes = kind->lanes;
    hog->segment->functions = 1;
    strcpy(ct_segment_directory(hog->segment)->name, "cuHog");
    if (kind->begin)
        kind->begin(hog);
    snprintf(link, sizeof(link), "/proc/self/fd/%d", fd);
    if (linkat(AT_FDCWD, link, AT_FDCWD, path, AT_SYMLINK_FOLLOW) != 0)
        abort();
    close(fd);
}

/* Writes records until the ring is full, but at most BURST. */
static void fill(struct hog *hog, const struct kind *kind)
{
    enum { SLOTS = CT_RING_BYTES_MIN / CT_SLOT_BYTES };
    struct ct_lane *const lane = lane_of(hog, 0);
    uint8_t *const ring = (uint8_t *)lane + CT_LANE_HEADER_BYTES;
    for (int i = 0; i < BURST; i++) {
        const uint64_t room = SLOTS - (hog->position - ct_lane_tail(lane)),
                       to_wrap = SLOTS - hog->position % SLOTS;
        struct ct_record record[RECORD_SLOTS_MAX / CT_HEAD_SLOTS] = {
            { .end = ct_monotonic_ns(), .kind = CT_KIND_CALL, .slots = 1 }
        };
        if (room < RECORD_SLOTS_MAX)
            break;
        count++;
        kind->record(record);
        uint8_t *const to = ring + hog->position % SLOTS * CT_SLOT_BYTES;
        const uint32_t slots = record->slots > to_wrap ? (uint32_t)to_wrap : record->slots;
        if (record->slots > to_wrap) {
            const uint32_t filler = ct_head(0, CT_KIND_PAD, slots);
            memcpy(to, &filler, sizeof(filler));
        } else {
            ct_record_put(to, record);
            if (slots > CT_HEAD_SLOTS)
                memcpy(to + sizeof(*record), record + 1, (slots - CT_HEAD_SLOTS) * CT_SLOT_BYTES);
        }
        hog->position += slots;
        ct_lane_publish(lane, hog->position);
    }
}

int main(int argc, char **argv)
{
    const struct kind *kind = kinds;
    const struct kind *const end = kinds + sizeof(kinds) / sizeof(kinds[0]);
    while (argc == 6 && kind < end && strcmp(kind->name, argv[3]) != 0)
        kind++;
    const int processes = argc == 6 ? atoi(argv[4]) : 0;
    if (kind == end || processes < 1 || processes > PROCESSES_MAX) {
        fputs("Usage: hog DIR SESSION KIND PROCESSES FIFO\n", stderr);
        return 2;
    }
    for (int i = 1; i < processes && fork() != 0; i++)
        ;
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    struct hog hog = { 0 };
    make(&hog, argv[1], argv[2], kind);
    const int fifo = open(argv[5], O_WRONLY);
    if (fifo < 0 || write(fifo, "x", 1) != 1)
        return EXIT_FAILURE;
    close(fifo);
    struct pollfd input = { .fd = STDIN_FILENO, .events = POLLIN };
    while (poll(&input, 1, kind->record || kind->act ? PAUSE_MS : -1) == 0) {
        if (kind->record)
            fill(&hog, kind);
        if (kind->act)
            kind->act(&hog);
    }
    return EXIT_SUCCESS;
}
