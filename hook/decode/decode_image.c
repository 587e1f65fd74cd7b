/* Parses images of code, which the program passes to the driver without their length. The length is found in
 * a different way for each format, and some formats list their kernels. Compressed parts of an image are not
 * read, because the hook has no code to decompress them. */
#include "decode_image.h"

#include "target_access.h"

#include <assert.h>
#include <elf.h>
#include <string.h>

enum { TEXT_BYTES_MAX = 1 << 28 };

/* The wrapper that nvcc generates for a fat binary (__fatBinC_Wrapper_t in fatbinary_section.h of CUDA
 * 13.0). */
struct wrapper {
    uint32_t magic, version;
    uint64_t image;
    uint64_t file_name;
};

/* The header of a fat binary, as written by CUDA 13.0's fatbinary tool. */
struct fatbin {
    uint32_t magic;
    uint16_t version, head_bytes;
    uint64_t payload_bytes;
};
static_assert(sizeof(struct fatbin) == 16, "fat binary");

/* A cubin is an ELF file that ends with its section headers or its program headers. */
static bool elf_bytes(uint64_t image, uint64_t *bytes)
{
    Elf64_Ehdr head;
    if (!ct_target_read(image, &head, sizeof(head)))
        return false;
    const uint64_t sections_end = head.e_shoff + (uint64_t)head.e_shnum * head.e_shentsize;
    const uint64_t segments_end = head.e_phoff + (uint64_t)head.e_phnum * head.e_phentsize;
    *bytes = sections_end > segments_end ? sections_end : segments_end;
    return true;
}

static bool fatbin_bytes(uint64_t image, uint64_t *bytes)
{
    struct fatbin head;
    if (!ct_target_read(image, &head, sizeof(head)))
        return false;
    *bytes = head.head_bytes + head.payload_bytes;
    return true;
}

/* Compares byte by byte, since the image may be text that is shorter than the magic number. */
static bool begins_with(const unsigned char *image, uint32_t magic)
{
    for (int i = 0; i < 4; i++) {
        if (image[i] != (uint8_t)(magic >> 8 * i))
            return false;
    }
    return true;
}

/* Like begins_with(), for an image in the program's memory. */
static bool begins_at(uint64_t image, uint32_t magic)
{
    for (int i = 0; i < 4; i++) {
        uint8_t byte;
        if (!ct_target_read(image + (unsigned)i, &byte, 1) || byte != (uint8_t)(magic >> 8 * i))
            return false;
    }
    return true;
}

/* True if the image begins like text, such as PTX. */
static bool is_text(uint64_t image)
{
    uint8_t first;
    return ct_target_read(image, &first, 1) && first < 0x7f &&
           (first >= ' ' || first == '\0' || (first >= '\t' && first <= '\r'));
}

/* Returns the address of the image in a wrapper, or 0 if the wrapper contains none or cannot be read. If
 * there is no wrapper at `address`, returns `address`. */
static uint64_t unwrapped(uint64_t address)
{
    struct wrapper wrapper;
    if (!begins_at(address, CT_WRAPPER_MAGIC))
        return address;
    return ct_target_read(address, &wrapper, sizeof(wrapper)) ? wrapper.image : 0;
}

bool ct_image_bytes(uint64_t address, uint64_t *bytes)
{
    const uint64_t image = unwrapped(address);
    if (!image)
        return false;
    if (begins_at(image, CT_FATBIN_MAGIC))
        return fatbin_bytes(image, bytes);
    if (begins_at(image, CT_CUBIN_MAGIC))
        return elf_bytes(image, bytes);
    return is_text(image) && ct_target_text_bytes(image, TEXT_BYTES_MAX, bytes);
}

/* ---- the kernels of an image ---- */

/* The kernel found in an image so far, and whether the image may contain others. */
struct found {
    const char *name; /* NULL: none yet */
    size_t bytes;
    bool others; /* there is another kernel, or a part that could not be read */
};

static void add(struct found *found, const char *name, size_t bytes)
{
    if (!found->name) {
        found->name = name;
        found->bytes = bytes;
    } else if (found->bytes != bytes || memcmp(found->name, name, bytes) != 0) {
        found->others = true;
    }
}

/* True if the range is inside an image of `bytes` bytes. */
static bool lies_within(uint64_t bytes, uint64_t offset, uint64_t length)
{
    return offset <= bytes && length <= bytes - offset;
}

static void add_symbols(struct found *found, const char *image, const Elf64_Shdr *symbols,
                        const Elf64_Shdr *strings)
{
    enum { STO_CUDA_ENTRY = 0x10 }; /* as shown by cuobjdump -elf and found in cubins from CUDA 13.0 */
    for (uint64_t at = 0; at + sizeof(Elf64_Sym) <= symbols->sh_size; at += sizeof(Elf64_Sym)) {
        Elf64_Sym symbol;
        memcpy(&symbol, image + symbols->sh_offset + at, sizeof(symbol));
        if (ELF64_ST_TYPE(symbol.st_info) != STT_FUNC || !(symbol.st_other & STO_CUDA_ENTRY))
            continue;
        if (symbol.st_name >= strings->sh_size) {
            found->others = true;
            continue;
        }
        const char *name = image + strings->sh_offset + symbol.st_name;
        add(found, name, strnlen(name, strings->sh_size - symbol.st_name));
    }
}

static Elf64_Shdr section_at(const char *image, const Elf64_Ehdr *head, uint32_t number)
{
    Elf64_Shdr section;
    memcpy(&section, image + head->e_shoff + (uint64_t)number * sizeof(section), sizeof(section));
    return section;
}

static void search_elf(struct found *found, const char *image, uint64_t bytes)
{
    Elf64_Ehdr head;
    bool searched = false;
    if (!lies_within(bytes, 0, sizeof(head))) {
        found->others = true;
        return;
    }
    memcpy(&head, image, sizeof(head));
    const bool readable = head.e_ident[EI_CLASS] == ELFCLASS64 && head.e_shentsize == sizeof(Elf64_Shdr) &&
                          lies_within(bytes, head.e_shoff, (uint64_t)head.e_shnum * sizeof(Elf64_Shdr));
    for (uint32_t i = 0; readable && i < head.e_shnum; i++) {
        const Elf64_Shdr symbols = section_at(image, &head, i);
        if (symbols.sh_type != SHT_SYMTAB || symbols.sh_link >= head.e_shnum)
            continue;
        const Elf64_Shdr strings = section_at(image, &head, symbols.sh_link);
        if (!lies_within(bytes, symbols.sh_offset, symbols.sh_size) ||
            !lies_within(bytes, strings.sh_offset, strings.sh_size))
            continue;
        add_symbols(found, image, &symbols, &strings);
        searched = true;
    }
    found->others |= !searched;
}

static bool in_name(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' ||
           c == '$' || c == '%';
}

/* Returns the end of the comment that begins at `at`, or `at` itself if no comment begins there. */
static const char *skip_comment(const char *at, const char *end)
{
    if (end - at < 2 || at[0] != '/' || (at[1] != '/' && at[1] != '*'))
        return at;
    const bool to_line_end = at[1] == '/';
    for (at += 2; at < end; at++) {
        if (to_line_end ? *at == '\n' : *at == '/' && at[-1] == '*')
            return at + 1;
    }
    return end;
}

/* Searches PTX for ".entry NAME" outside comments. */
static void search_text(struct found *found, const char *text, uint64_t bytes)
{
    static const char entry[] = ".entry";
    const size_t entry_bytes = sizeof(entry) - 1;
    const char *const end = text + bytes;
    for (const char *at = text; at < end;) {
        const char *behind = skip_comment(at, end);
        if (behind != at) {
            at = behind;
            continue;
        }
        const bool keyword = *at == '.' && (size_t)(end - at) > entry_bytes &&
                             memcmp(at, entry, entry_bytes) == 0 && !in_name(at[entry_bytes]);
        at += keyword ? entry_bytes : 1;
        if (!keyword)
            continue;
        while (at < end && (*at == ' ' || *at == '\t' || *at == '\n' || *at == '\r'))
            at++;
        const char *const name = at;
        while (at < end && in_name(*at))
            at++;
        if (at > name)
            add(found, name, (size_t)(at - name));
        else
            found->others = true;
    }
}

/* The header of each part of a fat binary, as written by CUDA 13.0's fatbinary tool. The parts are for
 * different devices, and the driver does not report which part it uses. */
struct part {
    uint16_t kind, version;
    uint32_t head_bytes;
    uint64_t payload_bytes;
    uint32_t reserved[6];
    uint64_t flags;
};
static_assert(sizeof(struct part) == 48, "a fat binary's part");
enum { PART_PTX = 1, PART_ELF = 2, PART_LZ4 = 0x2000, PART_ZSTD = 0x8000 };

static void search_fatbin(struct found *found, const char *image, uint64_t bytes)
{
    struct fatbin head;
    struct part part;
    memcpy(&head, image, sizeof(head));
    uint64_t at = head.head_bytes;
    while (!found->others && lies_within(bytes, at, sizeof(part))) {
        memcpy(&part, image + at, sizeof(part));
        if (part.head_bytes < sizeof(part) || !lies_within(bytes, at, part.head_bytes) ||
            !lies_within(bytes - at - part.head_bytes, 0, part.payload_bytes))
            break;
        const char *payload = image + at + part.head_bytes;
        if (part.flags & (PART_LZ4 | PART_ZSTD))
            found->others = true;
        else if (part.kind == PART_ELF && part.payload_bytes > 4 &&
                 begins_with((const unsigned char *)payload, CT_CUBIN_MAGIC))
            search_elf(found, payload, part.payload_bytes);
        else if (part.kind == PART_PTX)
            search_text(found, payload, strnlen(payload, part.payload_bytes));
        else
            found->others = true;
        at += part.head_bytes + part.payload_bytes;
    }
    found->others |= at != bytes;
}

const char *ct_image_only_kernel(uint64_t address, size_t *name_bytes)
{
    struct found found = { 0 };
    uint64_t bytes = 0;
    if (!ct_image_bytes(address, &bytes))
        return NULL;
    const char *image = ct_target_block(unwrapped(address), bytes);
    if (!image)
        return NULL;
    if (begins_with((const unsigned char *)image, CT_FATBIN_MAGIC))
        search_fatbin(&found, image, bytes);
    else if (begins_with((const unsigned char *)image, CT_CUBIN_MAGIC))
        search_elf(&found, image, bytes);
    else
        search_text(&found, image, bytes);
    *name_bytes = found.bytes;
    return found.others ? NULL : found.name;
}
