/* Calls every driver function twice. The first call takes the hook's slow path, and the second call takes the
 * short path. For each call, prints what the entry point in the simulated driver saw: the function's name,
 * its result, the checksum of all arguments, and whether the stack was misaligned. arguments_driver.py
 * compares the output with and without the hook, and between architectures. Finally, the program calls a
 * function that is missing from the hook's tables. That function saves all registers and stack words that can
 * carry arguments. After each call, the program checks that the callee-saved registers have been preserved.
 *
 * Pointer arguments point into a buffer of zeros. With the argument "wild", pointers are invalid unless a
 * decoder may follow them after a failed call. With "nowhere", all pointers are invalid. With "small", all
 * numbers are 1, so that every count is valid.
 */
#include "guard.h"
#include "simcuda_verify.h"

#include <dlfcn.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

/* The buffer has a fixed address, so that pointers are the same in every process. */
static uint8_t *const buffer = (uint8_t *)UINT64_C(0x200000000000);
enum { BUFFER_BYTES = 128 * 1024 };

struct guard guard = {
    .indirect = UINT64_C(0x08080808a5a50808),
};
static const char *const guard_names[GUARD_REGISTERS] = { GUARD_NAMES };

static void check_preserved(const char *name)
{
    for (int i = 0; i < GUARD_REGISTERS; i++) {
        if (guard.seen[i] != guard.wanted[i]) {
            fprintf(stderr, "%s: %s was %016llx and is %016llx\n", name, guard_names[i],
                    (unsigned long long)guard.wanted[i], (unsigned long long)guard.seen[i]);
            exit(EXIT_FAILURE);
        }
    }
    memset(guard.seen, 0, sizeof(guard.seen));
}
/* No program has memory at this address, because the address is not canonical: its upper bits are not all
 * equal. */
static uint8_t *const nothing = (uint8_t *)UINT64_C(0x6b6b000000000000);

static uint8_t *pointers, *readable;
static bool small;

#define NUMBER(wide) (small ? 1 : (wide))

static void report(const char *name, int result)
{
    check_preserved(name);
    const char *seen = "";
    uint64_t checksum = 0;
    int misaligned = -1;
    /* After the tested call, the hook may itself have called the driver to look something up. Skip such
     * calls. */
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

/* ---- a function that takes everything ---- */

#if defined(__x86_64__)
enum { REGISTERS = 6 };
#define MORE_TYPES
#define MORE_WORDS
#elif defined(__aarch64__)
enum { REGISTERS = 8 };
#define MORE_TYPES uint64_t, uint64_t,
#define MORE_WORDS WORD(22), WORD(23),
#endif
/* The number of stack words that the hook passes on for a function with an unknown signature. */
enum { STACK_WORDS = 16 };

typedef uint64_t vector __attribute__((vector_size(16)));
#define FOUR(x) x, x, x, x
typedef uint64_t takes_everything(FOUR(uint64_t), FOUR(uint64_t), FOUR(uint64_t), FOUR(uint64_t),
                                  FOUR(uint64_t), uint64_t, uint64_t, MORE_TYPES FOUR(vector), FOUR(vector));

#define WORD(i)       (UINT64_C(0x9e3779b97f4a7c15) * ((i) + 1))
#define WORDS(i)      WORD(i), WORD((i) + 1), WORD((i) + 2), WORD((i) + 3)
#define VECTOR_OF(i)  ((vector){ ~WORD(2 * (i)), ~WORD(2 * (i) + 1) })
#define VECTORS_OF(i) VECTOR_OF(i), VECTOR_OF((i) + 1), VECTOR_OF((i) + 2), VECTOR_OF((i) + 3)

static void check_word(const char *what, int i, uint64_t seen, uint64_t wanted)
{
    if (seen != wanted) {
        fprintf(stderr, "cuSimcudaRegisters: %s %d is %016llx and should be %016llx\n", what, i,
                (unsigned long long)seen, (unsigned long long)wanted);
        exit(EXIT_FAILURE);
    }
}

/* Calls the unknown function, which is looked up with the driver's own handle instead of RTLD_DEFAULT.
 * Without that handle, the hook would not know that the unknown name belongs to the driver. */
static void call_unknown(void)
{
    void *driver = dlopen("libcuda.so.1", RTLD_LAZY | RTLD_NOLOAD);
    takes_everything *function = (takes_everything *)(uintptr_t)dlsym(driver, "cuSimcudaRegisters");
    if (!function) {
        fprintf(stderr, "%s\n", dlerror());
        exit(EXIT_FAILURE);
    }
    const uint64_t result = GUARDED(*function)(WORDS(0), WORDS(4), WORDS(8), WORDS(12), WORDS(16), WORD(20),
                                               WORD(21), MORE_WORDS VECTORS_OF(0), VECTORS_OF(4));
    check_preserved("cuSimcudaRegisters");
    const struct simcuda_registers *seen = simcuda_registers();
    for (int i = 0; i < REGISTERS; i++)
        check_word("integer register", i, seen->integers[i], WORD((uint64_t)i));
    for (int i = 0; i < STACK_WORDS; i++)
        check_word("stack word", i, seen->stack_words[i], WORD((uint64_t)(REGISTERS + i)));
    for (int i = 0; i < 16; i++)
        check_word("half vector register", i, seen->vectors[i / 2][i % 2], ~WORD((uint64_t)i));
#ifdef __aarch64__
    check_word("x", 8, seen->indirect, guard.indirect);
#endif
    check_word("result", 0, result, SIMCUDA_REGISTERS_RESULT);
    printf("cuSimcudaRegisters %d 0 %d\n", (int)result, seen->stack % 16 != 0);
}

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
    for (int i = 0; i < GUARD_REGISTERS; i++)
        guard.wanted[i] = ~UINT64_C(0) / 255 * (uint64_t)(i + 1);
    for (int i = 0; i < 2; i++) {
        call_all();
        call_unknown();
    }
    return EXIT_SUCCESS;
}
