/* Whether a command can be traced at all, as far as its file tells: what the dynamic loader of glibc does not
 * start, or starts without LD_PRELOAD. Called by run.c. */
#include "cudatrace.h"

#include <elf.h>
#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* Opens the file that execvp() would run; -1 when there is none. */
static int open_command(const char *command)
{
    if (strchr(command, '/'))
        return open(command, O_RDONLY | O_CLOEXEC);
    const char *path = getenv("PATH");
    for (const char *at = path ? path : "/bin:/usr/bin", *end; *at; at = *end ? end + 1 : end) {
        char file[PATH_MAX];
        end = at + strcspn(at, ":");
        const int n = snprintf(file, sizeof(file), "%.*s/%s", (int)(end - at), end == at ? "" : at, command);
        if (n > 0 && n < (int)sizeof(file) && access(file, X_OK) == 0)
            return open(file, O_RDONLY | O_CLOEXEC);
    }
    return -1;
}

static bool read_at(int fd, void *to, size_t bytes, uint64_t offset)
{
    return pread(fd, to, bytes, (off_t)offset) == (ssize_t)bytes;
}

/* Told from a shared object, the loader itself for instance, which may be run as well. */
static bool is_executable(int fd, const Elf64_Ehdr *header, const Elf64_Phdr *dynamic)
{
    Elf64_Dyn entry;
    if (header->e_type == ET_EXEC)
        return true;
    for (uint64_t at = 0; dynamic && at + sizeof(entry) <= dynamic->p_filesz; at += sizeof(entry)) {
        if (!read_at(fd, &entry, sizeof(entry), dynamic->p_offset + at) || entry.d_tag == DT_NULL)
            break;
        if (entry.d_tag == DT_FLAGS_1)
            return entry.d_un.d_val & DF_1_PIE;
    }
    return false;
}

static enum ct_program inspect(int fd)
{
    struct stat status;
    Elf64_Ehdr header;
    if (fstat(fd, &status) != 0 || !S_ISREG(status.st_mode) || !read_at(fd, &header, sizeof(header), 0) ||
        memcmp(header.e_ident, ELFMAG, SELFMAG) != 0)
        return CT_PROGRAM_UNKNOWN;
    if ((status.st_mode & S_ISUID && status.st_uid != getuid()) ||
        (status.st_mode & S_ISGID && status.st_gid != getgid()))
        return CT_PROGRAM_SET_ID;
    if (header.e_ident[EI_CLASS] != ELFCLASS64 || header.e_phentsize != sizeof(Elf64_Phdr))
        return CT_PROGRAM_UNKNOWN;
    Elf64_Phdr segment, dynamic;
    bool has_dynamic = false;
    for (uint64_t i = 0; i < header.e_phnum; i++) {
        if (!read_at(fd, &segment, sizeof(segment), header.e_phoff + i * sizeof(segment)))
            return CT_PROGRAM_UNKNOWN;
        if (segment.p_type == PT_INTERP) {
            char loader[PATH_MAX] = "";
            const size_t bytes =
                segment.p_filesz < sizeof(loader) - 1 ? (size_t)segment.p_filesz : sizeof(loader) - 1;
            return read_at(fd, loader, bytes, segment.p_offset) && strstr(loader, "/ld-musl-")
                       ? CT_PROGRAM_MUSL
                       : CT_PROGRAM_UNKNOWN;
        }
        if (segment.p_type == PT_DYNAMIC) {
            dynamic = segment;
            has_dynamic = true;
        }
    }
    return is_executable(fd, &header, has_dynamic ? &dynamic : NULL) ? CT_PROGRAM_STATIC : CT_PROGRAM_UNKNOWN;
}

enum ct_program ct_program_inspect(const char *command)
{
    const int fd = open_command(command);
    if (fd < 0)
        return CT_PROGRAM_UNKNOWN;
    const enum ct_program program = inspect(fd);
    close(fd);
    return program;
}
