/* Calls every driver function whose signature is known, twice (a first call takes the hook's slow way, a
 * second the short one), and prints what its entry point in the simulated driver saw: name, result, checksum
 * of all arguments, misaligned. arguments.py compares the output with and without the hook.
 *
 * Pointers lead into a buffer of zeros. With "wild" they lead nowhere, but for those that a decoder may
 * follow after a failure; with "nowhere" not even those. With "small" numbers are 1, so that counts are true.
 */
#include "simcuda_verify.h"

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

struct bytes8 {
    uint64_t word;
};
struct bytes64 {
    uint64_t words[8];
};

/* At a fixed place, so that pointers are the same in every process. */
static uint8_t *const buffer = (uint8_t *)UINT64_C(0x200000000000);
enum { BUFFER_BYTES = 128 * 1024 };

/* No program has memory here: the upper bits are neither all 0 nor all 1. */
static uint8_t *const nothing = (uint8_t *)UINT64_C(0x6b6b000000000000);

static uint8_t *pointers, *readable;
static bool small;

#define NUMBER(wide) (small ? 1 : (wide))

static void report(const char *name, int result)
{
    const char *seen = "";
    uint64_t checksum = 0;
    int misaligned = -1;
    /* The hook's own look-ups come behind the call. */
    unsigned int back = 0;
    while (back < SIMCUDA_PAST_CALLS && simcuda_past_call(back, &seen, &checksum, &misaligned) == 0 &&
           strcmp(seen, name) != 0)
        back++;
    if (strcmp(seen, name) != 0) {
        fprintf(stderr, "%s was called and %s was reached\n", name, seen);
        exit(EXIT_FAILURE);
    }
    printf("%s %d %016llx %d\n", name, result, (unsigned long long)checksum, misaligned);
}

#include "arguments_calls.h"

int main(int argc, char **argv)
{
    const char *mode = argc > 1 ? argv[1] : "";
    pointers = strcmp(mode, "wild") == 0 || strcmp(mode, "nowhere") == 0 ? nothing : buffer;
    readable = strcmp(mode, "nowhere") == 0 ? nothing : buffer;
    small = strcmp(mode, "small") == 0;
    if (mmap(buffer, BUFFER_BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE,
             -1, 0) != buffer) {
        perror("mmap");
        return EXIT_FAILURE;
    }
    call_all();
    call_all();
    return EXIT_SUCCESS;
}
