/* Tests the hook's decode_image.c, which returns an image's only kernel, or nothing if there is any doubt.
 * The test builds several kinds of images: cubins, fat binaries with parts for several devices, compressed
 * parts, PTX, and truncated images. */
#include "decode_image.h"

#include <elf.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

static void ensure(bool condition, const char *what)
{
    if (!condition) {
        fprintf(stderr, "%s\n", what);
        exit(EXIT_FAILURE);
    }
}

/* Places an image so that it ends where readable memory ends. */
static const void *at_the_end(const void *image, size_t bytes)
{
    const size_t page = 4096, pages = (bytes + page - 1) / page;
    char *memory = mmap(NULL, (pages + 1) * page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    ensure(memory != MAP_FAILED && mprotect(memory + pages * page, page, PROT_NONE) == 0, "memory");
    return memcpy(memory + pages * page - bytes, image, bytes);
}

static bool only_kernel_is(const void *image, size_t bytes, const char *name)
{
    size_t length = 0;
    const char *found = ct_image_only_kernel((uint64_t)(uintptr_t)at_the_end(image, bytes), &length);
    return name ? found && length == strlen(name) && memcmp(found, name, length) == 0 : !found;
}

struct cubin {
    Elf64_Ehdr head;
    Elf64_Sym symbols[4];
    char strings[64];
    Elf64_Shdr sections[3];
};

/* Makes a cubin with two functions, a device function, and a variable. The two functions are kernels if they
 * have names. */
static struct cubin cubin(const char *first, const char *second)
{
    enum { ENTRY = 0x10 };
    struct cubin made = { .head = { .e_ident = { 0x7f, 'E', 'L', 'F', ELFCLASS64 },
                                    .e_shoff = offsetof(struct cubin, sections),
                                    .e_shnum = 3,
                                    .e_shentsize = sizeof(Elf64_Shdr) },
                          .sections = { [1] = { .sh_type = SHT_SYMTAB,
                                                .sh_link = 2,
                                                .sh_offset = offsetof(struct cubin, symbols),
                                                .sh_size = sizeof(made.symbols) },
                                        [2] = { .sh_type = SHT_STRTAB,
                                                .sh_offset = offsetof(struct cubin, strings),
                                                .sh_size = sizeof(made.strings) } } };
    const char *names[4] = { first, second, "helper", "variable" };
    uint32_t at = 1;
    for (int i = 0; i < 4; i++) {
        if (!names[i])
            continue;
        strcpy(made.strings + at, names[i]);
        made.symbols[i] = (Elf64_Sym){ .st_name = at,
                                       .st_info = ELF64_ST_INFO(STB_GLOBAL, i < 3 ? STT_FUNC : STT_OBJECT),
                                       .st_other = i < 2 ? ENTRY : 0 };
        at += (uint32_t)strlen(names[i]) + 1;
    }
    return made;
}

struct part {
    uint16_t kind, version;
    uint32_t head_bytes;
    uint64_t payload_bytes;
    uint32_t reserved[6];
    uint64_t flags, more[2];
};

static char fat[8192];
static size_t fat_bytes;

static void fat_begin(void)
{
    static const uint16_t version = 1, head_bytes = 16;
    memset(fat, 0, sizeof(fat));
    memcpy(fat, &(uint32_t){ 0xba55ed50 }, 4);
    memcpy(fat + 4, &version, 2);
    memcpy(fat + 6, &head_bytes, 2);
    fat_bytes = 16;
}

static void fat_add(uint16_t kind, uint64_t flags, const void *payload, size_t bytes)
{
    const struct part part = {
        .kind = kind, .version = 0x101, .head_bytes = sizeof(part), .payload_bytes = bytes, .flags = flags
    };
    memcpy(fat + fat_bytes, &part, sizeof(part));
    memcpy(fat + fat_bytes + sizeof(part), payload, bytes);
    fat_bytes += sizeof(part) + bytes;
    const uint64_t payload_bytes = fat_bytes - 16;
    memcpy(fat + 8, &payload_bytes, 8);
}

static bool fat_has_only(const char *name)
{
    return only_kernel_is(fat, fat_bytes, name);
}

static void cubins(void)
{
    struct cubin one = cubin("one", NULL), two = cubin("one", "two"), none = cubin(NULL, NULL);
    ensure(only_kernel_is(&one, sizeof(one), "one"), "the only kernel of a cubin");
    ensure(only_kernel_is(&two, sizeof(two), NULL), "none of two kernels");
    ensure(only_kernel_is(&none, sizeof(none), NULL), "no kernel");
    one.symbols[0].st_name = sizeof(one.strings) + 1;
    ensure(only_kernel_is(&one, sizeof(one), NULL), "a name beyond the strings");
    one = cubin("one", NULL);
    memset(one.strings, 'x', sizeof(one.strings)); /* not terminated, because the name ends where the table
                                                    * ends */
    one.sections[1].sh_size = (uint64_t)1 << 40;
    ensure(only_kernel_is(&one, sizeof(one), NULL), "symbols beyond the image");
}

static void fat_binaries(void)
{
    enum { PTX = 1, ELF = 2, PLAIN = 0x11, LZ4 = 0x2011, ZSTD = 0x8011 };
    static const char ptx[] = ".visible .entry one(\n)";
    const struct cubin one = cubin("one", NULL), other = cubin("other", NULL);
    fat_begin();
    fat_add(ELF, PLAIN, &one, sizeof(one));
    ensure(fat_has_only("one"), "a fat binary of one part");
    fat_add(PTX, PLAIN, ptx, sizeof(ptx));
    ensure(fat_has_only("one"), "a fat binary whose parts agree");
    const size_t agreed = fat_bytes;
    fat_bytes -= 4;
    memcpy(fat + 8, &(uint64_t){ fat_bytes - 16 }, 8);
    ensure(fat_has_only(NULL), "a part that is cut short");
    fat_bytes = agreed;
    fat_add(ELF, PLAIN, &other, sizeof(other));
    ensure(fat_has_only(NULL), "a fat binary whose parts differ");
    for (int i = 0; i < 2; i++) {
        fat_begin();
        fat_add(ELF, PLAIN, &one, sizeof(one));
        fat_add(ELF, i ? LZ4 : ZSTD, "compressed", 10);
        ensure(fat_has_only(NULL), "a fat binary with a part that cannot be read");
    }
}

static void texts(void)
{
    static const char one[] =
        "// .globl one\n.version 8.0\n/* .entry not_this */ .visible .entry\n\t_Z3onePf(.param .u64 x)\n"
        "{ // .entry nor this\n}";
    static const char two[] = ".entry one() {} .entry two() {}", none[] = ".func one() {} .entryless";
    ensure(only_kernel_is(one, sizeof(one), "_Z3onePf"), "the only kernel of PTX");
    ensure(only_kernel_is(two, sizeof(two), NULL), "none of two in PTX");
    ensure(only_kernel_is(none, sizeof(none), NULL), "PTX without a kernel");
    ensure(only_kernel_is("/* .entry x", sizeof("/* .entry x"), NULL), "PTX in a comment without an end");
}

int main(void)
{
    cubins();
    fat_binaries();
    texts();
    return EXIT_SUCCESS;
}
