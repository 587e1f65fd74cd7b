/* Runs a filter program (classic BPF, as used by seccomp) for each row of system.def. The kernel has already
 * checked that the program terminates, jumps only forward, and reads nothing out of bounds. If the program
 * contains an unknown instruction, the system call counts as refused. */
#include "filter.h"

#include "compiler.h"
#include "machine.h"

#include <fcntl.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/futex.h>
#include <linux/seccomp.h>
#include <signal.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <time.h>

/* System call numbers are ints, and filters compare the 32-bit halves of arguments. */
#define CALL(number, a, b, c) { number, CT_AUDIT_ARCH, 0, { (uint64_t)(a), (uint64_t)(b), (uint64_t)(c) } },
#define NO_ROW(name, number, a, b, c)
#define A_ROW(name, number, a, b, c) CALL(number, a, b, c)
#define ROW                          A_ROW
#define ROW_OF_REPORTS               NO_ROW
static const struct seccomp_data own_calls[] = {
#include "system.def"
};
#undef ROW
#undef ROW_OF_REPORTS
#define ROW            NO_ROW
#define ROW_OF_REPORTS A_ROW
static const struct seccomp_data calls_of_reports[] = {
#include "system.def"
};
#undef ROW
#undef ROW_OF_REPORTS

struct machine {
    uint32_t a, x, memory[BPF_MEMWORDS];
};

static uint32_t load(const struct seccomp_data *data, uint32_t offset)
{
    uint32_t word = 0;
    if (offset <= sizeof(*data) - sizeof(word))
        memcpy(&word, (const uint8_t *)data + offset, sizeof(word));
    return word;
}

static uint32_t calculate(uint16_t code, uint32_t a, uint32_t by)
{
    switch (BPF_OP(code)) {
    case BPF_ADD:
        return a + by;
    case BPF_SUB:
        return a - by;
    case BPF_MUL:
        return a * by;
    case BPF_DIV:
        return by ? a / by : 0;
    case BPF_AND:
        return a & by;
    case BPF_OR:
        return a | by;
    case BPF_XOR:
        return a ^ by;
    case BPF_LSH:
        return by < 32 ? a << by : 0;
    case BPF_RSH:
        return by < 32 ? a >> by : 0;
    default:
        return 0 - a; /* BPF_NEG */
    }
}

static bool compare(uint16_t code, uint32_t a, uint32_t with)
{
    switch (BPF_OP(code)) {
    case BPF_JEQ:
        return a == with;
    case BPF_JGT:
        return a > with;
    case BPF_JGE:
        return a >= with;
    default:
        return (a & with) != 0; /* BPF_JSET */
    }
}

/* Runs one instruction that neither jumps nor returns. Returns false if the instruction is unknown. */
static bool step(struct machine *machine, const struct sock_filter *at, const struct seccomp_data *data)
{
    uint32_t *const word = &machine->memory[at->k % BPF_MEMWORDS];
    switch (at->code) {
    case BPF_LD | BPF_W | BPF_ABS:
        machine->a = load(data, at->k);
        return true;
    case BPF_LD | BPF_W | BPF_LEN:
        machine->a = sizeof(*data);
        return true;
    case BPF_LDX | BPF_W | BPF_LEN:
        machine->x = sizeof(*data);
        return true;
    case BPF_LD | BPF_IMM:
        machine->a = at->k;
        return true;
    case BPF_LDX | BPF_IMM:
        machine->x = at->k;
        return true;
    case BPF_LD | BPF_MEM:
        machine->a = *word;
        return true;
    case BPF_LDX | BPF_MEM:
        machine->x = *word;
        return true;
    case BPF_ST:
        *word = machine->a;
        return true;
    case BPF_STX:
        *word = machine->x;
        return true;
    case BPF_MISC | BPF_TAX:
        machine->x = machine->a;
        return true;
    case BPF_MISC | BPF_TXA:
        machine->a = machine->x;
        return true;
    default:
        if (BPF_CLASS(at->code) != BPF_ALU)
            return false;
        machine->a = calculate(at->code, machine->a, BPF_SRC(at->code) == BPF_X ? machine->x : at->k);
        return true;
    }
}

static bool passes(const struct sock_fprog *program, const struct seccomp_data *data)
{
    struct machine machine = { 0 };
    for (uint32_t i = 0; i < program->len; i++) {
        const struct sock_filter *at = &program->filter[i];
        if (BPF_CLASS(at->code) == BPF_RET)
            return (BPF_RVAL(at->code) == BPF_A ? machine.a : at->k) == SECCOMP_RET_ALLOW;
        if (BPF_CLASS(at->code) == BPF_JMP) {
            const uint32_t with = BPF_SRC(at->code) == BPF_X ? machine.x : at->k;
            i += BPF_OP(at->code) == BPF_JA ? at->k : compare(at->code, machine.a, with) ? at->jt : at->jf;
        } else if (!step(&machine, at, data)) {
            return false;
        }
    }
    return false;
}

static bool pass(const void *filter, const struct seccomp_data *calls, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        if (!passes(filter, &calls[i]))
            return false;
    }
    return true;
}

bool ct_filter_passes(const void *filter)
{
    return pass(filter, own_calls, CT_ARRAY_LENGTH(own_calls));
}

bool ct_filter_passes_reports(const void *filter)
{
    return pass(filter, calls_of_reports, CT_ARRAY_LENGTH(calls_of_reports));
}
