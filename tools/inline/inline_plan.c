#include "inline_plan.h"

#include "instruction.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

enum {
    PAGE_BYTES = 4096,
    ALIGNMENT = 16, /* alignment of functions */
    LANDING_BYTES = 4,
    JUMP_BYTES = 5,
    BRANCH_BYTES = 6, /* length of a branch in its 32-bit form */
    JUMP_SLOT_BYTES = 6,
    BODY_BYTES_MOST = 1 << 20, /* far more than the few hundred bytes of a driver's exports */
    SCAN_BYTES = 1 << 20,
    BUFFER_BYTES = BODY_BYTES_MOST + 2 * ALIGNMENT,
};

/* The code that the area contains for one function. All moved instructions begin within the first five bytes
 * of the function. In the longest case, the code consists of a landing pad (endbr64), two short branches that
 * grow to six bytes each, a fifteen-byte instruction, and the jump back. */
struct unit {
    uint8_t stub[LANDING_BYTES + JUMP_SLOT_BYTES]; /* jmp *slot(%rip), the target of the patch's jump */
    uint8_t old[CT_INLINE_JUMP_BYTES];             /* the original bytes that the patch overwrites */
    uint8_t skipped;                               /* length of the landing pad (endbr64) before the patch; 0:
                                                    * none */
    uint8_t moved[48];
};
static_assert((int)SCAN_BYTES <= (int)BUFFER_BYTES, "a piece of code");
static_assert(sizeof(struct unit) == 64, "one cache line");
static_assert(2 * BRANCH_BYTES + CT_INSTRUCTION_BYTES + LANDING_BYTES + CT_INLINE_JUMP_BYTES <= 48,
              "moved instructions");

/* ---- the area ---- */

static uint64_t pages(uint64_t bytes)
{
    return (bytes + PAGE_BYTES - 1) / PAGE_BYTES * PAGE_BYTES;
}

static uint64_t code_bytes(size_t count)
{
    return pages(count * sizeof(struct unit));
}

uint64_t ct_inline_area_bytes(size_t count)
{
    return code_bytes(count) + pages(count * (sizeof(uint64_t) + sizeof(struct ct_visit_slot)));
}

static uint64_t distance_between(const struct ct_inline_range *one, const struct ct_inline_image *image)
{
    return one->begin >= image->end ? one->begin - image->end : image->begin - one->end;
}

/* Leaves a free page on each side, so that the kernel does not merge the area with another mapping. */
uint64_t ct_inline_area_place(const struct ct_inline_image *image, const struct ct_inline_range *taken,
                              size_t taken_count, uint64_t bytes)
{
    enum { LOWEST = 1 << 20 };
    const uint64_t reach = INT32_MAX - 2 * PAGE_BYTES, wanted = bytes + 2 * PAGE_BYTES;
    const uint64_t from = image->end > reach + LOWEST ? image->end - reach : LOWEST;
    const uint64_t to = image->begin + reach;
    uint64_t best = 0, best_distance = UINT64_MAX;
    for (size_t i = 0; i <= taken_count; i++) {
        const uint64_t begin = i == 0 ? 0 : taken[i - 1].end, end = i == taken_count ? to : taken[i].begin;
        const uint64_t low = pages(begin > from ? begin : from);
        const uint64_t high = (end < to ? end : to) / PAGE_BYTES * PAGE_BYTES;
        if (high < low || high - low < wanted)
            continue;
        struct ct_inline_range place = { .begin = low + PAGE_BYTES };
        if (high <= image->begin)
            place.begin = high - PAGE_BYTES - bytes;
        place.end = place.begin + bytes;
        if (place.begin < image->end && place.end > image->begin)
            continue;
        const uint64_t distance = distance_between(&place, image);
        if (distance < best_distance) {
            best = place.begin;
            best_distance = distance;
        }
    }
    return best;
}

/* ---- the start of a function ---- */

struct body {
    uint64_t address, bytes, next; /* `next` is the next function's address */
    const uint8_t *code;           /* a copy of the function and a few bytes after it */
    size_t code_bytes;
    size_t patch;     /* offset of the patch */
    size_t moved_end; /* offset of the first instruction that is not moved */
    bool ends;        /* execution never continues past the last moved instruction */
};

static bool read_instruction(const struct body *body, size_t offset, size_t end,
                             struct ct_instruction *instruction)
{
    return offset < end &&
           ct_instruction_read(body->code + offset, end - offset, body->address + offset, instruction);
}

static bool is_within(uint64_t at, uint64_t begin, uint64_t end)
{
    return at >= begin && at < end;
}

/* Recognises code that other tools write over the start of a function. Such code may be a breakpoint, or a
 * jump out of the image's code. Other forms are a jump through a pointer outside the image's data, movabs
 * with a jump to the register, and push with ret. */
static bool is_taken(const struct ct_inline_image *image, const struct body *body)
{
    const uint8_t *code = body->code + body->patch;
    const size_t bytes = body->code_bytes - body->patch;
    struct ct_instruction first, second;
    if (!read_instruction(body, body->patch, body->code_bytes, &first))
        return false;
    if (first.kind == CT_INSTRUCTION_BREAK)
        return true;
    if (first.kind == CT_INSTRUCTION_JUMP)
        return !is_within(first.target, image->code_begin, image->code_end);
    if (first.kind == CT_INSTRUCTION_END && first.distance) {
        int32_t distance;
        memcpy(&distance, code + first.distance, sizeof(distance));
        const uint64_t pointer = body->address + body->patch + first.length + (uint64_t)(int64_t)distance;
        return !is_within(pointer, image->begin, image->end) ||
               is_within(pointer, image->code_begin, image->code_end);
    }
    enum { MOVABS_BYTES = 10, PUSH_BYTES = 5, PUSH = 0x68, RET = 0xc3, JUMP_BY_REGISTER = 0xff };
    if (first.length == MOVABS_BYTES && (code[0] & 0xf8) == 0x48 && (code[1] & 0xf8) == 0xb8)
        return read_instruction(body, body->patch + MOVABS_BYTES, body->code_bytes, &second) &&
               second.kind == CT_INSTRUCTION_COMPUTED &&
               code[MOVABS_BYTES + (second.length > 2)] == JUMP_BY_REGISTER;
    static const uint8_t high_half[] = { 0xc7, 0x44, 0x24, 0x04 }; /* movl $…, 4(%rsp) */
    return first.length == PUSH_BYTES && code[0] == PUSH && bytes > PUSH_BYTES + 8 &&
           (code[PUSH_BYTES] == RET ||
            (memcmp(code + PUSH_BYTES, high_half, sizeof(high_half)) == 0 && code[PUSH_BYTES + 8] == RET));
}

/* Returns whether the patch fits into the function and the filler that follows, up to the next aligned
 * address. */
static bool has_gap(const struct body *body)
{
    const uint64_t end = body->address + body->moved_end;
    const uint64_t gap_end = (end + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
    const size_t to = (size_t)(gap_end - body->address);
    struct ct_instruction gap;
    if (gap_end > body->next || to > body->code_bytes || to < body->patch + CT_INLINE_JUMP_BYTES)
        return false;
    for (size_t at = body->moved_end; at < to; at += gap.length) {
        if (!read_instruction(body, at, to, &gap) || !gap.is_filler)
            return false;
    }
    return true;
}

/* Selects the instructions to move, and checks that each of them can be moved. */
static enum ct_inline_verdict choose_moved(const struct ct_inline_image *image, struct body *body)
{
    struct ct_instruction read;
    if (read_instruction(body, 0, body->code_bytes, &read) && read.is_landing)
        body->patch = read.length;
    if (is_taken(image, body))
        return CT_INLINE_TAKEN;
    body->moved_end = body->patch;
    while (body->moved_end < body->patch + CT_INLINE_JUMP_BYTES && !body->ends) {
        if (body->moved_end == body->bytes)
            return CT_INLINE_SHORT;
        if (!read_instruction(body, body->moved_end, body->bytes, &read))
            return CT_INLINE_UNKNOWN;
        if (read.kind == CT_INSTRUCTION_CALL)
            return CT_INLINE_CALLS;
        if (read.kind == CT_INSTRUCTION_BOUND || read.kind == CT_INSTRUCTION_BREAK)
            return CT_INLINE_BOUND;
        body->ends = read.kind == CT_INSTRUCTION_JUMP || read.kind == CT_INSTRUCTION_END ||
                     read.kind == CT_INSTRUCTION_COMPUTED;
        body->moved_end += read.length;
    }
    const size_t patch_end = body->patch + CT_INLINE_JUMP_BYTES;
    if (body->address + patch_end > body->next)
        return CT_INLINE_SHARED;
    return body->moved_end >= patch_end || has_gap(body) ? CT_INLINE_FINE : CT_INLINE_SHORT;
}

/* Checks that the function does not jump into its own patch. A jump to the patch's first byte would be
 * recorded as a call, so only call instructions may lead there. A computed jump may belong to a `switch` in a
 * loop that begins inside the patch. */
static enum ct_inline_verdict check_jumps(const struct body *body)
{
    const uint64_t patch = body->address + body->patch, patch_end = patch + CT_INLINE_JUMP_BYTES;
    struct ct_instruction read;
    for (size_t at = 0; at < body->bytes; at += read.length) {
        if (!read_instruction(body, at, body->bytes, &read))
            return CT_INLINE_UNKNOWN;
        if (read.has_target && is_within(read.target, body->address, patch_end) &&
            !(read.kind == CT_INSTRUCTION_CALL && read.target == body->address))
            return CT_INLINE_REPEATS;
        if (read.kind == CT_INSTRUCTION_COMPUTED)
            return CT_INLINE_COMPUTED;
    }
    return CT_INLINE_FINE;
}

/* ---- writing code ---- */

/* Writes code that will run at address `at`. `is_far` is set if a distance does not fit into 32 bits. */
struct writer {
    uint8_t *to;
    uint64_t at;
    bool is_far;
};

static void write_bytes(struct writer *writer, const uint8_t *bytes, size_t count)
{
    memcpy(writer->to, bytes, count);
    writer->to += count;
    writer->at += count;
}

/* Writes a relative distance that is followed by `behind` more bytes of its instruction. */
static void write_distance(struct writer *writer, uint64_t target, size_t behind)
{
    const int64_t distance = (int64_t)(target - (writer->at + sizeof(int32_t) + behind));
    const int32_t written = (int32_t)distance;
    writer->is_far = writer->is_far || written != distance;
    write_bytes(writer, (const uint8_t *)&written, sizeof(written));
}

static void write_jump(struct writer *writer, uint64_t target)
{
    write_bytes(writer, (const uint8_t[]){ 0xe9 }, 1);
    write_distance(writer, target, 0);
}

static void write_jump_slot(struct writer *writer, uint64_t slot)
{
    write_bytes(writer, (const uint8_t[]){ 0xff, 0x25 }, 2);
    write_distance(writer, slot, 0);
}

/* Returns the length of an instruction after it has been moved. */
static size_t moved_bytes(const struct ct_instruction *read)
{
    return read->kind == CT_INSTRUCTION_JUMP     ? JUMP_BYTES
           : read->kind == CT_INSTRUCTION_BRANCH ? BRANCH_BYTES
                                                 : read->length;
}

/* Writes an instruction so that it has the same effect as at its original address. */
static void write_moved(struct writer *writer, const struct ct_instruction *read, const uint8_t *code,
                        uint64_t at)
{
    if (read->kind == CT_INSTRUCTION_JUMP) {
        write_jump(writer, read->target);
    } else if (read->kind == CT_INSTRUCTION_BRANCH) {
        write_bytes(writer, (const uint8_t[]){ 0x0f, 0x80 | read->condition }, 2);
        write_distance(writer, read->target, 0);
    } else if (read->distance) {
        const size_t behind = read->length - read->distance - sizeof(int32_t);
        int32_t distance;
        memcpy(&distance, code + read->distance, sizeof(distance));
        write_bytes(writer, code, read->distance);
        write_distance(writer, at + read->length + (uint64_t)(int64_t)distance, behind);
        write_bytes(writer, code + read->length - behind, behind);
    } else {
        write_bytes(writer, code, read->length);
    }
}

/* Stores the new address of an instruction that begins inside the patch. */
static void note_moved(struct ct_inline_patch *patch, uint64_t from, uint64_t to)
{
    if (from >= patch->address && from < patch->address + CT_INLINE_JUMP_BYTES)
        patch->moved_to[from - patch->address] = to;
}

/* Creates a function's unit, patch and slot. Returns false if a distance does not fit into 32 bits. */
static bool add(struct ct_inline_plan *plan, const struct body *body)
{
    const uint32_t index = plan->count;
    struct unit *unit = (struct unit *)(void *)plan->contents + index;
    const uint64_t unit_address = plan->area + index * sizeof(struct unit);
    const uint64_t moved = unit_address + offsetof(struct unit, moved);
    const uint64_t slot = plan->area + plan->code_bytes + index * sizeof(uint64_t);
    struct ct_inline_patch *patch = &plan->patches[index];
    *patch = (struct ct_inline_patch){ .address = body->address + body->patch };
    memcpy(patch->old, body->code + body->patch, CT_INLINE_JUMP_BYTES);
    memset(unit, 0xcc, sizeof(*unit));
    memcpy(unit->old, patch->old, sizeof(unit->old));
    unit->skipped = (uint8_t)body->patch;

    struct writer writer = { .to = unit->stub, .at = unit_address };
    write_bytes(&writer, body->code, body->patch);
    write_jump_slot(&writer, slot);
    writer = (struct writer){ .to = unit->moved, .at = moved, .is_far = writer.is_far };
    struct ct_instruction read;
    for (size_t at = 0; at < body->moved_end; at += read.length) {
        read_instruction(body, at, body->bytes, &read);
        note_moved(patch, body->address + at, writer.at);
        write_moved(&writer, &read, body->code + at, body->address + at);
    }
    if (!body->ends)
        write_jump(&writer, body->address + body->moved_end);
    writer = (struct writer){ .to = patch->new, .at = patch->address, .is_far = writer.is_far };
    write_jump(&writer, unit_address);
    if (writer.is_far) {
        memset(unit, 0xcc, sizeof(*unit));
        return false;
    }
    memcpy(plan->contents + (slot - plan->area), &moved, sizeof(moved));
    plan->slots[index] = (struct ct_visit_slot){ .export = body->address, .slot = slot };
    plan->count++;
    return true;
}

/* ---- jumps from other code ---- */

/* A function that is a candidate for a slot. */
struct candidate {
    const struct ct_inline_function *function;
    uint64_t next, patch_end;
    enum ct_inline_verdict verdict;
};

/* Refuses the function, if any, whose patch contains the jump target. `candidates` are sorted by address. */
static void refuse_target(struct candidate *candidates, size_t count, uint64_t target)
{
    size_t low = 0, high = count;
    while (low < high) {
        const size_t middle = (low + high) / 2;
        if (candidates[middle].function->address < target)
            low = middle + 1;
        else
            high = middle;
    }
    struct candidate *before = low > 0 ? &candidates[low - 1] : NULL;
    if (before && before->verdict == CT_INLINE_FINE && target < before->patch_end)
        before->verdict = CT_INLINE_REPEATS;
}

static void scan_piece(struct candidate *candidates, size_t count, uint64_t at, const uint8_t *code,
                       size_t bytes)
{
    enum { JUMP = 0xe9, TWO_BYTES = 0x0f, BRANCH = 0x80 };
    for (size_t i = 0; i + sizeof(int32_t) < bytes; i++) {
        int32_t distance;
        if (code[i] != JUMP && (i == 0 || code[i - 1] != TWO_BYTES || (code[i] & 0xf0) != BRANCH))
            continue;
        memcpy(&distance, code + i + 1, sizeof(distance));
        refuse_target(candidates, count, at + i + 1 + sizeof(distance) + (uint64_t)(int64_t)distance);
    }
}

/* Refuses functions whose patch is a target of jumps in other code, such as their own cold parts, which
 * linkers place far away. Since instruction boundaries are unknown, tries every byte as the start of a jump
 * with a 32-bit distance. Unrelated bytes rarely look like a jump to one of a few thousand given addresses.
 * Returns false if some code cannot be read. */
static bool scan_code(const struct ct_inline_image *image, struct candidate *candidates, size_t count,
                      uint8_t buffer[SCAN_BYTES])
{
    enum { OVERLAP = 8 }; /* because a jump may be split between two pieces */
    for (uint64_t at = image->code_begin; at < image->code_end; at += SCAN_BYTES - OVERLAP) {
        const uint64_t left = image->code_end - at;
        const size_t bytes = left < SCAN_BYTES ? left : SCAN_BYTES;
        if (!image->read(image->context, at, buffer, bytes))
            return false;
        scan_piece(candidates, count, at, buffer, bytes);
    }
    return true;
}

/* ---- the plan ---- */

/* Reads a function's code into `buffer`, and checks whether it can have a slot. */
static enum ct_inline_verdict check_function(const struct ct_inline_image *image,
                                             const struct ct_inline_function *function, uint64_t next,
                                             uint8_t *buffer, struct body *body)
{
    const uint64_t address = function->address;
    if (!is_within(address, image->code_begin, image->code_end) ||
        function->bytes > image->code_end - address)
        return CT_INLINE_OUTSIDE;
    if (function->bytes == 0 || function->bytes > BODY_BYTES_MOST)
        return CT_INLINE_NO_SIZE;
    const uint64_t left = image->code_end - address, wanted = function->bytes + 2 * ALIGNMENT;
    *body = (struct body){ .address = address, .bytes = function->bytes, .next = next, .code = buffer };
    body->code_bytes = left < wanted ? left : wanted;
    if (!image->read(image->context, address, buffer, body->code_bytes))
        return CT_INLINE_UNREADABLE;
    const enum ct_inline_verdict verdict = choose_moved(image, body);
    return verdict == CT_INLINE_FINE ? check_jumps(body) : verdict;
}

static int compare(const void *left, const void *right)
{
    const struct candidate *one = left, *other = right;
    return (one->function->address > other->function->address) -
           (one->function->address < other->function->address);
}

/* Sorts `candidates` by address, and checks each function by itself. */
static void check_all(const struct ct_inline_image *image, struct candidate *candidates, size_t count,
                      uint8_t *buffer)
{
    qsort(candidates, count, sizeof(*candidates), compare);
    for (size_t i = 0; i < count; i++) {
        struct candidate *own = &candidates[i];
        const uint64_t address = own->function->address;
        own->next = i + 1 < count ? candidates[i + 1].function->address : UINT64_MAX;
        const bool is_shared =
            own->next == address || (i > 0 && candidates[i - 1].function->address == address);
        struct body body;
        own->verdict =
            is_shared ? CT_INLINE_SHARED : check_function(image, own->function, own->next, buffer, &body);
        own->patch_end = address + (own->verdict == CT_INLINE_FINE ? body.patch + CT_INLINE_JUMP_BYTES : 0);
    }
}

static void add_all(struct ct_inline_plan *plan, const struct ct_inline_image *image,
                    const struct ct_inline_function *functions, struct candidate *candidates, size_t count,
                    uint8_t *buffer)
{
    for (size_t i = 0; i < count; i++) {
        struct candidate *own = &candidates[i];
        struct body body;
        if (own->verdict == CT_INLINE_FINE)
            own->verdict = check_function(image, own->function, own->next, buffer, &body);
        if (own->verdict == CT_INLINE_FINE && !add(plan, &body))
            own->verdict = CT_INLINE_FAR;
        plan->verdicts[own->function - functions] = (uint8_t)own->verdict;
        plan->verdict_counts[own->verdict]++;
    }
}

int ct_inline_plan_make(struct ct_inline_plan *plan, const struct ct_inline_image *image,
                        const struct ct_inline_function *functions, size_t count, uint64_t area)
{
    *plan = (struct ct_inline_plan){ .area = area,
                                     .code_bytes = code_bytes(count),
                                     .bytes = ct_inline_area_bytes(count) };
    plan->contents = calloc(plan->bytes + 1, 1);
    plan->patches = calloc(count + 1, sizeof(*plan->patches));
    plan->verdicts = calloc(count + 1, sizeof(*plan->verdicts));
    struct candidate *candidates = calloc(count + 1, sizeof(*candidates));
    uint8_t *buffer = malloc(BUFFER_BYTES);
    const bool has_memory = plan->contents && plan->patches && plan->verdicts && candidates && buffer;
    if (has_memory) {
        const uint64_t list = plan->code_bytes + count * sizeof(uint64_t);
        plan->slots = (struct ct_visit_slot *)(void *)(plan->contents + list);
        plan->slots_address = area + list;
        for (size_t i = 0; i < count; i++)
            candidates[i].function = &functions[i];
        check_all(image, candidates, count, buffer);
        const bool is_scanned = scan_code(image, candidates, count, buffer);
        for (size_t i = 0; !is_scanned && i < count; i++)
            candidates[i].verdict = CT_INLINE_UNREADABLE;
        add_all(plan, image, functions, candidates, count, buffer);
    }
    free(candidates);
    free(buffer);
    return has_memory ? 0 : -ENOMEM;
}

void ct_inline_plan_free(struct ct_inline_plan *plan)
{
    free(plan->contents);
    free(plan->patches);
    free(plan->verdicts);
    *plan = (struct ct_inline_plan){ 0 };
}

/* ---- undoing ---- */

static uint64_t jump_target(const uint8_t *distance_at, uint64_t end)
{
    int32_t distance;
    memcpy(&distance, distance_at, sizeof(distance));
    return end + (uint64_t)(int64_t)distance;
}

/* Reads a unit from the process. Returns false unless the unit jumps through the given slot. */
static bool read_unit(const struct ct_inline_image *image, uint64_t address, uint64_t slot, struct unit *unit)
{
    if (is_within(address, image->begin, image->end) ||
        !image->read(image->context, address, unit, sizeof(*unit)) ||
        (unit->skipped != 0 && unit->skipped != LANDING_BYTES))
        return false;
    const uint8_t *through = unit->stub + unit->skipped;
    return through[0] == 0xff && through[1] == 0x25 &&
           jump_target(through + 2, address + unit->skipped + JUMP_SLOT_BYTES) == slot;
}

bool ct_inline_undo(const struct ct_inline_image *image, const struct ct_visit_slot *slot,
                    struct ct_inline_patch *patch)
{
    static const uint8_t landing[LANDING_BYTES] = { 0xf3, 0x0f, 0x1e, 0xfa };
    uint8_t code[LANDING_BYTES + CT_INLINE_JUMP_BYTES];
    struct unit unit;
    if (!image->read(image->context, slot->export, code, sizeof(code)))
        return false;
    const size_t skipped = memcmp(code, landing, sizeof(landing)) == 0 ? sizeof(landing) : 0;
    const uint64_t address = slot->export + skipped;
    const uint64_t unit_address = jump_target(code + skipped + 1, address + CT_INLINE_JUMP_BYTES);
    if (code[skipped] != 0xe9 || !read_unit(image, unit_address, slot->slot, &unit) ||
        unit.skipped != skipped)
        return false;
    *patch = (struct ct_inline_patch){ .address = address };
    memcpy(patch->old, code + skipped, CT_INLINE_JUMP_BYTES);
    memcpy(patch->new, unit.old, CT_INLINE_JUMP_BYTES);
    return true;
}

/* Fills moved_to[] for instructions that an earlier plan has moved. */
static void find_moved(const struct ct_inline_image *image, struct ct_inline_patch *patch, uint64_t moved)
{
    uint8_t code[CT_INLINE_JUMP_BYTES + CT_INSTRUCTION_BYTES];
    size_t bytes = sizeof(code);
    struct ct_instruction read;
    while (bytes >= CT_INLINE_JUMP_BYTES && !image->read(image->context, patch->address, code, bytes))
        bytes--;
    for (size_t at = 0; at < CT_INLINE_JUMP_BYTES; at += read.length) {
        if (!ct_instruction_read(code + at, bytes - at, patch->address + at, &read))
            return;
        note_moved(patch, patch->address + at, moved);
        moved += moved_bytes(&read);
        if (read.kind == CT_INSTRUCTION_JUMP || read.kind == CT_INSTRUCTION_END)
            return;
    }
}

bool ct_inline_redo(const struct ct_inline_image *image, const struct ct_visit_slot *slot,
                    struct ct_inline_patch *patch)
{
    uint64_t moved;
    struct unit unit;
    uint8_t code[CT_INLINE_JUMP_BYTES];
    if (!image->read(image->context, slot->slot, &moved, sizeof(moved)) ||
        !read_unit(image, moved - offsetof(struct unit, moved), slot->slot, &unit) ||
        !image->read(image->context, slot->export + unit.skipped, code, sizeof(code)) ||
        memcmp(code, unit.old, sizeof(code)) != 0)
        return false;
    *patch = (struct ct_inline_patch){ .address = slot->export + unit.skipped };
    memcpy(patch->old, unit.old, sizeof(unit.old));
    struct writer writer = { .to = patch->new, .at = patch->address };
    write_jump(&writer, moved - offsetof(struct unit, moved));
    find_moved(image, patch, moved + unit.skipped);
    return !writer.is_far;
}
