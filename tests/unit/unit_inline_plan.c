/* Applies plans in this process. Functions that are written in assembly must receive the expected verdicts.
 * Other functions come from several compilers, from zlib, and from the simulated driver. Each call through a
 * slot is counted, and returns the same result as before the plan was applied. After the patches have been
 * undone, the code is the same as before. */
#include "../ensure.h"
#include "inline_plan.h"
#include "patched_library.h"

#include <signal.h>
#include <ucontext.h>
#include <zlib.h>

static bool want_all(const char *name)
{
    (void)name;
    return true;
}

/* ---- calls ---- */

typedef uint64_t any_function(uint64_t a, uint64_t b, uint64_t c, uint64_t d, uint64_t e, uint64_t f,
                              double p, double q, double r, double s, double t, double u, double v, double w,
                              uint64_t g, uint64_t h, uint64_t i, uint64_t j);

/* Returns the sum of the function's results for arguments that are different in each register and on the
 * stack. */
static uint64_t call(any_function *function, uint64_t *calls)
{
    uint64_t sum = 0;
    for (uint64_t n = 0; n < 40; n++) {
        sum = sum * 31 + function(n % 10, 2 * n + 1, 3 * n, n << 20, n ^ 5, n * n, (double)n, 2.5, 3.25,
                                  (double)n * 1.5, 5, 6, 7.75, 8, n + 100, n + 200, n * 300, n ^ 400);
        (*calls)++;
    }
    return sum;
}

/* ---- a thread inside a patch ---- */

/* The address where the single-step handler stops a call, and the address where the call then continues. */
static struct {
    uint64_t at, to;
    bool has_moved;
} moving;

enum { FLAG_TRAP = 0x100 };

static void on_step(int number, siginfo_t *info, void *data)
{
    greg_t *registers = ((ucontext_t *)data)->uc_mcontext.gregs;
    (void)number, (void)info;
    if ((uint64_t)registers[REG_RIP] != moving.at)
        return;
    registers[REG_RIP] = (greg_t)moving.to;
    registers[REG_EFL] &= ~FLAG_TRAP;
    moving.has_moved = true;
}

static void set_trap(bool is_on)
{
    if (is_on)
        __asm__ volatile(
            "leaq -128(%%rsp), %%rsp; pushfq; orl $0x100, (%%rsp); popfq; leaq 128(%%rsp), %%rsp" ::
                : "memory", "cc");
    else
        __asm__ volatile(
            "leaq -128(%%rsp), %%rsp; pushfq; andl $~0x100, (%%rsp); popfq; leaq 128(%%rsp), %%rsp" ::
                : "memory", "cc");
}

/* Calls the function, stops before the instruction that is `behind` bytes into the patch, and continues at
 * the moved copy of that instruction. */
static uint64_t call_and_move(any_function *function, const struct ct_inline_patch *patch, int behind)
{
    uint64_t sum = 0;
    moving.at = patch->address + (uint64_t)behind;
    moving.to = patch->moved_to[behind];
    for (uint64_t n = 0; n < 40; n++) {
        moving.has_moved = false;
        set_trap(true);
        const uint64_t result =
            function(n % 10, 2 * n + 1, 3 * n, n << 20, n ^ 5, n * n, (double)n, 2.5, 3.25, (double)n * 1.5,
                     5, 6, 7.75, 8, n + 100, n + 200, n * 300, n ^ 400);
        set_trap(false);
        ENSURE(moving.has_moved);
        sum = sum * 31 + result;
    }
    return sum;
}

/* Moves calls from every place inside the patch. Returns the number of places that were tried. */
static int move_from_everywhere(const struct patched *library, const char *name, uint64_t expected)
{
    const struct sigaction step = { .sa_sigaction = on_step, .sa_flags = SA_SIGINFO };
    struct sigaction before;
    const uint64_t address = (uintptr_t)patched_function(library, name);
    int tried = 0;
    uint32_t i = 0;
    while (library->plan.slots[i].export != address)
        i++;
    ENSURE(sigaction(SIGTRAP, &step, &before) == 0);
    for (int behind = 1; behind < CT_INLINE_JUMP_BYTES; behind++) {
        if (library->plan.patches[i].moved_to[behind] == 0)
            continue;
        ENSURE(call_and_move(patched_function(library, name), &library->plan.patches[i], behind) == expected);
        tried++;
    }
    ENSURE(sigaction(SIGTRAP, &before, NULL) == 0);
    return tried;
}

/* ---- functions written in assembly ---- */

enum { NOT_CALLED = 1, CALLS_ITSELF = 2 };
static const struct expected {
    const char *name;
    enum ct_inline_verdict verdict;
    int flags;
} by_hand[] = {
    { "pushes", CT_INLINE_FINE, 0 },
    { "makes_room", CT_INLINE_FINE, 0 },
    { "lands", CT_INLINE_FINE, 0 },
    { "lands_on_stack", CT_INLINE_FINE, 0 },
    { "loads", CT_INLINE_FINE, 0 },
    { "stores_constant", CT_INLINE_FINE, 0 },
    { "compares_byte", CT_INLINE_FINE, 0 },
    { "loads_second", CT_INLINE_FINE, 0 },
    { "loads_last", CT_INLINE_FINE, 0 },
    { "loads_float", CT_INLINE_FINE, 0 },
    { "branches", CT_INLINE_FINE, 0 },
    { "branches_twice", CT_INLINE_FINE, 0 },
    { "branches_far", CT_INLINE_FINE, 0 },
    { "calls_itself", CT_INLINE_FINE, CALLS_ITSELF },
    { "loops_behind", CT_INLINE_FINE, 0 },
    { "returns_zero", CT_INLINE_FINE, 0 },
    { "returns", CT_INLINE_FINE, NOT_CALLED }, /* this function sets no result */
    { "returns_constant", CT_INLINE_FINE, 0 },
    { "jumps_on", CT_INLINE_FINE, 0 },
    { "jumps_on_short", CT_INLINE_FINE, 0 },
    { "jumps_by_table", CT_INLINE_FINE, 0 },
    { "jumps_by_import", CT_INLINE_FINE, 0 },
    { "waits", CT_INLINE_FINE, 0 },
    { "waits_patchable", CT_INLINE_FINE, 0 },
    { "traps", CT_INLINE_FINE, NOT_CALLED },
    { "begins_as_535", CT_INLINE_FINE, 0 },
    { "begins_as_535_with_landing", CT_INLINE_FINE, 0 },
    { "begins_as_580", CT_INLINE_FINE, 0 },
    { "jumps_by_register", CT_INLINE_COMPUTED, 0 },
    { "chooses", CT_INLINE_COMPUTED, 0 },
    { "chooses_by_memory", CT_INLINE_COMPUTED, 0 },
    { "has_cold_part", CT_INLINE_REPEATS, 0 },
    { "repeats", CT_INLINE_REPEATS, NOT_CALLED },
    { "repeats_behind_landing", CT_INLINE_REPEATS, NOT_CALLED },
    { "repeats_within", CT_INLINE_REPEATS, 0 },
    { "begins_in_the_middle", CT_INLINE_SHORT, NOT_CALLED },
    { "calls", CT_INLINE_CALLS, 0 },
    { "calls_by_table", CT_INLINE_CALLS, 0 },
    { "calls_by_table_at_once", CT_INLINE_CALLS, 0 },
    { "counts", CT_INLINE_BOUND, 0 },
    { "counts_and_loops", CT_INLINE_BOUND, NOT_CALLED },
    { "jumps_by_sixteen", CT_INLINE_BOUND, NOT_CALLED },
    { "loads_by_half", CT_INLINE_BOUND, NOT_CALLED },
    { "is_short", CT_INLINE_SHORT, 0 },
    { "falls_through", CT_INLINE_SHORT, 0 },
    { "has_gap_at_the_end", CT_INLINE_SHORT, 0 },
    { "is_before", CT_INLINE_SHARED, 0 },
    { "is_behind", CT_INLINE_FINE, 0 },
    { "has_two_names", CT_INLINE_SHARED, 0 },
    { "is_the_other_name", CT_INLINE_SHARED, 0 },
    { "has_no_size", CT_INLINE_NO_SIZE, 0 },
    { "has_no_code", CT_INLINE_UNKNOWN, 0 },
    { "has_breakpoint", CT_INLINE_TAKEN, NOT_CALLED },
    { "has_breakpoint_behind_landing", CT_INLINE_TAKEN, NOT_CALLED },
    { "has_jump_with_address", CT_INLINE_TAKEN, NOT_CALLED },
    { "has_jump_by_register", CT_INLINE_TAKEN, NOT_CALLED },
    { "has_jump_by_high_register", CT_INLINE_TAKEN, NOT_CALLED },
    { "has_pushed_address", CT_INLINE_TAKEN, NOT_CALLED },
};
enum { BY_HAND = sizeof(by_hand) / sizeof(by_hand[0]) };

static void try_by_hand(const char *path)
{
    struct patched *library = patched_open(path);
    patched_add(library, want_all);
    EXPECT(BY_HAND, library->count);
    uint64_t before[BY_HAND] = { 0 }, calls = 0;
    for (int i = 0; i < BY_HAND; i++) {
        if (!(by_hand[i].flags & NOT_CALLED))
            before[i] = call(patched_function(library, by_hand[i].name), &calls);
    }
    uint8_t *code = patched_code(library);
    patched_plan(library);
    for (int i = 0; i < BY_HAND; i++) {
        const enum ct_inline_verdict verdict = patched_verdict(library, by_hand[i].name);
        if (verdict != by_hand[i].verdict)
            fprintf(stderr, "%s: \"%s\", and not \"%s\"\n", by_hand[i].name, ct_inline_reason(verdict),
                    ct_inline_reason(by_hand[i].verdict));
        ENSURE(verdict == by_hand[i].verdict);
    }
    patched_write_area(library);
    int tried = 0;
    for (int i = 0; i < BY_HAND; i++) {
        if (by_hand[i].verdict == CT_INLINE_FINE && !(by_hand[i].flags & NOT_CALLED))
            tried += move_from_everywhere(library, by_hand[i].name, before[i]);
    }
    ENSURE(tried >= 20);
    patched_enter(library);
    for (int i = 0; i < BY_HAND; i++) {
        calls = 0;
        if (by_hand[i].flags & NOT_CALLED)
            continue;
        const uint64_t after = call(patched_function(library, by_hand[i].name), &calls);
        if (after != before[i])
            fprintf(stderr, "%s: other results\n", by_hand[i].name);
        ENSURE(after == before[i]);
        if (by_hand[i].verdict != CT_INLINE_FINE)
            continue;
        const uint64_t counted = *patched_counter(library, by_hand[i].name);
        ENSURE(by_hand[i].flags & CALLS_ITSELF ? counted > calls : counted == calls);
    }
    /* A second plan must recognize the jumps that the first plan has put in. */
    struct ct_inline_plan again;
    EXPECT(0, ct_inline_plan_make(&again, &library->image, library->functions, library->count,
                                  library->plan.area));
    EXPECT(0, again.count);
    EXPECT(library->plan.count + library->plan.verdict_counts[CT_INLINE_TAKEN],
           again.verdict_counts[CT_INLINE_TAKEN]);
    ct_inline_plan_free(&again);

    patched_undo(library, code);
    for (int i = 0; i < BY_HAND; i++) {
        if (!(by_hand[i].flags & NOT_CALLED))
            ENSURE(call(patched_function(library, by_hand[i].name), &calls) == before[i]);
    }
    patched_say(library, path);
    free(code);
}

/* ---- compiled functions ---- */

static bool is_subject(const char *name)
{
    return strcmp(name, "reset") != 0;
}

static uint64_t call_subject(const struct patched *library, const char *name, uint64_t *calls)
{
    ((void (*)(void))patched_function(library, "reset"))();
    return call(patched_function(library, name), calls);
}

static void try_compiled(const char *path)
{
    enum { SUBJECTS_MOST = 64 };
    struct patched *library = patched_open(path);
    patched_add(library, is_subject);
    uint64_t calls = 0, before[SUBJECTS_MOST];
    ENSURE(library->count >= 20 && library->count <= SUBJECTS_MOST);
    for (size_t i = 0; i < library->count; i++)
        before[i] = call_subject(library, library->names[i], &calls);
    uint8_t *code = patched_code(library);
    patched_plan(library);
    patched_say(library, path);
    patched_enter(library);
    for (size_t i = 0; i < library->count; i++) {
        const enum ct_inline_verdict verdict = library->plan.verdicts[i];
        const uint64_t *counter =
            verdict == CT_INLINE_FINE ? patched_counter(library, library->names[i]) : NULL;
        const uint64_t counted = counter ? *counter : 0;
        const bool has_inner = strcmp(library->names[i], "recursive") == 0;
        calls = 0;
        ENSURE(call_subject(library, library->names[i], &calls) == before[i]);
        ENSURE(!counter || *counter == counted + calls || (has_inner && *counter > counted));
        if (!counter)
            printf("    %s: %s\n", library->names[i], ct_inline_reason(verdict));
    }
    patched_undo(library, code);
    for (size_t i = 0; i < library->count; i++)
        ENSURE(call_subject(library, library->names[i], &calls) == before[i]);
    /* Compilers produce few functions that are too short or that have a jump table. */
    ENSURE(library->plan.count * 100 >= library->count * 85);
    free(code);
}

/* ---- libraries ---- */

static bool is_driver_function(const char *name)
{
    return name[0] == 'c' && name[1] == 'u' && name[2] >= 'A' && name[2] <= 'Z';
}

/* The simulated driver must still work when its instructions have been moved. */
static void try_driver(const char *path)
{
    struct patched *library = patched_open(path);
    patched_add(library, is_driver_function);
    uint8_t *code = patched_code(library);
    patched_plan(library);
    patched_say(library, path);
    patched_enter(library);
    int version = 0, count = -1;
    uint64_t address = 0;
    void *context = NULL;
    EXPECT(0, ((int (*)(unsigned))patched_function(library, "cuInit"))(0));
    EXPECT(0, ((int (*)(int *))patched_function(library, "cuDriverGetVersion"))(&version));
    EXPECT(0, ((int (*)(int *))patched_function(library, "cuDeviceGetCount"))(&count));
    EXPECT(0, ((int (*)(void **, unsigned, int))patched_function(library, "cuCtxCreate_v2"))(&context, 0, 0));
    for (int i = 0; i < 100; i++) {
        EXPECT(0, ((int (*)(uint64_t *, size_t))patched_function(library, "cuMemAlloc_v2"))(&address, 4096));
        EXPECT(0, ((int (*)(uint64_t))patched_function(library, "cuMemFree_v2"))(address));
    }
    ENSURE(version >= 12000 && count > 0);
    EXPECT(1, *patched_counter(library, "cuInit"));
    EXPECT(100, *patched_counter(library, "cuMemAlloc_v2"));
    EXPECT(100, *patched_counter(library, "cuMemFree_v2"));
    patched_undo(library, code);
    ENSURE(library->plan.count * 100 >= library->count * 99);
    free(code);
}

/* This test is itself linked with zlib. Calls within zlib also use the slots. */
static void try_zlib(void)
{
    enum { BYTES = 200000 };
    static uint8_t plain[BYTES], packed[BYTES], packed_again[BYTES], unpacked[BYTES];
    uLongf packed_bytes = BYTES, again_bytes = BYTES, unpacked_bytes = BYTES;
    for (size_t i = 0; i < BYTES; i++)
        plain[i] = (uint8_t)(i * i >> 9);
    EXPECT(Z_OK, compress(packed, &packed_bytes, plain, BYTES));
    struct patched *library = patched_open("libz.so.1");
    patched_add(library, want_all);
    uint8_t *code = patched_code(library);
    patched_plan(library);
    patched_say(library, "/libz.so.1");
    patched_enter(library);
    EXPECT(Z_OK, compress(packed_again, &again_bytes, plain, BYTES));
    EXPECT(Z_OK, uncompress(unpacked, &unpacked_bytes, packed_again, again_bytes));
    ENSURE(*patched_counter(library, "compress") == 1 && *patched_counter(library, "uncompress") == 1);
    ENSURE(again_bytes == packed_bytes && memcmp(packed, packed_again, packed_bytes) == 0);
    ENSURE(unpacked_bytes == BYTES && memcmp(plain, unpacked, BYTES) == 0);
    patched_undo(library, code);
    free(code);
}

/* ---- the place of the area ---- */

static void try_places(void)
{
    const uint64_t image_begin = 0x7f0000000000, image_end = 0x7f0002000000, gib = 1ULL << 30;
    const struct ct_inline_image image = { .begin = image_begin, .end = image_end };
    const struct ct_inline_range alone[] = { { image_begin, image_end } };
    const uint64_t below = ct_inline_area_place(&image, alone, 1, 0x10000);
    ENSURE(below == image_begin - 0x11000 || below == image_end + 0x1000);
    const struct ct_inline_range crowded[] = {
        { image_begin - 3 * gib, image_begin - gib },
        { image_begin - gib + 0x12000, image_begin },
        { image_begin, image_end },
        { image_end, image_end + 3 * gib },
    };
    ENSURE(ct_inline_area_place(&image, crowded, 4, 0x10000) == image_begin - gib + 0x1000);
    ENSURE(ct_inline_area_place(&image, crowded, 4, 0x11000) == 0);
    const struct ct_inline_range above[] = { { 0, image_end }, { image_end + 0x12000, UINT64_MAX } };
    ENSURE(ct_inline_area_place(&image, above, 2, 0x10000) == image_end + 0x1000);
    const struct ct_inline_range full[] = { { image_begin - 3 * gib, image_end + 3 * gib } };
    ENSURE(ct_inline_area_place(&image, full, 1, 0x1000) == 0);
    const struct ct_inline_image low = { .begin = 0x400000, .end = 0x500000 };
    const struct ct_inline_range low_taken[] = { { 0x400000, 0x500000 } };
    const uint64_t place = ct_inline_area_place(&low, low_taken, 1, 0x10000);
    ENSURE(place >= 1 << 20);
}

/* Uses an area that is out of range of the code, and then an area that is out of range of the data only. */
static void try_distances(const char *path)
{
    struct patched *library = patched_open(path);
    patched_add(library, want_all);
    EXPECT(0, ct_inline_plan_make(&library->plan, &library->image, library->functions, library->count,
                                  library->image.begin - (4ULL << 30)));
    EXPECT(0, library->plan.count);
    ENSURE(patched_verdict(library, "pushes") == CT_INLINE_FAR &&
           patched_verdict(library, "loads") == CT_INLINE_FAR);
    ct_inline_plan_free(&library->plan);
    /* This area is the lowest that is within range of all code. The data follows the code, so the data is out
     * of range. */
    const uint64_t far = (library->image.code_end - INT32_MAX + 0xfff) & ~0xfffULL;
    EXPECT(0, ct_inline_plan_make(&library->plan, &library->image, library->functions, library->count, far));
    ENSURE(patched_verdict(library, "pushes") == CT_INLINE_FINE &&
           patched_verdict(library, "loads") == CT_INLINE_FAR);
    ct_inline_plan_free(&library->plan);
}

/* ---- arbitrary bytes ---- */

struct made {
    uint8_t code[512];
    uint64_t readable;
};
enum { MADE_AT = 0x100000000 };

static bool read_made(void *context, uint64_t address, void *to, size_t bytes)
{
    const struct made *made = context;
    if (address < MADE_AT || address - MADE_AT > made->readable ||
        bytes > made->readable - (address - MADE_AT))
        return false;
    memcpy(to, made->code + (address - MADE_AT), bytes);
    return true;
}

/* Uses random bytes as code. The plan must not read beyond the readable part of the code. */
static void try_noise(void)
{
    struct made made;
    uint64_t state = 88172645463325252ULL, fine = 0;
    for (int round = 0; round < 20000; round++) {
        for (size_t i = 0; i < sizeof(made.code); i++) {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            made.code[i] = (uint8_t)state;
        }
        made.readable = round % 3 ? sizeof(made.code) : state % sizeof(made.code);
        const struct ct_inline_image image = { .read = read_made,
                                               .context = &made,
                                               .begin = MADE_AT,
                                               .end = MADE_AT + 4096,
                                               .code_begin = MADE_AT,
                                               .code_end = MADE_AT + sizeof(made.code) };
        struct ct_inline_function functions[32];
        for (size_t i = 0; i < 32; i++)
            functions[i] = (struct ct_inline_function){ .address = MADE_AT + i * 16 + (state >> i) % 3,
                                                        .bytes = (state >> (i + 5)) % 20 };
        functions[31].bytes = UINT64_MAX - 3;
        struct ct_inline_plan plan;
        EXPECT(0, ct_inline_plan_make(&plan, &image, functions, 32, MADE_AT + 0x100000));
        for (uint32_t i = 0; i < plan.count; i++) {
            ENSURE(plan.patches[i].address >= MADE_AT);
            ENSURE(plan.patches[i].address + CT_INLINE_JUMP_BYTES <= MADE_AT + made.readable);
            ENSURE(memcmp(plan.patches[i].old, made.code + (plan.patches[i].address - MADE_AT),
                          CT_INLINE_JUMP_BYTES) == 0);
        }
        ENSURE(plan.verdicts[31] != CT_INLINE_FINE);
        fine += plan.count;
        ct_inline_plan_free(&plan);
    }
    ENSURE(fine > 1000);
}

int main(int argc, char **argv)
{
    ENSURE(argc >= 3);
    try_places();
    try_noise();
    try_distances(argv[1]);
    try_by_hand(argv[1]);
    for (int i = 3; i < argc; i++)
        try_compiled(argv[i]);
    try_driver(argv[2]);
    try_zlib();
    return 0;
}
