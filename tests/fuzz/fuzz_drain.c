/* Fuzzes the collector with a segment that changes while the collector reads it. The input is a script, which
 * lists batches and a producer's writes. The writes may be valid or invalid. A script can also schedule
 * writes for a batch's test points (proto/test_point.h), where the collector has checked a word but has not
 * used it yet. The target runs the real collector, which stores the segment's records in a real database.
 * After each batch, the sums in the database must match its rows, no number may be negative, and every string
 * must be valid. A second process writes only valid records, and all of its rows must be present and
 * unchanged.
 *
 * Each step of a script begins with a byte that contains its STEP_… value, followed by the fields of `struct
 * step`, little-endian. The last field is the number of data bytes that follow. make_corpus.py writes scripts
 * in this format. */
#include "../made_segment.h"
#include "batch.h"
#include "fuzz_store.h"
#include "names.h"
#include "shm_lane.h"
#include "shm_segment.h"
#include "shm_source.h"
#include "test_point.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

enum {
    STEP_RECORD,   /* lane, kind, slots, number: function, wide: value, more: span, time: since the previous
                    * record, data */
    STEP_PUBLISH,  /* lane, kind: announcing */
    STEP_FUNCTION, /* kind: layer, slots: category, data: name */
    STEP_BATCH,    /* kind: bit 0 open calls, bit 1 detach */
    STEP_POKE,     /* lane, number: index of the word, wide: value */
    STEP_RAW,      /* time: offset, data */
    STEP_CUT,      /* time: size */
    STEP_DIE,
    STEP_ARM, /* number: run the next step at this test point of the next batch */
    STEP_LANE,
    STEP_HEADER, /* number: offset, data; only before the segment is opened */
    STEP_REPLACE,
    STEPS
};

struct __attribute__((packed)) step {
    uint8_t lane, kind, slots;
    uint16_t number;
    int32_t status;
    uint32_t time;
    uint64_t wide, more;
    uint8_t bytes;
};

enum {
    LANES = 4,
    RING = CT_CHUNK_BYTES, /* the size of the ring that is written; the longer ring stays empty */
    LONGER = 2 * RING,
    FILE_BYTES = (int)CT_LANE_OFFSET + LANES * (CT_LANE_HEADER_BYTES + RING),
    HONEST_CALLS = 40,
    STEPS_MAX = 1000,
    ARMED_MAX = 8,
};

/* The producer's private state. */
struct producer {
    char path[CT_NAME_BYTES];
    int fd;
    uint8_t *map;
    struct ct_guard *guard;
    uint64_t position[LANES], end_ns;
};

static struct ct_collection collection;
static struct ct_control control;
static struct ct_report report;
static struct ct_shm shm;
static struct ct_shm_process *opened;
static struct producer hostile, honest;
static struct {
    uint32_t at;
    const uint8_t *step;
    size_t left;
} armed[ARMED_MAX];
static size_t armed_count;
static uint32_t points_passed;
static bool replaced;
static uint64_t told_at; /* 1 + the first lane's position when the process was told to detach, or 0 */

/* ---- the producer ---- */

static struct ct_segment *segment_of(const struct producer *producer)
{
    return (struct ct_segment *)(void *)producer->map;
}
static struct ct_lane *lane_of(const struct producer *producer, uint32_t lane)
{
    return (struct ct_lane *)(void *)(producer->map + CT_LANE_OFFSET +
                                      (uint64_t)(lane % LANES) * (CT_LANE_HEADER_BYTES + RING));
}
static struct ct_function *function_of(const struct producer *producer, uint32_t function)
{
    return (struct ct_function *)(void *)(producer->map + CT_DIRECTORY_OFFSET) + function % CT_FUNCTIONS_MAX;
}

static void make_segment(struct producer *producer, const char *name, int32_t pid)
{
    *producer = (struct producer){ .end_ns = ct_monotonic_ns() - UINT64_C(5000000000) };
    snprintf(producer->path, sizeof(producer->path), "%s/%s", fuzz_folder(), name);
    producer->fd = open(producer->path, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    if (producer->fd < 0 || ftruncate(producer->fd, FILE_BYTES) != 0)
        fuzz_fail(producer->path, "cannot be made");
    producer->map = mmap(NULL, FILE_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED, producer->fd, 0);
    /* Guard the mapping, because the script may truncate the file while the producer is still writing to
     * it. */
    producer->guard = ct_guard_add(producer->map, FILE_BYTES);
    if (producer->map == MAP_FAILED || !producer->guard)
        fuzz_fail(producer->path, "cannot be mapped");
    struct ct_segment *segment = segment_of(producer);
    *segment = made_segment(LONGER);
    segment->pid = pid;
    segment->exec_ns = 1;
    segment->anchor = (struct ct_anchor){ producer->end_ns, producer->end_ns, 0 };
    strcpy(segment->exe, "/bin/program");
    strcpy(segment->cmdline, "program --option");
    segment->lanes = segment->functions = 1;
    strcpy(function_of(producer, 0)->name, "(directory full)");
}

static void add_function(struct producer *producer, uint8_t layer, uint8_t category, const uint8_t *name,
                         size_t bytes)
{
    struct ct_segment *segment = segment_of(producer);
    struct ct_function *function = function_of(producer, segment->functions);
    memcpy(function->name, name, bytes < sizeof(function->name) ? bytes : sizeof(function->name));
    function->layer = layer;
    function->category = category;
    segment->functions++;
}

static void write_record(struct producer *producer, const struct step *step, const uint8_t *data)
{
    uint8_t *ring = (uint8_t *)lane_of(producer, step->lane) + CT_LANE_HEADER_BYTES;
    uint64_t *position = &producer->position[step->lane % LANES];
    producer->end_ns += step->time;
    const struct ct_record record = {
        .end = producer->end_ns,
        .span = step->more,
        .function = step->number,
        .kind = step->kind & CT_KIND_MASK,
        .slots = (step->slots | (step->kind & ~CT_KIND_MASK) << 2) & CT_SLOTS_MASK,
        .status = step->status,
        .value = step->wide,
    };
    uint8_t bytes[sizeof(record) + 256] = { 0 };
    ct_record_put(bytes, &record);
    memcpy(bytes + sizeof(record), data, step->bytes);
    for (size_t i = 0; i < sizeof(record) + step->bytes; i++)
        ring[(*position * CT_SLOT_BYTES + i) % RING] = bytes[i];
    *position += record.slots;
}

/* Writes to a word that is shared with the collector. The step contains the index of the word. */
static void poke(struct producer *producer, const struct step *step)
{
    struct ct_segment *segment = segment_of(producer);
    struct ct_lane *lane = lane_of(producer, step->lane);
    struct ct_function *function = function_of(producer, step->lane);
    struct ct_loss *loss = &lane->loss[step->kind % CT_LANE_LOSS_COUNT];
    struct ct_open *open = &lane->open[step->kind % CT_OPEN_MAX];
    struct ct_drop_count *drop = &lane->drops[step->kind % CT_LANE_DROPS];
#define WORD(of)                                                                                             \
    {                                                                                                        \
        (void *)(uintptr_t) & (of), sizeof(of)                                                               \
    }
    const struct {
        void *at;
        size_t bytes;
    } words[] = {
        WORD(lane->state),
        WORD(lane->tail),
        WORD(lane->depth),
        WORD(lane->tid),
        WORD(lane->tenancy),
        WORD(loss->calls),
        WORD(loss->first),
        WORD(loss->last),
        WORD(open->start),
        WORD(open->function),
        WORD(lane->wake),
        WORD(lane->loss_seen),
        WORD(function->lost_calls),
        WORD(function->lost_ticks),
        WORD(function->lost_bytes),
        WORD(function->skipped_calls),
        WORD(function->skipped_ticks),
        WORD(function->skipped_bytes),
        WORD(segment->functions),
        WORD(segment->lanes),
        WORD(segment->flags),
        WORD(segment->unlaned[CT_UNLANED_MEMORY].calls),
        WORD(segment->unlaned[CT_UNLANED_MEMORY].first),
        WORD(segment->selections),
        WORD(control.segments),
        WORD(lane->since[0]),
        WORD(lane->skipped),
        WORD(drop->key),
        WORD(drop->calls),
        WORD(drop->ticks),
        WORD(drop->bytes),
        WORD(lane->since[1]),
        WORD(lane->level),
        WORD(lane->upto),
        WORD(lane->ring_lock[1]),
        WORD(segment->complete),
    };
#undef WORD
    const size_t word = step->number % (sizeof(words) / sizeof(words[0]));
    memcpy(words[word].at, &step->wide, words[word].bytes); /* the low bytes of a little-endian word */
}

static void replace_file(const struct producer *producer)
{
    unlink(producer->path);
    const int fd = open(producer->path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    if (fd < 0 || write(fd, "precious", 8) != 8)
        fuzz_fail(producer->path, "cannot be replaced");
    close(fd);
    replaced = true;
}

/* ---- the database: the honest process's rows are intact ---- */

static void check_database(void)
{
    fuzz_store_check();
    fuzz_store_check_none("SELECT abs(count(*) - 40) + abs(ifnull(sum(duration_ns), 0) - 40000) FROM calls "
                          "WHERE process_id = 1");
    fuzz_store_check_none(
        "SELECT abs(sum(calls) - 40) + sum(lost) + sum(skipped) FROM totals WHERE process_id = 1");
    fuzz_store_check_none(
        "SELECT count(*) <> 1 FROM functions WHERE name = 'cuCtxGetCurrent' AND category = 'context'");
}

/* ---- batches ---- */

static void make_batch(uint8_t flags)
{
    report = (struct ct_report){ .rows_total = report.rows_total };
    const struct ct_request request = { .snapshot_open = flags & 1, .detach = flags & 2 };
    points_passed = 0;
    ct_batch_make(&collection, &request, &report);
    armed_count = 0;
    if (report.error[0])
        fuzz_fail("a batch failed", report.error);
    for (struct ct_shm_process *p = ct_shm_take_gone(&shm), *next; p; p = next) {
        next = p->next;
        if (p == opened)
            opened = NULL;
        ct_shm_close(p, true);
    }
    if (!opened || opened->lane_count == 0)
        return;
    for (uint32_t i = 0; i < opened->lane_count; i++) {
        if (opened->lanes[i]->read > opened->lanes[i]->head)
            fuzz_fail("more is taken", "than was published");
    }
    const uint64_t position = opened->lanes[0]->read;
    if (told_at == 0 && flags & 2)
        told_at = position + 1;
    if (told_at > 0 && position > told_at + 3 * ((RING + LONGER) / CT_SLOT_BYTES))
        fuzz_fail("it is read on and on", "after it was told to let go");
}

/* ---- the script ---- */

static void run_step(uint8_t number, const struct step *step, const uint8_t *data)
{
    switch (number) {
    case STEP_RECORD:
        write_record(&hostile, step, data);
        break;
    case STEP_PUBLISH:
        lane_of(&hostile, step->lane)->state = hostile.position[step->lane % LANES] << 1 | (step->kind & 1);
        break;
    case STEP_FUNCTION:
        add_function(&hostile, step->kind, step->slots, data, step->bytes);
        break;
    case STEP_POKE:
        poke(&hostile, step);
        break;
    case STEP_RAW:
        for (size_t i = 0; i < step->bytes; i++)
            hostile.map[(step->time + i) % FILE_BYTES] = data[i];
        break;
    case STEP_CUT:
        if (ftruncate(hostile.fd, step->time % FILE_BYTES) != 0)
            fuzz_fail("ftruncate", hostile.path);
        break;
    case STEP_DIE:
        if (opened)
            atomic_store(&opened->who.dead, true);
        break;
    case STEP_LANE:
        segment_of(&hostile)->lanes++;
        break;
    case STEP_REPLACE:
        replace_file(&hostile);
        break;
    default:
        break;
    }
}

/* Reads a step. Returns the number of bytes read, or 0 at the end of the input. */
static size_t read_step(const uint8_t *at, size_t left, uint8_t *number, struct step *step,
                        const uint8_t **data)
{
    if (left < 1 + sizeof(*step))
        return 0;
    *number = at[0] % STEPS;
    memcpy(step, at + 1, sizeof(*step));
    *data = at + 1 + sizeof(*step);
    if (step->bytes > left - 1 - sizeof(*step))
        step->bytes = (uint8_t)(left - 1 - sizeof(*step));
    return 1 + sizeof(*step) + step->bytes;
}

/* The collector calls this function at each of its test points. Runs the steps that the script has scheduled
 * for that test point. */
void ct_test_point(const char *name)
{
    if (strncmp(name, "lane.", 5) != 0 && strncmp(name, "process.", 8) != 0)
        return;
    points_passed++;
    for (size_t i = 0; i < armed_count; i++) {
        uint8_t number;
        struct step step;
        const uint8_t *data;
        if (armed[i].at == points_passed &&
            read_step(armed[i].step, armed[i].left, &number, &step, &data) > 0 && number != STEP_DIE)
            run_step(number, &step, data);
    }
}

static void write_honest(void)
{
    static const uint8_t name[] = "cuCtxGetCurrent";
    make_segment(&honest, "honest", getpid());
    add_function(&honest, CT_LAYER_DRIVER, CT_CATEGORY_context, name, sizeof(name));
    for (int i = 0; i < HONEST_CALLS; i++)
        write_record(
            &honest,
            &(struct step){ .kind = CT_KIND_CALL, .slots = 1, .number = 1, .time = 20000, .more = 1000 },
            name);
    lane_of(&honest, 0)->state = (uint64_t)HONEST_CALLS << 1;
}

static void forget_producer(struct producer *producer)
{
    unlink(producer->path);
    ct_guard_remove(producer->guard);
    munmap(producer->map, FILE_BYTES);
    close(producer->fd);
}

static void begin(void)
{
    const char *reason;
    ct_guard_install();
    control = (struct ct_control){ .clock = CT_CLOCK_MONOTONIC };
    collection = (struct ct_collection){ .sources = &shm.source };
    ct_shm_init(&shm, "/nowhere", &control);
    struct ct_shm_process *process;
    collection.ledger.store = fuzz_store_open();
    write_honest();
    if (ct_shm_open(honest.path, NULL, &process, &reason) != 0)
        fuzz_fail("the honest segment", reason);
    ct_shm_adopt(&shm, process);
    report = (struct ct_report){ 0 };
    make_batch(0);
    check_database();
}

static void end(void)
{
    /* Detach all processes, and make batches until no backlog is left. */
    make_batch(2);
    /* If a lane keeps announcing records, the collector waits for the lane only for a limited time. */
    const uint64_t began_ns = ct_monotonic_ns();
    for (int i = 0; report.backlog; i++) {
        if (i > 50 && ct_monotonic_ns() - began_ns > UINT64_C(3000000000))
            fuzz_fail("no end", "backlog");
        make_batch(1);
    }
    check_database();
    for (struct ct_shm_process *p = ct_shm_finish(&shm), *next; p; p = next) {
        next = p->next;
        ct_shm_close(p, true);
    }
    struct stat status;
    if (replaced && (lstat(hostile.path, &status) != 0 || status.st_size != 8))
        fuzz_fail("a file that was none of ours is gone", hostile.path);
    opened = NULL;
    ct_ledger_finish(&collection.ledger);
    fuzz_store_close(collection.ledger.store);
    forget_producer(&honest);
    forget_producer(&hostile);
}

int LLVMFuzzerTestOneInput(const uint8_t *input, size_t size);
int LLVMFuzzerTestOneInput(const uint8_t *input, size_t size)
{
    uint8_t number;
    struct step step;
    const uint8_t *data;
    const char *reason;
    size_t at = 0, n;
    int batches = 0;
    begin();
    make_segment(&hostile, "hostile", 1);
    replaced = false;
    told_at = 0;
    for (; (n = read_step(input + at, size - at, &number, &step, &data)) > 0 && number == STEP_HEADER;
         at += n) {
        for (size_t i = 0; i < step.bytes; i++)
            hostile.map[(step.number + i) % sizeof(struct ct_segment)] = data[i];
    }
    if (ct_shm_open(hostile.path, NULL, &opened, &reason) == 0)
        ct_shm_adopt(&shm, opened);
    else
        opened = NULL;
    for (int steps = 0;
         steps < STEPS_MAX && (n = read_step(input + at, size - at, &number, &step, &data)) > 0;
         steps++, at += n) {
        if (number == STEP_ARM && armed_count < ARMED_MAX) {
            armed[armed_count].at = step.number % 64 + 1;
            armed[armed_count].step = input + at + n;
            armed[armed_count++].left = size - at - n;
            uint8_t skipped;
            n += read_step(input + at + n, size - at - n, &skipped, &step, &data);
        } else if (number == STEP_BATCH && batches++ < 8) {
            make_batch(step.kind);
            check_database();
        } else {
            run_step(number, &step, data);
        }
    }
    armed_count = 0;
    make_batch(1);
    check_database();
    end();
    return 0;
}
