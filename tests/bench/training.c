#include "training.h"

#include "../made_segment.h"
#include "lane.h"
#include "names.h"
#include "payload.h"
#include "record.h"

#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

enum { FUNCTIONS_MAX = 256, KERNELS = 60, STREAMS = 8, NAME_BYTES = 128 };

/* Name prefixes of functions whose records contain more than the function and the times. All other functions
 * have plain records. */
static const struct {
    const char *prefix;
    uint32_t category;
    uint8_t kind;
} decoded[] = {
    { "cuLaunchKernel", CT_CATEGORY_launch, CT_KIND_LAUNCH },
    { "cuGraphLaunch", CT_CATEGORY_graph, CT_KIND_GRAPH },
    { "cuMemset", CT_CATEGORY_set, CT_KIND_TRANSFER },
    { "cuMemcpy", CT_CATEGORY_copy, CT_KIND_TRANSFER },
    { "cuStreamIsCapturing", CT_CATEGORY_graph, CT_KIND_OBJECTS },
    { "cuStreamGetCaptureInfo", CT_CATEGORY_graph, CT_KIND_OBJECTS },
    { "cuStreamCreate", CT_CATEGORY_stream, CT_KIND_OBJECTS },
    { "cuStreamSynchronize", CT_CATEGORY_sync, CT_KIND_OBJECTS },
    { "cuEventCreate", CT_CATEGORY_event, CT_KIND_OBJECTS },
    { "cuMemAlloc", CT_CATEGORY_memory, CT_KIND_ALLOC },
};

static struct {
    char name[CT_FUNCTION_NAME_MAX + 1];
    uint32_t layer, category;
    uint64_t until; /* number of calls to this function and to all functions before it */
    uint8_t kind;
} functions[FUNCTIONS_MAX];
static uint32_t function_count;

static void die(const char *what)
{
    perror(what);
    exit(EXIT_FAILURE);
}

void training_read(const char *path)
{
    FILE *file = fopen(path, "re");
    char line[512], layer[16], name[CT_FUNCTION_NAME_MAX + 1];
    unsigned long long calls;
    uint64_t until = 0;
    if (!file)
        die(path);
    while (fgets(line, sizeof(line), file)) {
        if (line[0] == '#')
            continue;
        if (function_count == FUNCTIONS_MAX || sscanf(line, "%15s %71s %llu", layer, name, &calls) != 3) {
            fprintf(stderr, "%s: cannot use '%s'\n", path, line);
            exit(EXIT_FAILURE);
        }
        const bool is_ioctl = strcmp(layer, "ioctl") == 0;
        memcpy(functions[function_count].name, name, sizeof(name));
        functions[function_count].layer = is_ioctl ? CT_LAYER_IOCTL : CT_LAYER_DRIVER;
        functions[function_count].category = is_ioctl ? CT_CATEGORY_control : CT_CATEGORY_context;
        functions[function_count].kind = CT_KIND_CALL;
        for (size_t i = 0; i < sizeof(decoded) / sizeof(decoded[0]); i++) {
            if (strncmp(name, decoded[i].prefix, strlen(decoded[i].prefix)) == 0) {
                functions[function_count].category = decoded[i].category;
                functions[function_count].kind = decoded[i].kind;
            }
        }
        functions[function_count++].until = until += calls;
    }
    fclose(file);
}

static uint64_t random_state = 88172645463325252;
static uint32_t next_random(void)
{
    random_state ^= random_state << 13;
    random_state ^= random_state >> 7;
    random_state ^= random_state << 17;
    return (uint32_t)(random_state >> 32);
}

static uint32_t pick_function(void)
{
    const uint64_t at = next_random() % functions[function_count - 1].until;
    uint32_t i = 0;
    while (at >= functions[i].until)
        i++;
    return i;
}

/* Writes the record and the payload of one call. Returns the number of slots that they take. */
static uint32_t write_call(uint8_t *to, uint32_t f, uint64_t end_ns)
{
    struct ct_record record = { .kind = functions[f].kind & CT_KIND_MASK, .function = (f + 1) & UINT16_MAX };
    uint32_t duration = 50 + next_random() % 150;
    uint8_t payload[32] = { 0 };
    size_t payload_bytes = sizeof(payload);
    const uint64_t stream = UINT64_C(0x55d0c0a00000) + next_random() % STREAMS * 0x2c0;
    switch (record.kind) {
    case CT_KIND_LAUNCH: {
        /* Each kernel is launched with only a few different grid sizes. */
        const uint32_t kernel = 1 + next_random() % KERNELS;
        const struct ct_launch launch = { kernel, { kernel << next_random() % 4, 1, 1 }, { 256, 1, 1 }, 0 };
        memcpy(payload, &launch, sizeof(launch));
        record.value = stream;
        duration = 2500 + next_random() % 5000;
        break;
    }
    case CT_KIND_TRANSFER: {
        const struct ct_transfer transfer = {
            .stream = stream,
            .source = functions[f].category == CT_CATEGORY_set ? 0 : UINT64_C(0x7f1200000000) + next_random(),
            .destination = UINT64_C(0x7f0000000000) + next_random(),
            .transfer = functions[f].category == CT_CATEGORY_set ? CT_TRANSFER_SET : CT_TRANSFER_HTOD,
            .async = 1,
        };
        memcpy(payload, &transfer, sizeof(transfer));
        record.value = UINT64_C(4096) << next_random() % 8;
        duration = 1500 + next_random() % 8000;
        break;
    }
    case CT_KIND_ALLOC: {
        const struct ct_alloc alloc = { .address = UINT64_C(0x7f0000000000) + next_random() };
        memcpy(payload, &alloc, sizeof(alloc));
        record.value = UINT64_C(2) << 20;
        duration = 50000 + next_random() % 100000;
        break;
    }
    case CT_KIND_GRAPH: {
        const struct ct_graph_launch graph = { .exec = UINT64_C(0x55d0c0b00000), .kernel_nodes = 20 };
        memcpy(payload, &graph, sizeof(graph));
        record.value = stream;
        duration = 8000 + next_random() % 8000;
        break;
    }
    case CT_KIND_OBJECTS: {
        const struct ct_objects objects = { .handle = { stream }, .role = { CT_ROLE_stream } };
        memcpy(payload, &objects, sizeof(objects));
        break;
    }
    default:
        payload_bytes = 0;
        break;
    }
    record.end = end_ns;
    record.span = ct_span(duration, 0, 0);
    ct_record_measure(&record, payload_bytes);
    ct_record_put(to, &record);
    memcpy(to + sizeof(record), payload, payload_bytes);
    return record.slots;
}

/* Writes the records with the kernels' names, as the hook does before the first launch of a kernel. */
static uint64_t name_kernels(uint8_t *ring)
{
    uint64_t position = 0;
    for (uint32_t kernel = 1; kernel <= KERNELS; kernel++) {
        struct ct_record record = { .kind = CT_KIND_STRING, .value = kernel };
        ct_record_measure(&record, NAME_BYTES);
        uint8_t *to = ring + position * CT_SLOT_BYTES;
        ct_record_put(to, &record);
        snprintf((char *)to + sizeof(record), NAME_BYTES,
                 "_ZN2at6native29vectorized_elementwise_kernelILi%uEiEEvi", kernel);
        position += record.slots;
    }
    return position;
}

uint64_t training_write(const char *path, const struct training_segment *wanted)
{
    /* Make room for three slots per call, which is more than any lane needs. */
    uint64_t ring_bytes = CT_RING_BYTES_MIN;
    while (ring_bytes < (uint64_t)wanted->calls_per_lane * 3 * CT_SLOT_BYTES + 65536)
        ring_bytes *= 2;
    const struct ct_segment geometry = made_segment(ring_bytes);
    const uint64_t bytes = ct_segment_ring_offset(&geometry, wanted->lanes, ring_bytes);
    const int fd = open(path, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    if (fd < 0 || ftruncate(fd, (off_t)bytes) != 0)
        die(path);
    uint8_t *map = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if (map == MAP_FAILED)
        die("mmap");
    close(fd);
    static uint64_t segments; /* distinguishes processes with the same pid */
    struct ct_segment *segment = (struct ct_segment *)(void *)map;
    *segment = geometry;
    segment->exec_ns = wanted->first_ns + segments++;
    segment->anchor = (struct ct_anchor){ wanted->first_ns, wanted->first_ns, 0 };
    strcpy(segment->exe, "/usr/bin/python3");
    strcpy(segment->cmdline, "python3 train.py");
    segment->flags = CT_SEGMENT_EXITING;
    segment->lanes = wanted->lanes;
    segment->functions = function_count + 1;
    struct ct_function *directory = (struct ct_function *)(void *)(map + CT_DIRECTORY_OFFSET);
    for (uint32_t i = 0; i < function_count; i++) {
        memcpy(directory[i + 1].name, functions[i].name, strlen(functions[i].name) + 1);
        directory[i + 1].layer = (uint8_t)functions[i].layer;
        directory[i + 1].category = functions[i].category;
    }
    uint64_t last_ns = wanted->first_ns;
    for (uint32_t l = 0; l < wanted->lanes; l++) {
        struct ct_lane *lane = (struct ct_lane *)(void *)(map + ct_segment_lane_offset(segment, l));
        uint8_t *ring = map + ct_segment_ring_offset(segment, l, ring_bytes);
        uint64_t position = l == 0 ? name_kernels(ring) : 0, end_ns = wanted->first_ns + l;
        lane->tid = (uint32_t)getpid() + l;
        for (uint32_t c = 0; c < wanted->calls_per_lane; c++) {
            if (position + 4 > ring_bytes / CT_SLOT_BYTES) {
                fprintf(stderr, "the ring is too small for its calls\n");
                exit(EXIT_FAILURE);
            }
            end_ns += wanted->gap_ns / 2 + next_random() % wanted->gap_ns;
            position += write_call(ring + position * CT_SLOT_BYTES, pick_function(), end_ns);
        }
        /* Put all calls into the longest ring. Begin at its second lap, because position 0 belongs to the
         * shortest ring. */
        const uint64_t first = ring_bytes / CT_SLOT_BYTES;
        const uint32_t longest = ct_ring_count(l, first) - 1;
        ct_lane_switch(lane, longest, first);
        ct_lane_show(lane, longest, first + position);
        lane->tail = first;
        lane->state = (first + position) << 1;
        last_ns = end_ns > last_ns ? end_ns : last_ns;
    }
    munmap(map, bytes);
    return last_ns;
}
