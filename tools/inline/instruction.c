#include "instruction.h"

#include <Zydis/Zydis.h>

#include <pthread.h>

static ZydisDecoder decoder;
static void make_decoder(void)
{
    ZydisDecoderInit(&decoder, ZYDIS_MACHINE_MODE_LONG_64, ZYDIS_STACK_WIDTH_64);
}

/* Returns the kind of an instruction with a relative target. Only jumps and branches that have a 32-bit form
 * can be moved. With the prefix 0x66, the length of the distance differs between processors. */
static enum ct_instruction_kind kind_of_relative(const ZydisDecodedInstruction *read)
{
    enum { CALL = 0xe8, JUMP = 0xe9, JUMP_SHORT = 0xeb, BRANCH = 0x80, BRANCH_SHORT = 0x70 };
    const bool is_one_byte = read->opcode_map == ZYDIS_OPCODE_MAP_DEFAULT;
    if (read->attributes & ZYDIS_ATTRIB_HAS_OPERANDSIZE)
        return CT_INSTRUCTION_BOUND;
    if (is_one_byte && read->opcode == CALL)
        return CT_INSTRUCTION_CALL;
    if (is_one_byte && (read->opcode == JUMP || read->opcode == JUMP_SHORT))
        return CT_INSTRUCTION_JUMP;
    if ((is_one_byte && (read->opcode & 0xf0) == BRANCH_SHORT) ||
        (read->opcode_map == ZYDIS_OPCODE_MAP_0F && (read->opcode & 0xf0) == BRANCH))
        return CT_INSTRUCTION_BRANCH;
    return CT_INSTRUCTION_BOUND;
}

/* Returns the kind of an indirect jump. `jmp *word(%rip)` always reads the same word, as in a jump through an
 * import table. */
static enum ct_instruction_kind kind_of_jump(const ZydisDecodedInstruction *read)
{
    return read->raw.modrm.mod == 0 && read->raw.modrm.rm == 5 ? CT_INSTRUCTION_END : CT_INSTRUCTION_COMPUTED;
}

static enum ct_instruction_kind kind_of_other(const ZydisDecodedInstruction *read)
{
    switch (read->mnemonic) {
    case ZYDIS_MNEMONIC_INT3:
        return CT_INSTRUCTION_BREAK;
    case ZYDIS_MNEMONIC_UD0:
    case ZYDIS_MNEMONIC_UD1:
    case ZYDIS_MNEMONIC_UD2:
    case ZYDIS_MNEMONIC_HLT:
        return CT_INSTRUCTION_END;
    default:
        break;
    }
    switch (read->meta.category) {
    case ZYDIS_CATEGORY_CALL:
        return CT_INSTRUCTION_CALL;
    case ZYDIS_CATEGORY_RET:
        return CT_INSTRUCTION_END;
    case ZYDIS_CATEGORY_UNCOND_BR:
        return kind_of_jump(read);
    default:
        return CT_INSTRUCTION_PLAIN;
    }
}

bool ct_instruction_read(const uint8_t *code, size_t bytes, uint64_t at, struct ct_instruction *instruction)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, make_decoder);
    ZydisDecodedInstruction read;
    *instruction = (struct ct_instruction){ 0 };
    if (!ZYAN_SUCCESS(ZydisDecoderDecodeInstruction(&decoder, NULL, code, bytes, &read)))
        return false;
    instruction->length = read.length;
    instruction->is_landing = read.mnemonic == ZYDIS_MNEMONIC_ENDBR64;
    instruction->is_filler = read.mnemonic == ZYDIS_MNEMONIC_NOP || read.mnemonic == ZYDIS_MNEMONIC_INT3;
    if (read.raw.imm[0].is_relative) {
        instruction->kind = (uint8_t)kind_of_relative(&read);
        instruction->condition = read.opcode & 0x0f;
        instruction->has_target = true;
        instruction->target = at + read.length + (uint64_t)read.raw.imm[0].value.s;
        return true;
    }
    instruction->kind = (uint8_t)kind_of_other(&read);
    /* rip-relative, unless the prefix 0x67 truncates the address to 32 bits */
    const bool is_relative = read.attributes & ZYDIS_ATTRIB_HAS_MODRM && read.raw.modrm.mod == 0 &&
                             read.raw.modrm.rm == 5 && read.raw.disp.size == 32;
    if (is_relative && read.address_width == 64)
        instruction->distance = read.raw.disp.offset;
    else if (is_relative)
        instruction->kind = CT_INSTRUCTION_BOUND;
    return true;
}
