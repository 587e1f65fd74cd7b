/* Calls every function whose signature is known, of the driver or of the runtime, twice (a first call takes
 * the hook's slow way, a second the short one), and prints what its entry point in the simulated library saw:
 * name, result, checksum of all arguments, misaligned. arguments.py compares the output with and without the
 * hook. */
#include ARGUMENTS_LIBRARY

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

/* At a fixed place, so that pointers are the same in every process. */
static uint8_t *const buffer = (uint8_t *)UINT64_C(0x200000000000);
enum { BUFFER_BYTES = 128 * 1024 };

static void report(const char *name, int64_t result)
{
    const char *seen = "";
    uint64_t checksum = 0;
    int misaligned = -1;
    /* The hook's own look-ups come behind the call. */
    unsigned int back = 0;
    while (back < SIMCUDA_PAST_CALLS && ARGUMENTS_PAST_CALL(back, &seen, &checksum, &misaligned) == 0 &&
           strcmp(seen, name) != 0)
        back++;
    if (strcmp(seen, name) != 0) {
        fprintf(stderr, "%s was called and %s was reached\n", name, seen);
        exit(EXIT_FAILURE);
    }
    printf("%s %lld %016llx %d\n", name, (long long)result, (unsigned long long)checksum, misaligned);
}

#include ARGUMENTS_CALLS

int main(void)
{
    if (mmap(buffer, BUFFER_BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE,
             -1, 0) != buffer) {
        perror("mmap");
        return EXIT_FAILURE;
    }
    call_all();
    call_all();
    return EXIT_SUCCESS;
}
