/* Replaces the daemon if no daemon is built, or if a test compares ticks. `recorder SESSION` serves the
 * session with the counter as clock, and prints a line when ready. With the argument `monotonic`, ticks are
 * nanoseconds. At the end of its input, the recorder prints one line for each recorded call, with the call's
 * function and status. It also prints the process's GPU state, and a line for each note, each string, and
 * each piece of GPU work. The recorder trusts the segments, because the test itself wrote them. The traced
 * processes must have exited before the recorder's input ends, and their rings must have had room for all
 * calls. Exits with 1 if a lane's times are out of order.
 */
#include "control.h"
#include "payload.h"
#include "segment.h"
#include "session_names.h"

#include <fcntl.h>
#include <glob.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

static void fail(const char *what)
{
    perror(what);
    exit(EXIT_FAILURE);
}

static void serve(const char *path, enum ct_clock_kind clock)
{
    const int fd = open(path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    struct flock whole = { .l_type = F_WRLCK, .l_whence = SEEK_SET };
    if (fd < 0 || fcntl(fd, F_OFD_SETLK, &whole) != 0 ||
        posix_fallocate(fd, 0, sizeof(struct ct_control)) != 0)
        fail(path);
    struct ct_control *control = mmap(NULL, sizeof(*control), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if (control == MAP_FAILED)
        fail(path);
    control->clock = clock;
    control->ring_bytes = CT_RING_BYTES_DEFAULT;
    control->daemon_pid = getpid();
    control->version = CT_PROTO_VERSION;
    control->bytes = sizeof(*control);
    control->magic = CT_CONTROL_MAGIC;
    /* Keep the descriptor open, because closing it would release the lock. */
}

static void print_note(const struct ct_record *record, const uint8_t *payload)
{
    struct ct_gpu_work work;
    if (record->kind == CT_KIND_CORRELATION)
        printf("correlation %llu\n", (unsigned long long)record->value);
    if (record->kind == CT_KIND_STRING)
        printf("string %llu %s\n", (unsigned long long)record->value, (const char *)payload);
    if (record->kind != CT_KIND_GPU_WORK)
        return;
    memcpy(&work, payload, sizeof(work));
    printf("gpu %u %llu %llu %llu %llu %u %u %u %u %llu %u %u\n", work.kind,
           (unsigned long long)record->value, (unsigned long long)ct_record_start(record),
           (unsigned long long)record->end, (unsigned long long)work.bytes, work.copy_kind, work.device,
           work.context, work.stream, (unsigned long long)work.graph_node, work.graph, work.kernel);
}

/* Prints a lane's calls. Returns false if a call is still open, or began before the previous one returned. */
static bool print_lane(const struct ct_segment *segment, const uint8_t *map, uint32_t index)
{
    const struct ct_function *functions =
        (const struct ct_function *)(const void *)(map + CT_DIRECTORY_OFFSET);
    uint8_t *at = (uint8_t *)map + ct_segment_lane_offset(segment, index);
    struct ct_lane *lane = (struct ct_lane *)(void *)at;
    const uint64_t most = segment->ring_bytes / CT_SLOT_BYTES;
    uint64_t since[CT_RINGS];
    ct_lane_since(lane, since);
    const uint64_t head = ct_lane_state(lane).position;
    uint64_t last = 0;
    bool ordered = ct_lane_depth(lane) == 0;
    for (uint64_t position = 0; position < head;) {
        uint64_t until;
        const uint32_t level = ct_ring_at(since, CT_RINGS, position, &until);
        const uint64_t slots = ct_ring_slots(index, level, most);
        const uint8_t *ring = level == 0
                                  ? at + CT_LANE_HEADER_BYTES
                                  : map + ct_segment_ring_offset(segment, index, slots * CT_SLOT_BYTES);
        const uint8_t *slot = ring + (position & (slots - 1)) * CT_SLOT_BYTES;
        const struct ct_record record = ct_record_get(slot);
        position += record.slots;
        if (!ct_kind_is_call(record.kind)) {
            print_note(&record, slot + sizeof(record));
            continue;
        }
        printf("%s %d\n", functions[record.function].name, record.status);
        const uint64_t ticks = ct_span_ticks(record.span);
        ordered = ordered && record.slots > 0 && record.end >= last && ticks <= record.end - last;
        last = record.end;
    }
    return ordered;
}

static bool print_segment(const char *path)
{
    const int fd = open(path, O_RDWR | O_CLOEXEC);
    struct stat status;
    if (fd < 0 || fstat(fd, &status) != 0)
        fail(path);
    uint8_t *segment = mmap(NULL, (size_t)status.st_size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if (segment == MAP_FAILED)
        fail(path);
    const struct ct_segment *header = (const struct ct_segment *)(void *)segment;
    bool ordered = true;
    const uint32_t gpu = atomic_load(&header->gpu);
    if (gpu)
        printf("state %u %u %s\n", gpu & 255, gpu >> 8, header->gpu_holder);
    for (uint32_t i = 0; i < atomic_load(&header->lanes); i++)
        ordered &= print_lane(header, segment, i);
    return ordered;
}

int main(int argc, char **argv)
{
    const bool is_monotonic = argc == 3 && strcmp(argv[2], "monotonic") == 0;
    const bool is_counter = argc == 2 || (argc == 3 && strcmp(argv[2], "counter") == 0);
    if ((!is_counter && !is_monotonic) || !ct_session_valid(argv[1])) {
        fprintf(stderr, "Usage: recorder SESSION [counter | monotonic]\n");
        return 2;
    }
    char path[CT_NAME_BYTES], pattern[CT_NAME_BYTES + 8];
    ct_session_control_path(path, CT_SHM_DIR, ct_session_uid(), argv[1]);
    serve(path, is_monotonic ? CT_CLOCK_MONOTONIC : CT_CLOCK_COUNTER);
    puts("ready");
    fflush(stdout);
    while (getchar() != EOF)
        ;
    snprintf(pattern, sizeof(pattern), "%s.*", path);
    glob_t found;
    bool ordered = true;
    if (glob(pattern, 0, NULL, &found) == 0) {
        for (size_t i = 0; i < found.gl_pathc; i++) {
            ordered &= print_segment(found.gl_pathv[i]);
            unlink(found.gl_pathv[i]);
        }
        globfree(&found);
    }
    unlink(path);
    if (!ordered)
        fprintf(stderr, "the times of a lane do not follow each other\n");
    return ordered ? EXIT_SUCCESS : EXIT_FAILURE;
}
