/* Calls every runtime function twice. The first call takes the hook's slow path, and the second call takes
 * the short path. For each call, prints what the entry point in the simulated library saw: the function's
 * name, its result, the checksum of all arguments, and whether the stack was misaligned. arguments_runtime.py
 * compares the output with and without the hook. */
#include "simcudart_past_call.h"

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

/* The buffer has a fixed address, so that pointers are the same in every process. */
static uint8_t *const buffer = (uint8_t *)UINT64_C(0x200000000000);
enum { BUFFER_BYTES = 128 * 1024 };

static void report(const char *name, int64_t result)
{
    const char *seen = "";
    uint64_t checksum = 0;
    int misaligned = -1;
    /* After the tested call, the hook may itself have called the driver to look something up. Skip such
     * calls. */
    unsigned int back = 0;
    while (back < SIMCUDA_PAST_CALLS && simcudart_past_call(back, &seen, &checksum, &misaligned) == 0 &&
           strcmp(seen, name) != 0)
        back++;
    if (strcmp(seen, name) != 0) {
        fprintf(stderr, "%s was called and %s was reached\n", name, seen);
        exit(EXIT_FAILURE);
    }
    printf("%s %lld %016llx %d\n", name, (long long)result, (unsigned long long)checksum, misaligned);
}

#define pointers      buffer
#define readable      buffer
#define NUMBER(wide)  (wide)
#define GUARDED(name) (name)
#include "arguments_calls_runtime.h"

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
