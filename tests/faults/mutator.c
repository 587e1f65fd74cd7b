/* Overwrites a live process's segment, or a made-up segment, while the daemon reads it. The program changes
 * cursors, lengths, numbers, strings and headers at random, and sometimes truncates the file. It writes to
 * FIFO when it starts, and exits after ROUNDS changes.
 *
 *   mutator SEGMENT SEED ROUNDS [FIFO] */
#include "lane.h"
#include "segment.h"

#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

static uint64_t state;

static uint64_t next_random(void)
{
    state ^= state << 13;
    state ^= state >> 7;
    state ^= state << 17;
    return state;
}

/* Picks a value to write. Prefers values near a limit or near the old value, which cause more failures than
 * random ones. */
static uint64_t next_value(uint64_t old)
{
    static const uint64_t known[] = { 0, 1, 255, UINT32_MAX, INT64_MAX, UINT64_C(1) << 63, UINT64_MAX, 4096 };
    switch (next_random() % 4) {
    case 0:
        return known[next_random() % (sizeof(known) / sizeof(known[0]))];
    case 1:
        return old + next_random() % 65 - 32;
    case 2:
        return old ^ UINT64_C(1) << next_random() % 64;
    default:
        return next_random();
    }
}

/* Runs on an access past the end of the file, which another process may truncate at any time. */
static void on_bus(int number)
{
    (void)number;
    _exit(EXIT_SUCCESS);
}

int main(int argc, char **argv)
{
    if (argc < 4) {
        fputs("Usage: mutator SEGMENT SEED ROUNDS [FIFO]\n", stderr);
        return 2;
    }
    state = strtoull(argv[2], NULL, 10) * UINT64_C(0x9e3779b97f4a7c15) + 1;
    const long rounds = strtol(argv[3], NULL, 10);
    signal(SIGBUS, on_bus);
    const int fd = open(argv[1], O_RDWR | O_CLOEXEC);
    struct stat status;
    if (fd < 0 || fstat(fd, &status) != 0 || status.st_size < (off_t)CT_LANE_OFFSET + CT_LANE_HEADER_BYTES) {
        perror(argv[1]);
        return EXIT_FAILURE;
    }
    uint8_t *map = mmap(NULL, (size_t)status.st_size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if (map == MAP_FAILED) {
        perror(argv[1]);
        return EXIT_FAILURE;
    }
    if (argc > 4) {
        const int fifo = open(argv[4], O_WRONLY);
        if (fifo < 0 || write(fifo, "x", 1) != 1)
            return EXIT_FAILURE;
        close(fifo);
    }
    const uint64_t places[] = { 0, CT_DIRECTORY_OFFSET, CT_LANE_OFFSET,
                                CT_LANE_OFFSET + CT_LANE_HEADER_BYTES };
    const uint64_t lengths[] = { sizeof(struct ct_segment), 64 * sizeof(struct ct_function),
                                 sizeof(struct ct_lane), CT_CHUNK_BYTES };
    for (long i = 0; i < rounds; i++) {
        const size_t part = next_random() % 4;
        const uint64_t offset = places[part] + (next_random() % lengths[part] & ~UINT64_C(7));
        if (offset + 8 > (uint64_t)status.st_size)
            continue;
        _Atomic uint64_t *word = (_Atomic uint64_t *)(void *)(map + offset);
        atomic_store_explicit(word, next_value(atomic_load(word)), memory_order_relaxed);
    }
    if (state % 8 == 0 && ftruncate(fd, (off_t)(next_random() % (uint64_t)status.st_size)) != 0)
        return EXIT_FAILURE;
    return EXIT_SUCCESS;
}
