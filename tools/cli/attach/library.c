#include "library.h"

#include "installed.h"
#include "say.h"
#include "visit.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { LIBRARY_BYTES_MOST = 256 << 20 };

static uint8_t *read_whole(int fd, size_t bytes)
{
    uint8_t *text = malloc(bytes + 1);
    size_t n = 0;
    ssize_t got = 1;
    while (text && n < bytes && (got = read(fd, text + n, bytes - n)) > 0)
        n += (size_t)got;
    if (text && n < bytes) {
        free(text);
        return NULL;
    }
    return text;
}

static const Elf64_Phdr *segments_of(const struct ct_library *library, size_t *count)
{
    const Elf64_Ehdr *header = (const Elf64_Ehdr *)(const void *)library->bytes;
    if (library->count < sizeof(*header) || memcmp(header->e_ident, ELFMAG, SELFMAG) != 0 ||
        header->e_machine != EM_X86_64 || header->e_phentsize != sizeof(Elf64_Phdr) ||
        header->e_phoff % sizeof(uint64_t) != 0 || header->e_phoff > library->count ||
        header->e_phnum > (library->count - header->e_phoff) / sizeof(Elf64_Phdr))
        return NULL;
    *count = header->e_phnum;
    return (const Elf64_Phdr *)(const void *)(library->bytes + header->e_phoff);
}

static const void *table_at(const struct ct_library *library, const Elf64_Shdr *section)
{
    return section->sh_offset <= library->count && section->sh_size <= library->count - section->sh_offset
               ? library->bytes + section->sh_offset
               : NULL;
}

/* Returns the value of a function's symbol, or 0 if the file has no such symbol. */
static uint64_t find_symbol(const struct ct_library *library, const char *name)
{
    const Elf64_Ehdr *header = (const Elf64_Ehdr *)(const void *)library->bytes;
    if (header->e_shoff > library->count || header->e_shentsize != sizeof(Elf64_Shdr) ||
        header->e_shnum > (library->count - header->e_shoff) / sizeof(Elf64_Shdr))
        return 0;
    const Elf64_Shdr *sections = (const Elf64_Shdr *)(const void *)(library->bytes + header->e_shoff);
    for (size_t i = 0; i < header->e_shnum; i++) {
        if (sections[i].sh_type != SHT_DYNSYM || sections[i].sh_link >= header->e_shnum)
            continue;
        const Elf64_Sym *symbols = table_at(library, &sections[i]);
        const char *strings = table_at(library, &sections[sections[i].sh_link]);
        const size_t bytes = sections[sections[i].sh_link].sh_size;
        for (size_t n = 0; symbols && strings && n < sections[i].sh_size / sizeof(*symbols); n++) {
            if (symbols[n].st_shndx != SHN_UNDEF && symbols[n].st_name < bytes &&
                strncmp(strings + symbols[n].st_name, name, bytes - symbols[n].st_name) == 0)
                return symbols[n].st_value;
        }
    }
    return 0;
}

/* Drops the sections after the loaded part, which would only waste the process's memory. */
static void leave_sections_away(struct ct_library *library)
{
    size_t count = 0, end = 0;
    const Elf64_Phdr *segments = segments_of(library, &count);
    for (size_t i = 0; i < count; i++) {
        if (segments[i].p_type == PT_LOAD && segments[i].p_offset + segments[i].p_filesz > end)
            end = segments[i].p_offset + segments[i].p_filesz;
    }
    Elf64_Ehdr *header = (Elf64_Ehdr *)(void *)library->bytes;
    header->e_shoff = 0;
    header->e_shnum = header->e_shstrndx = 0;
    library->count = end < library->count ? end : library->count;
}

bool ct_library_read(struct ct_library *library, const char *command)
{
    char path[PATH_MAX];
    struct stat status;
    size_t count;
    *library = (struct ct_library){ 0 };
    if (!ct_installed_hook(path))
        return ct_fail(false,
                       "%s: libcudatrace.so not found next to cudatrace; set CUDATRACE_HOOK to its path",
                       command);
    const int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd >= 0 && fstat(fd, &status) == 0 && S_ISREG(status.st_mode) && status.st_size > 0 &&
        status.st_size < LIBRARY_BYTES_MOST) {
        library->count = (size_t)status.st_size;
        library->bytes = read_whole(fd, library->count);
    }
    const int error = errno;
    if (fd >= 0)
        close(fd);
    if (!library->bytes)
        return ct_fail(false, "%s: cannot read %s: %s", command, path,
                       fd < 0 ? strerror(error) : "not a regular file, or changed meanwhile");
    if (segments_of(library, &count))
        library->visit_offset = find_symbol(library, CT_VISIT_FUNCTION);
    if (!library->visit_offset) {
        ct_library_free(library);
        return ct_fail(false, "%s: %s is not a library of this build: it has no " CT_VISIT_FUNCTION "()",
                       command, path);
    }
    leave_sections_away(library);
    return true;
}

void ct_library_free(struct ct_library *library)
{
    free(library->bytes);
    *library = (struct ct_library){ 0 };
}

bool ct_library_is(const struct ct_library *library, const struct ct_image *image)
{
    size_t count = 0;
    const Elf64_Phdr *segments = segments_of(library, &count);
    bool is_same = count > 0;
    for (size_t i = 0; is_same && i < count; i++) {
        const Elf64_Phdr *segment = &segments[i];
        if (segment->p_type != PT_LOAD || segment->p_flags & PF_W)
            continue;
        is_same =
            segment->p_offset <= library->count && segment->p_filesz <= library->count - segment->p_offset;
        uint8_t *there = is_same ? malloc(segment->p_filesz + 1) : NULL;
        is_same = there &&
                  ct_memory_read(image->memory, image->bias + segment->p_vaddr, there, segment->p_filesz) &&
                  memcmp(there, library->bytes + segment->p_offset, segment->p_filesz) == 0;
        free(there);
    }
    return is_same;
}

/* Returns whether the loader has finished mapping the library. If the loader fails, it leaves the whole file
 * mapped but not executable. */
static bool is_loaded(const struct ct_library *library, const struct ct_image *image)
{
    size_t count = 0;
    const Elf64_Phdr *segments = segments_of(library, &count);
    bool is_whole = count > 0;
    for (size_t i = 0; is_whole && i < count; i++) {
        const Elf64_Phdr *segment = &segments[i];
        if (segment->p_type != PT_LOAD || segment->p_memsz == 0)
            continue;
        const struct ct_mapping *mapping =
            ct_memory_at(image->memory, image->bias + segment->p_vaddr + segment->p_memsz - 1);
        is_whole = mapping && (mapping->is_executable || !(segment->p_flags & PF_X)) &&
                   (mapping->is_writable || !(segment->p_flags & PF_W));
    }
    return is_whole;
}

uint64_t ct_library_find(const struct ct_library *library, const struct ct_memory *memory)
{
    static const char name[] = "/memfd:" CT_LIBRARY_NAME;
    for (size_t i = 0; i < memory->count; i++) {
        const struct ct_mapping *mapping = &memory->mappings[i];
        struct ct_image image;
        if (mapping->offset != 0 || strncmp(mapping->path, name, strlen(name)) != 0 ||
            ct_image_open(&image, memory, mapping) != 0)
            continue;
        const uint64_t found = is_loaded(library, &image) && ct_library_is(library, &image)
                                   ? image.bias + library->visit_offset
                                   : 0;
        ct_image_close(&image);
        if (found)
            return found;
    }
    return 0;
}
