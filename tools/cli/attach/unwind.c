/* The tables are a list of entries (FDE), one for each function, and an index of the functions
 * (.eh_frame_hdr). An entry is a small program that computes, for each instruction of the function, where its
 * caller's registers are. It begins with the instructions of another entry (CIE), which many functions share.
 * See the DWARF standard, section 6.4, and the Linux Standard Base, "Exception Frames". */
#include "unwind.h"

#include <elf.h>
#include <string.h>
#include <unistd.h>

/* Limits on tables, which hardly any function exceeds. */
enum { SEGMENTS_MOST = 64, ENTRY_BYTES_MOST = 16 << 10, COMMON_BYTES_MOST = 512, REMEMBERED_MOST = 8 };
/* DWARF's numbers of the registers that are followed. */
enum { REGISTER_BX = 3, REGISTER_BP = 6, REGISTER_SP = 7, REGISTER_IP = 16, REGISTERS };

/* ---- reading ---- */

/* A part of a table. Reading past its end returns 0 and sets `is_wrong`. */
struct table {
    const uint8_t *at, *end;
    bool is_wrong;
};

static uint64_t take(struct table *table, size_t bytes)
{
    uint64_t value = 0;
    if (bytes > sizeof(value) || (size_t)(table->end - table->at) < bytes) {
        table->is_wrong = true;
        table->at = table->end;
        return 0;
    }
    memcpy(&value, table->at, bytes);
    table->at += bytes;
    return value;
}

static uint64_t take_number(struct table *table, bool is_signed)
{
    uint64_t value = 0, byte = 0x80;
    unsigned shift = 0;
    while (byte & 0x80 && shift < 64) {
        byte = take(table, 1);
        value |= (byte & 0x7f) << shift;
        shift += 7;
    }
    if (is_signed && byte & 0x40 && shift < 64)
        value |= -(UINT64_C(1) << shift);
    return value;
}

static struct table take_block(struct table *table)
{
    const uint64_t bytes = take_number(table, false);
    struct table block = { table->at, table->at, false };
    if (bytes > (size_t)(table->end - table->at))
        table->is_wrong = true;
    else
        block.end = table->at += bytes;
    return block;
}

/* Returns the size of a pointer with this encoding (DW_EH_PE_…), or 0 if the encoding is unknown. */
static size_t pointer_bytes(uint8_t encoding)
{
    enum { ABSOLUTE = 0x0, UDATA4 = 0x3, UDATA8 = 0x4, SDATA4 = 0xb, SDATA8 = 0xc };
    const uint8_t format = encoding & 0xf;
    return format == ABSOLUTE || format == UDATA8 || format == SDATA8 ? 8
           : format == UDATA4 || format == SDATA4                     ? 4
                                                                      : 0;
}

/* ---- finding a function's entry ---- */

/* Returns the address of the index of the file that is mapped at the address, or 0. */
static uint64_t find_index(const struct ct_memory *memory, uint64_t ip, uint64_t *bytes)
{
    const struct ct_mapping *mapping = ct_memory_at(memory, ip), *first = mapping;
    Elf64_Ehdr header;
    Elf64_Phdr segments[SEGMENTS_MOST];
    while (first && first->offset != 0 && first > memory->mappings &&
           strcmp(first[-1].path, first->path) == 0)
        first--;
    if (!first || !mapping->is_executable || !ct_memory_read(memory, first->begin, &header, sizeof(header)) ||
        memcmp(header.e_ident, ELFMAG, SELFMAG) != 0 || header.e_phentsize != sizeof(*segments) ||
        header.e_phnum > SEGMENTS_MOST ||
        !ct_memory_read(memory, first->begin + header.e_phoff, segments, header.e_phnum * sizeof(*segments)))
        return 0;
    const Elf64_Phdr *load = NULL, *index = NULL;
    for (const Elf64_Phdr *segment = segments; segment < segments + header.e_phnum; segment++) {
        if (segment->p_type == PT_LOAD && !load)
            load = segment;
        if (segment->p_type == PT_GNU_EH_FRAME)
            index = segment;
    }
    const uint64_t page = (uint64_t)sysconf(_SC_PAGESIZE);
    *bytes = index ? index->p_memsz : 0;
    return load && index ? first->begin - load->p_vaddr / page * page + index->p_vaddr : 0;
}

/* An entry of the index. Both numbers are relative to the index. */
struct indexed {
    int32_t function, entry;
};

/* Searches an index with the usual encodings for the last function that begins at or before the address.
 * Returns the address of its entry, or 0. */
static uint64_t find_entry(const struct ct_memory *memory, uint64_t ip, uint64_t *function)
{
    enum { SDATA4_PCREL = 0x1b, UDATA4 = 0x03, SDATA4_DATAREL = 0x3b };
    struct {
        uint8_t version, place_encoding, count_encoding, encoding;
        int32_t place;
        uint32_t count;
    } header;
    struct indexed found;
    uint64_t bytes;
    const uint64_t index = find_index(memory, ip, &bytes);
    if (!index || bytes < sizeof(header) || !ct_memory_read(memory, index, &header, sizeof(header)) ||
        header.version != 1 || header.place_encoding != SDATA4_PCREL || header.count_encoding != UDATA4 ||
        header.encoding != SDATA4_DATAREL || header.count > (bytes - sizeof(header)) / sizeof(found))
        return 0;
    uint64_t low = 0, high = header.count;
    while (low < high) { /* the functions before `low` begin at or before the address */
        const uint64_t middle = (low + high) / 2;
        if (!ct_memory_read(memory, index + sizeof(header) + middle * sizeof(found), &found, sizeof(found)))
            return 0;
        if (index + (uint64_t)(int64_t)found.function <= ip)
            low = middle + 1;
        else
            high = middle;
    }
    if (low == 0 ||
        !ct_memory_read(memory, index + sizeof(header) + (low - 1) * sizeof(found), &found, sizeof(found)))
        return 0;
    *function = index + (uint64_t)(int64_t)found.function;
    return index + (uint64_t)(int64_t)found.entry;
}

/* ---- instructions ---- */

struct rule {
    enum { RULE_SAME, RULE_UNDEFINED, RULE_OFFSET, RULE_EXPRESSION, RULE_UNKNOWN } kind;
    int64_t offset;          /* from the frame's address (CFA) */
    struct table expression; /* computes the address of the saved register */
};

struct rules {
    struct rule of[REGISTERS];
    uint64_t frame_register;
    int64_t frame_offset;
    struct table frame_expression; /* if it is not empty, it computes the frame's address */
};

struct program {
    struct rules now, initial, remembered[REMEMBERED_MOST];
    size_t remembered_count;
    uint64_t code_unit, code; /* the instruction of the function that the rules are for */
    int64_t data_unit;
};

static void set_rule(struct program *program, uint64_t number, struct rule rule)
{
    if (number < REGISTERS)
        program->now.of[number] = rule;
}

static void set_offset(struct program *program, uint64_t number, uint64_t offset)
{
    set_rule(program, number,
             (struct rule){ .kind = RULE_OFFSET, .offset = (int64_t)offset * program->data_unit });
}

static void restore_rule(struct program *program, uint64_t number)
{
    if (number < REGISTERS)
        program->now.of[number] = program->initial.of[number];
}

static void set_frame(struct rules *rules, uint64_t number, int64_t offset)
{
    rules->frame_register = number;
    rules->frame_offset = offset;
    rules->frame_expression = (struct table){ 0 };
}

/* Executes an instruction whose operands are in the following bytes. Returns false if it is unknown. */
static bool execute_extended(struct program *program, uint8_t instruction, struct table *table)
{
    enum {
        NOP,
        ADVANCE_1 = 2,
        ADVANCE_2,
        ADVANCE_4,
        OFFSET_EXTENDED,
        RESTORE_EXTENDED,
        UNDEFINED,
        SAME_VALUE
    };
    enum {
        REMEMBER = 0xa,
        RESTORE_STATE,
        DEFINE_FRAME,
        FRAME_REGISTER,
        FRAME_OFFSET,
        FRAME_EXPRESSION,
        EXPRESSION
    };
    enum { OFFSET_SIGNED = 0x11, DEFINE_FRAME_SIGNED, FRAME_OFFSET_SIGNED, ARGUMENTS_SIZE = 0x2e };
    struct rules *now = &program->now;
    uint64_t number;
    switch (instruction) {
    case NOP:
        return true;
    case ADVANCE_1:
    case ADVANCE_2:
    case ADVANCE_4:
        program->code += take(table, (size_t)1 << (instruction - ADVANCE_1)) * program->code_unit;
        return true;
    case OFFSET_EXTENDED:
    case OFFSET_SIGNED:
        number = take_number(table, false);
        set_offset(program, number, take_number(table, instruction == OFFSET_SIGNED));
        return true;
    case RESTORE_EXTENDED:
        restore_rule(program, take_number(table, false));
        return true;
    case UNDEFINED:
    case SAME_VALUE:
        set_rule(program, take_number(table, false),
                 (struct rule){ .kind = instruction == UNDEFINED ? RULE_UNDEFINED : RULE_SAME });
        return true;
    case REMEMBER:
        if (program->remembered_count == REMEMBERED_MOST)
            return false;
        program->remembered[program->remembered_count++] = *now;
        return true;
    case RESTORE_STATE:
        if (program->remembered_count == 0)
            return false;
        *now = program->remembered[--program->remembered_count];
        return true;
    case DEFINE_FRAME:
        number = take_number(table, false);
        set_frame(now, number, (int64_t)take_number(table, false));
        return true;
    case DEFINE_FRAME_SIGNED:
        number = take_number(table, false);
        set_frame(now, number, (int64_t)take_number(table, true) * program->data_unit);
        return true;
    case FRAME_REGISTER:
        set_frame(now, take_number(table, false), now->frame_offset);
        return true;
    case FRAME_OFFSET:
        set_frame(now, now->frame_register, (int64_t)take_number(table, false));
        return true;
    case FRAME_OFFSET_SIGNED:
        set_frame(now, now->frame_register, (int64_t)take_number(table, true) * program->data_unit);
        return true;
    case FRAME_EXPRESSION:
        now->frame_expression = take_block(table);
        return true;
    case EXPRESSION:
        number = take_number(table, false);
        set_rule(program, number, (struct rule){ .kind = RULE_EXPRESSION, .expression = take_block(table) });
        return true;
    case ARGUMENTS_SIZE:
        take_number(table, false);
        return true;
    default:
        return false;
    }
}

/* Executes the instructions for the function's code up to the given address. Returns false if one is
 * unknown. */
static bool execute(struct program *program, struct table table, uint64_t ip)
{
    enum { ADVANCE = 1, OFFSET, RESTORE, OPERAND_BITS = 6 };
    while (table.at < table.end && program->code <= ip) {
        const uint8_t byte = (uint8_t)take(&table, 1), operand = byte & ((1 << OPERAND_BITS) - 1);
        bool is_known = true;
        switch (byte >> OPERAND_BITS) {
        case ADVANCE:
            program->code += operand * program->code_unit;
            break;
        case OFFSET:
            set_offset(program, operand, take_number(&table, false));
            break;
        case RESTORE:
            restore_rule(program, operand);
            break;
        default:
            is_known = execute_extended(program, byte, &table);
        }
        if (!is_known || table.is_wrong)
            return false;
    }
    return true;
}

/* ---- a step ---- */

/* Contains what the entries of a function are read from. */
struct entries {
    uint8_t entry[ENTRY_BYTES_MOST], common[COMMON_BYTES_MOST];
};

/* Reads an entry without its length. */
static bool read_entry(const struct ct_memory *memory, uint64_t at, uint8_t *bytes, size_t room,
                       struct table *table)
{
    uint32_t length;
    if (!ct_memory_read(memory, at, &length, sizeof(length)) || length == 0 || length > room ||
        !ct_memory_read(memory, at + sizeof(length), bytes, length))
        return false;
    *table = (struct table){ bytes, bytes + length, false };
    return true;
}

/* Reads the head of the common entry, up to its instructions. Sets *encoding to the encoding of the
 * function's address, and *has_size to whether the function's entry contains the size of its additional data.
 */
static bool read_common(struct program *program, struct table *table, uint8_t *encoding, bool *has_size)
{
    take(table, sizeof(uint32_t));
    const uint64_t version = take(table, 1);
    const char *letters = (const char *)table->at;
    while (take(table, 1) != 0 && !table->is_wrong)
        ;
    program->code_unit = take_number(table, false);
    program->data_unit = (int64_t)take_number(table, true);
    const uint64_t number = version == 1 ? take(table, 1) : take_number(table, false);
    *encoding = 0;
    *has_size = !table->is_wrong && *letters == 'z';
    if (table->is_wrong || (version != 1 && version != 3) || number != REGISTER_IP ||
        (*letters && !*has_size))
        return false;
    struct table data = *has_size ? take_block(table) : (struct table){ 0 };
    for (letters += *has_size; *letters; letters++) {
        if (*letters == 'R')
            *encoding = (uint8_t)take(&data, 1);
        else if (*letters == 'P')
            take(&data, pointer_bytes((uint8_t)take(&data, 1)));
        else if (*letters == 'L')
            take(&data, 1);
        else
            return false; /* such as 'S', the frame of a signal handler */
    }
    return !data.is_wrong && !table->is_wrong && pointer_bytes(*encoding) > 0;
}

/* Computes the rules for an instruction. */
static bool find_rules(const struct ct_memory *memory, uint64_t ip, struct program *program,
                       struct entries *entries)
{
    struct table table, common;
    uint64_t function;
    uint8_t encoding;
    bool has_size;
    const uint64_t at = find_entry(memory, ip, &function);
    if (!at || !read_entry(memory, at, entries->entry, sizeof(entries->entry), &table))
        return false;
    const uint64_t distance = take(&table, sizeof(uint32_t));
    if (!read_entry(memory, at + sizeof(uint32_t) - distance, entries->common, sizeof(entries->common),
                    &common) ||
        !read_common(program, &common, &encoding, &has_size))
        return false;
    take(&table, pointer_bytes(encoding)); /* the function's address, which the index contains, too */
    const uint64_t bytes = take(&table, pointer_bytes(encoding));
    if (has_size)
        take_block(&table);
    program->code = function;
    if (table.is_wrong || ip - function >= bytes || !execute(program, common, UINT64_MAX))
        return false;
    program->initial = program->now;
    program->code = function;
    return execute(program, table, ip);
}

static bool value_of(const struct ct_waiting *waiting, uint64_t number, uint64_t *value)
{
    *value = number == REGISTER_SP   ? waiting->sp
             : number == REGISTER_BP ? waiting->bp
             : number == REGISTER_BX ? waiting->bx
                                     : 0;
    return number == REGISTER_SP || number == REGISTER_BP || number == REGISTER_BX;
}

/* Evaluates the expressions of functions that align their stacks: a register plus a number, and then loads
 * from memory. */
static bool evaluate(const struct ct_memory *memory, struct table expression,
                     const struct ct_waiting *waiting, uint64_t *value)
{
    enum { FETCH = 0x06, REGISTER_PLUS = 0x70 };
    const uint64_t number = take(&expression, 1) - REGISTER_PLUS;
    if (!value_of(waiting, number, value))
        return false;
    *value += take_number(&expression, true);
    while (expression.at < expression.end && !expression.is_wrong) {
        if (take(&expression, 1) != FETCH || !ct_memory_read(memory, *value, value, sizeof(*value)))
            return false;
    }
    return !expression.is_wrong;
}

/* Finds the caller's value of a register. If there is no rule, it keeps its value. */
static bool restore(const struct ct_memory *memory, const struct rule *rule, const struct ct_waiting *waiting,
                    uint64_t frame, uint64_t *value)
{
    uint64_t at = frame + (uint64_t)rule->offset;
    if (rule->kind == RULE_SAME)
        return true;
    if (rule->kind == RULE_EXPRESSION && !evaluate(memory, rule->expression, waiting, &at))
        return false;
    return (rule->kind == RULE_OFFSET || rule->kind == RULE_EXPRESSION) &&
           ct_memory_read(memory, at, value, sizeof(*value));
}

enum ct_unwound ct_unwind(const struct ct_memory *memory, struct ct_waiting *waiting)
{
    struct program program = { .now.frame_register = REGISTERS };
    struct entries entries;
    struct ct_waiting caller = *waiting;
    /* The return address may be the first one of the next function. */
    if (!find_rules(memory, waiting->ip - 1, &program, &entries))
        return CT_UNWOUND_UNKNOWN;
    const struct rules *rules = &program.now;
    if (rules->of[REGISTER_IP].kind == RULE_UNDEFINED)
        return CT_UNWOUND_LAST;
    if (rules->frame_expression.at < rules->frame_expression.end) {
        if (!evaluate(memory, rules->frame_expression, waiting, &caller.sp))
            return CT_UNWOUND_UNKNOWN;
    } else if (value_of(waiting, rules->frame_register, &caller.sp)) {
        caller.sp += (uint64_t)rules->frame_offset;
    } else {
        return CT_UNWOUND_UNKNOWN;
    }
    if (caller.sp <= waiting->sp || rules->of[REGISTER_IP].kind == RULE_SAME ||
        !restore(memory, &rules->of[REGISTER_IP], waiting, caller.sp, &caller.ip) ||
        !restore(memory, &rules->of[REGISTER_BP], waiting, caller.sp, &caller.bp) ||
        !restore(memory, &rules->of[REGISTER_BX], waiting, caller.sp, &caller.bx))
        return CT_UNWOUND_UNKNOWN;
    *waiting = caller;
    return CT_UNWOUND;
}

uint64_t ct_unwind_function(const struct ct_memory *memory, uint64_t ip)
{
    uint64_t function = 0;
    return find_entry(memory, ip, &function) ? function : 0;
}
