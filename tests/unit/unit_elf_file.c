/* Tests the ELF reader (tools/base/elf_reader.c). Checks what the reader returns for this program, and that
 * it does not read out of bounds in truncated or damaged files, which AddressSanitizer would detect. */
#include "../ensure.h"
#include "elf_reader.h"

#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

static const struct {
    Elf64_Nhdr header;
    char owner[8];
    uint32_t value[2];
} note __attribute__((section(".note.unit"), used, aligned(4))) = {
    .header = { .n_namesz = 5, .n_descsz = 8, .n_type = 7 },
    .owner = "unit",
    .value = { 11, 12 },
};

__attribute__((visibility("default"))) int exported_b(void);
int exported_b(void)
{
    return 2;
}
__attribute__((visibility("default"))) int exported_a(void);
int exported_a(void)
{
    return exported_b() - 1;
}

static bool wanted(const char *name)
{
    return strncmp(name, "exported_", 9) == 0;
}

static bool all(const char *name)
{
    return strlen(name) < 1 << 20;
}

static void read_this_program(void)
{
    struct ct_elf elf;
    struct ct_elf_names names;
    uint32_t value[2] = { 0 };
    ENSURE(ct_elf_open(&elf, "/proc/self/exe") == 0);
    ENSURE(elf.native && elf.program && elf.interpreter && strstr(elf.interpreter, "ld-linux"));
    bool libc = false;
    for (const char **needed = elf.needed; *needed; needed++)
        libc = libc || strcmp(*needed, "libc.so.6") == 0;
    ENSURE(libc);
    ENSURE(ct_elf_functions(&elf, wanted, &names) == 0);
    ENSURE(names.count == 2 && strcmp(names.name[0], "exported_a") == 0);
    ENSURE(ct_elf_names_have(&names, "exported_b") && !ct_elf_names_have(&names, "exported_c"));
    ct_elf_names_free(&names);
    ENSURE(ct_elf_note(&elf, "unit", 7, value, sizeof(value)) == 0 && value[0] == 11 && value[1] == 12);
    ENSURE(ct_elf_note(&elf, "unit", 8, value, sizeof(value)) == -ENODATA);
    ENSURE(ct_elf_note(&elf, "unit", 7, value, 4) == -ENODATA);
    ct_elf_close(&elf);
}

static void read_a_library(void)
{
    struct ct_elf elf;
    struct ct_elf_names names;
    ENSURE(ct_elf_open(&elf, "/proc/self/exe") == 0);
    char interpreter[4096];
    snprintf(interpreter, sizeof(interpreter), "%s", elf.interpreter);
    ct_elf_close(&elf);
    ENSURE(ct_elf_open(&elf, interpreter) == 0);
    ENSURE(!elf.program && !elf.interpreter && strncmp(elf.soname, "ld-linux", 8) == 0 && !elf.needed[0]);
    ENSURE(ct_elf_versions(&elf, &names) == 0);
    ENSURE(ct_elf_names_have(&names, "GLIBC_PRIVATE") && !ct_elf_names_have(&names, elf.soname));
    ct_elf_names_free(&names);
    ct_elf_close(&elf);
}

static void read_no_elf(void)
{
    struct ct_elf elf;
    ENSURE(ct_elf_open(&elf, "/proc/self/status") == -ENOEXEC);
    ENSURE(ct_elf_open(&elf, "/dev/null") == -EACCES);
    ENSURE(ct_elf_open(&elf, "/nowhere/at/all") == -ENOENT);
    ct_elf_close(&elf);
}

static void read_everything(const char *path)
{
    struct ct_elf elf;
    struct ct_elf_names names;
    uint32_t value[2];
    if (ct_elf_open(&elf, path) != 0)
        return;
    size_t length = elf.interpreter ? strlen(elf.interpreter) : 0;
    length += elf.soname ? strlen(elf.soname) : 0;
    for (const char **needed = elf.needed; needed && *needed; needed++)
        length += strlen(*needed);
    ENSURE(length < 1 << 24);
    ct_elf_functions(&elf, all, &names);
    ct_elf_names_free(&names);
    ct_elf_versions(&elf, &names);
    ct_elf_names_free(&names);
    ct_elf_note(&elf, "unit", 7, value, sizeof(value));
    ct_elf_close(&elf);
}

/* Makes a file that contains only the given headers. The rest of the file is a hole. */
static int sparse(const void *headers, size_t bytes, off_t length, char path[64])
{
    const int fd = memfd_create("sparse", 0);
    ENSURE(fd >= 0 && write(fd, headers, bytes) == (ssize_t)bytes && ftruncate(fd, length) == 0);
    snprintf(path, 64, "/proc/self/fd/%d", fd);
    return fd;
}

static Elf64_Ehdr own_header(void)
{
    Elf64_Ehdr header;
    const int fd = open("/proc/self/exe", O_RDONLY);
    ENSURE(fd >= 0 && read(fd, &header, sizeof(header)) == (ssize_t)sizeof(header));
    close(fd);
    header.e_phnum = header.e_shnum = 0;
    return header;
}

/* A file with the maximum number of dynamic segments, which all have the maximum size. Reading all of these
 * segments would take hours. */
static void read_many_segments(void)
{
    enum { SEGMENTS = 65535, BYTES = 64 << 20 };
    struct {
        Elf64_Ehdr header;
        Elf64_Phdr segment[SEGMENTS];
    } *file = calloc(1, sizeof(*file));
    char path[64];
    ENSURE(file);
    file->header = own_header();
    file->header.e_phoff = sizeof(file->header);
    file->header.e_phnum = SEGMENTS;
    for (int i = 0; i < SEGMENTS; i++)
        file->segment[i] = (Elf64_Phdr){ .p_type = PT_DYNAMIC, .p_offset = sizeof(*file), .p_filesz = BYTES };
    const int fd = sparse(file, sizeof(*file), (off_t)sizeof(*file) + BYTES, path);
    read_everything(path);
    close(fd);
    free(file);
}

/* A file whose symbol table is beyond the end of the file, but whose string table is inside the file. */
static void read_half_a_table(void)
{
    struct {
        Elf64_Ehdr header;
        Elf64_Shdr section[2];
    } file = { .header = own_header() };
    char path[64];
    file.header.e_shoff = sizeof(file.header);
    file.header.e_shnum = 2;
    for (uint32_t type = 0; type < 2; type++) {
        file.section[0] = (Elf64_Shdr){
            .sh_type = type ? SHT_DYNSYM : SHT_GNU_verdef, .sh_offset = 1 << 20, .sh_size = 4096, .sh_link = 1
        };
        file.section[1] = (Elf64_Shdr){ .sh_type = SHT_STRTAB, .sh_offset = 0, .sh_size = 64 };
        const int fd = sparse(&file, sizeof(file), 4096, path);
        read_everything(path);
        close(fd);
    }
}

/* Random numbers that are the same in every run. */
static uint64_t noise = 1;
static uint64_t next(uint64_t below)
{
    noise = noise * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return (noise >> 20) % below;
}

/* Changes words in the headers, or in the tables that the headers point to. */
static void read_damaged(void)
{
    enum { HEADERS = 1024 };
    const int rounds = tier_is_short() ? 5000 : 20000;
    static const uint64_t words[] = { 0, 1, 8, 0xffff, 0x7fffffff, 0xffffffff, UINT64_MAX, UINT64_MAX / 2 };
    const int from = open("/proc/self/exe", O_RDONLY);
    struct stat status;
    ENSURE(from >= 0 && fstat(from, &status) == 0);
    const size_t bytes = (size_t)status.st_size;
    const uint8_t *whole = mmap(NULL, bytes, PROT_READ, MAP_PRIVATE, from, 0);
    const int copy = memfd_create("damaged", 0);
    ENSURE(whole != MAP_FAILED && copy >= 0 && write(copy, whole, bytes) == (ssize_t)bytes);
    char path[64];
    snprintf(path, sizeof(path), "/proc/self/fd/%d", copy);
    Elf64_Ehdr header;
    memcpy(&header, whole, sizeof(header));
    const uint64_t places[][2] = { { 0, HEADERS },
                                   { header.e_shoff, bytes - header.e_shoff },
                                   { 0, bytes < 16384 ? bytes : 16384 } };
    for (int round = 0; round < rounds; round++) {
        const uint64_t *place = places[next(3)];
        const size_t width = 1UL << next(4);
        const uint64_t at = place[0] + next(place[1] - width);
        const uint64_t word = next(2) ? words[next(8)] : next(UINT32_MAX);
        ENSURE(pwrite(copy, &word, width, (off_t)at) == (ssize_t)width);
        read_everything(path);
        if (next(4)) /* undo the change, because damage would accumulate */
            ENSURE(pwrite(copy, whole + at, width, (off_t)at) == (ssize_t)width);
        if (round % 64 == 63)
            ENSURE(pwrite(copy, whole, bytes, 0) == (ssize_t)bytes);
    }
    ENSURE(pwrite(copy, whole, bytes, 0) == (ssize_t)bytes);
    for (size_t cut = bytes; cut > 0; cut = cut * 15 / 16) {
        ENSURE(ftruncate(copy, (off_t)cut) == 0);
        read_everything(path);
    }
    close(copy);
    close(from);
}

int main(void)
{
    read_this_program();
    read_a_library();
    read_no_elf();
    read_many_segments();
    read_half_a_table();
    read_damaged();
    return exported_a() - 1;
}
