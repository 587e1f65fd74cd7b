#include "image.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Limits on an image, which no known library exceeds. */
enum { SEGMENTS_MOST = 64, DYNAMIC_MOST = 512, SYMBOLS_MOST = 1 << 20, STRINGS_MOST = 16 << 20 };
enum { SONAME_BYTES = 64 };

struct dynamic {
    uint64_t strings, strings_bytes, symbols, versions, hash, gnu_hash, soname;
    uint64_t relocations, relocations_bytes, calls, calls_bytes;
};

static void *load(const struct ct_memory *memory, uint64_t address, size_t bytes, size_t more)
{
    char *part = bytes > 0 ? malloc(bytes + more) : NULL;
    if (!part)
        return NULL;
    if (!ct_memory_read(memory, address, part, bytes)) {
        free(part);
        return NULL;
    }
    memset(part + bytes, 0, more);
    return part;
}

/* In some libraries, pointers in the dynamic section are relative to the image until the loader has relocated
 * them. */
static uint64_t absolute(const struct ct_image *image, uint64_t value)
{
    return value && value < image->begin ? value + image->bias : value;
}

static bool read_dynamic(const struct ct_image *image, struct dynamic *dynamic)
{
    *dynamic = (struct dynamic){ 0 };
    const Elf64_Phdr *segment = image->segments;
    while (segment < image->segments + image->segment_count && segment->p_type != PT_DYNAMIC)
        segment++;
    if (segment == image->segments + image->segment_count)
        return false;
    Elf64_Dyn entries[DYNAMIC_MOST];
    const size_t room = segment->p_memsz / sizeof(*entries);
    const size_t count = room < DYNAMIC_MOST ? room : DYNAMIC_MOST;
    if (!ct_memory_read(image->memory, image->bias + segment->p_vaddr, entries, count * sizeof(*entries)))
        return false;
    for (size_t i = 0; i < count; i++) {
        const uint64_t value = entries[i].d_un.d_val;
        switch (entries[i].d_tag) {
        case DT_NULL:
            return dynamic->strings && dynamic->symbols;
        case DT_STRTAB:
            dynamic->strings = absolute(image, value);
            break;
        case DT_STRSZ:
            dynamic->strings_bytes = value;
            break;
        case DT_SYMTAB:
            dynamic->symbols = absolute(image, value);
            break;
        case DT_VERSYM:
            dynamic->versions = absolute(image, value);
            break;
        case DT_HASH:
            dynamic->hash = absolute(image, value);
            break;
        case DT_GNU_HASH:
            dynamic->gnu_hash = absolute(image, value);
            break;
        case DT_SONAME:
            dynamic->soname = value;
            break;
        case DT_RELA:
            dynamic->relocations = absolute(image, value);
            break;
        case DT_RELASZ:
            dynamic->relocations_bytes = value;
            break;
        case DT_JMPREL:
            dynamic->calls = absolute(image, value);
            break;
        case DT_PLTRELSZ:
            dynamic->calls_bytes = value;
            break;
        default:
            break;
        }
    }
    return false;
}

/* Reads only this one string, because a large library's tables are tens of megabytes in size. */
static bool has_soname(const struct ct_image *image, const struct dynamic *dynamic, const char *soname)
{
    char name[SONAME_BYTES];
    const size_t bytes = strlen(soname) + 1;
    return bytes <= sizeof(name) && dynamic->soname && dynamic->soname < dynamic->strings_bytes &&
           bytes <= dynamic->strings_bytes - dynamic->soname &&
           ct_memory_read(image->memory, dynamic->strings + dynamic->soname, name, bytes) &&
           memcmp(name, soname, bytes) == 0;
}

/* Derives the number of symbols from the GNU hash table, by following the last chain to its end. Returns 0 if
 * the number is unknown. */
static size_t count_symbols(const struct ct_image *image, uint64_t gnu_hash)
{
    enum { BUCKETS, FIRST, BLOOM, SHIFT, WORDS };
    uint32_t header[WORDS];
    if (!ct_memory_read(image->memory, gnu_hash, header, sizeof(header)) || header[BUCKETS] > SYMBOLS_MOST ||
        header[BLOOM] > SYMBOLS_MOST)
        return 0;
    const uint64_t buckets_at = gnu_hash + sizeof(header) + header[BLOOM] * sizeof(uint64_t);
    const uint64_t chains_at = buckets_at + header[BUCKETS] * sizeof(uint32_t);
    uint32_t *buckets = load(image->memory, buckets_at, header[BUCKETS] * sizeof(uint32_t), 0);
    uint32_t last = 0, hash = 0;
    for (uint32_t i = 0; buckets && i < header[BUCKETS]; i++)
        last = buckets[i] > last ? buckets[i] : last;
    free(buckets);
    if (last < header[FIRST])
        return 0;
    for (; last < SYMBOLS_MOST; last++) {
        if (!ct_memory_read(image->memory, chains_at + (last - header[FIRST]) * sizeof(hash), &hash,
                            sizeof(hash)))
            return 0;
        if (hash & 1)
            return last + 1;
    }
    return 0;
}

static int read_symbols(struct ct_image *image, const struct dynamic *dynamic)
{
    uint32_t hash[2] = { 0 };
    if (dynamic->strings_bytes > STRINGS_MOST)
        return -ENOEXEC;
    if (dynamic->gnu_hash)
        image->symbol_count = count_symbols(image, dynamic->gnu_hash);
    else if (dynamic->hash && ct_memory_read(image->memory, dynamic->hash, hash, sizeof(hash)))
        image->symbol_count = hash[1];
    if (image->symbol_count > SYMBOLS_MOST)
        return -ENOEXEC;
    image->strings = load(image->memory, dynamic->strings, dynamic->strings_bytes, 1);
    image->symbols = load(image->memory, dynamic->symbols, image->symbol_count * sizeof(*image->symbols), 0);
    if (dynamic->versions)
        image->versions =
            load(image->memory, dynamic->versions, image->symbol_count * sizeof(*image->versions), 0);
    if (!image->strings || !image->symbols)
        return -ENOEXEC;
    image->strings_bytes = dynamic->strings_bytes;
    return 0;
}

static int read_image(struct ct_image *image)
{
    Elf64_Ehdr header;
    if (!ct_memory_read(image->memory, image->begin, &header, sizeof(header)) ||
        memcmp(header.e_ident, ELFMAG, SELFMAG) != 0 || header.e_ident[EI_CLASS] != ELFCLASS64 ||
        header.e_machine != EM_X86_64 || header.e_type != ET_DYN ||
        header.e_phentsize != sizeof(Elf64_Phdr) || header.e_phnum > SEGMENTS_MOST)
        return -ENOEXEC;
    image->segments =
        load(image->memory, image->begin + header.e_phoff, header.e_phnum * sizeof(*image->segments), 0);
    if (!image->segments)
        return -ENOEXEC;
    image->segment_count = header.e_phnum;
    const uint64_t page = (uint64_t)sysconf(_SC_PAGESIZE);
    for (size_t i = 0; i < image->segment_count; i++) {
        if (image->segments[i].p_type != PT_LOAD)
            continue;
        image->bias = image->begin - image->segments[i].p_vaddr / page * page;
        return 0;
    }
    return -ENOEXEC;
}

int ct_image_open(struct ct_image *image, const struct ct_memory *memory, const struct ct_mapping *first)
{
    *image = (struct ct_image){ .memory = memory, .begin = first->begin };
    const int error = read_image(image);
    if (error)
        ct_image_close(image);
    return error;
}

void ct_image_close(struct ct_image *image)
{
    free(image->segments);
    free(image->symbols);
    free(image->versions);
    free(image->strings);
    *image = (struct ct_image){ 0 };
}

/* Returns whether a file name has the soname's stem. The stem of "libcuda.so.1", "libcuda.so.580.65" and
 * "libcuda-580.so" is "libcuda". */
static bool has_stem(const char *path, const char *soname)
{
    const char *slash = strrchr(path, '/'), *end = strstr(soname, ".so");
    const size_t bytes = end ? (size_t)(end - soname) : strlen(soname);
    return slash && strncmp(slash + 1, soname, bytes) == 0 &&
           (slash[1 + bytes] == '.' || slash[1 + bytes] == '-');
}

static bool open_if_named(struct ct_image *image, const struct ct_memory *memory,
                          const struct ct_mapping *first, const char *soname)
{
    struct dynamic dynamic;
    if (ct_image_open(image, memory, first) != 0)
        return false;
    if (read_dynamic(image, &dynamic) && has_soname(image, &dynamic, soname) &&
        read_symbols(image, &dynamic) == 0)
        return true;
    ct_image_close(image);
    return false;
}

int ct_image_find(struct ct_image *image, const struct ct_memory *memory, const char *soname)
{
    /* Files with a matching name are examined first, because a process may map thousands of files. */
    for (int is_stem = 1; is_stem >= 0; is_stem--) {
        for (size_t i = 0; i < memory->count; i++) {
            const struct ct_mapping *mapping = &memory->mappings[i];
            if (mapping->offset == 0 && mapping->is_readable && mapping->path[0] == '/' &&
                has_stem(mapping->path, soname) == is_stem && open_if_named(image, memory, mapping, soname))
                return 0;
        }
    }
    *image = (struct ct_image){ 0 };
    return -ENOENT;
}

const char *ct_image_function(const struct ct_image *image, size_t index, uint64_t *address)
{
    const Elf64_Sym *symbol = &image->symbols[index];
    if (ELF64_ST_TYPE(symbol->st_info) != STT_FUNC || ELF64_ST_BIND(symbol->st_info) == STB_LOCAL ||
        symbol->st_shndx == SHN_UNDEF || symbol->st_name >= image->strings_bytes || symbol->st_value == 0)
        return NULL;
    *address = image->bias + symbol->st_value;
    return image->strings + symbol->st_name;
}

uint64_t ct_image_symbol(const struct ct_image *image, const char *name)
{
    enum { VERSION_IS_OLD = 0x8000 };
    uint64_t found = 0, address;
    for (size_t i = 0; i < image->symbol_count; i++) {
        const char *own = ct_image_function(image, i, &address);
        if (!own || strcmp(own, name) != 0)
            continue;
        if (!image->versions || !(image->versions[i] & VERSION_IS_OLD))
            return address;
        found = address;
    }
    return found;
}

uint64_t ct_image_object(const struct ct_image *image, const char *name, size_t *bytes)
{
    for (size_t i = 0; i < image->symbol_count; i++) {
        const Elf64_Sym *symbol = &image->symbols[i];
        if (ELF64_ST_TYPE(symbol->st_info) != STT_OBJECT || symbol->st_shndx == SHN_UNDEF ||
            symbol->st_name >= image->strings_bytes || strcmp(image->strings + symbol->st_name, name) != 0)
            continue;
        *bytes = symbol->st_size;
        return image->bias + symbol->st_value;
    }
    return 0;
}

/* Finds the relocation of a function in a table of them. */
static uint64_t find_binding(const struct ct_image *image, uint64_t at, uint64_t bytes, const char *name)
{
    enum { PART = 256 };
    Elf64_Rela part[PART];
    uint64_t address = 0;
    for (uint64_t left = bytes / sizeof(*part); left > 0 && !address;) {
        const size_t count = left < PART ? left : PART;
        if (!ct_memory_read(image->memory, at, part, count * sizeof(*part)))
            return 0;
        for (size_t i = 0; i < count && !address; i++) {
            const uint64_t type = ELF64_R_TYPE(part[i].r_info), index = ELF64_R_SYM(part[i].r_info);
            if ((type == R_X86_64_GLOB_DAT || type == R_X86_64_JUMP_SLOT) && index < image->symbol_count &&
                image->symbols[index].st_name < image->strings_bytes &&
                strcmp(image->strings + image->symbols[index].st_name, name) == 0)
                address = image->bias + part[i].r_offset;
        }
        at += count * sizeof(*part);
        left -= count;
    }
    uint64_t bound = 0;
    return address && ct_memory_read(image->memory, address, &bound, sizeof(bound)) ? bound : 0;
}

uint64_t ct_image_binding(const struct ct_image *image, const char *name)
{
    struct dynamic dynamic;
    if (!read_dynamic(image, &dynamic) || dynamic.relocations_bytes > STRINGS_MOST ||
        dynamic.calls_bytes > STRINGS_MOST)
        return 0;
    const uint64_t bound = find_binding(image, dynamic.relocations, dynamic.relocations_bytes, name);
    return bound ? bound : find_binding(image, dynamic.calls, dynamic.calls_bytes, name);
}

static bool holds(const struct ct_image *image, const Elf64_Phdr *segment, uint64_t address, size_t bytes)
{
    const uint64_t begin = image->bias + segment->p_vaddr;
    return address >= begin && bytes <= segment->p_memsz && address - begin <= segment->p_memsz - bytes;
}

enum ct_image_use ct_image_use(const struct ct_image *image, uint64_t address, size_t bytes)
{
    enum ct_image_use use = CT_IMAGE_NONE;
    for (const Elf64_Phdr *segment = image->segments; segment < image->segments + image->segment_count;
         segment++) {
        if (!holds(image, segment, address, bytes))
            continue;
        if (segment->p_type == PT_GNU_RELRO)
            return CT_IMAGE_NONE;
        if (segment->p_type == PT_LOAD)
            use = segment->p_flags & PF_X   ? CT_IMAGE_TEXT
                  : segment->p_flags & PF_W ? CT_IMAGE_DATA
                                            : CT_IMAGE_NONE;
    }
    return use;
}
