#include "elf_reader.h"

#include "regular_file.h"
#include "room.h"

#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#if defined(__x86_64__)
enum { OWN_MACHINE = EM_X86_64 };
#elif defined(__aarch64__)
enum { OWN_MACHINE = EM_AARCH64 };
#endif

/* Limits on the size of a table and the length of a name, in bytes. No known library has a larger table, and
 * libcuda's names take about 30 KB. Names that share a prefix of megabytes would take hours to sort. */
enum { TABLE_BYTES_MAX = 64 << 20, NAME_BYTES_MAX = 1024 };

static bool read_at(const struct ct_elf *elf, void *to, size_t bytes, uint64_t offset)
{
    return offset <= elf->bytes && bytes <= elf->bytes - offset &&
           pread(elf->fd, to, bytes, (off_t)offset) == (ssize_t)bytes;
}

/* Returns a NUL-terminated copy of part of the file, which the caller frees. Returns NULL if the part is too
 * large or beyond the end of the file, or if out of memory. */
static char *load(const struct ct_elf *elf, uint64_t offset, uint64_t bytes)
{
    if (bytes > TABLE_BYTES_MAX || offset > elf->bytes || bytes > elf->bytes - offset)
        return NULL;
    char *part = malloc(bytes + 1);
    if (part && !read_at(elf, part, bytes, offset)) {
        free(part);
        return NULL;
    }
    if (part)
        part[bytes] = '\0';
    return part;
}

static bool segment_at(const struct ct_elf *elf, uint32_t index, Elf64_Phdr *segment)
{
    return read_at(elf, segment, sizeof(*segment), elf->segments_offset + index * sizeof(*segment));
}

static bool section_at(const struct ct_elf *elf, uint32_t index, Elf64_Shdr *section)
{
    return index < elf->sections &&
           read_at(elf, section, sizeof(*section), elf->sections_offset + index * sizeof(*section));
}

/* ---- the dynamic segment ---- */

/* Converts an address in the image to a file offset. Returns UINT64_MAX if no segment contains the
 * address. */
static uint64_t offset_of(const struct ct_elf *elf, uint64_t address)
{
    Elf64_Phdr segment;
    for (uint32_t i = 0; i < elf->segments && segment_at(elf, i, &segment); i++) {
        if (segment.p_type == PT_LOAD && address >= segment.p_vaddr &&
            address - segment.p_vaddr < segment.p_filesz)
            return segment.p_offset + (address - segment.p_vaddr);
    }
    return UINT64_MAX;
}

/* Reads the dynamic entries in two passes. The first pass finds the string table, and the second one reads
 * the names in it. */
static int read_dynamic(struct ct_elf *elf, const Elf64_Phdr *segment)
{
    const size_t count = segment->p_filesz / sizeof(Elf64_Dyn);
    Elf64_Dyn *entries = (Elf64_Dyn *)(void *)load(elf, segment->p_offset, count * sizeof(Elf64_Dyn));
    if (!entries)
        return -ENOEXEC;
    uint64_t table = 0, bytes = 0;
    size_t used = 0;
    for (; used < count && entries[used].d_tag != DT_NULL; used++) {
        const uint64_t value = entries[used].d_un.d_val;
        if (entries[used].d_tag == DT_STRTAB)
            table = value;
        else if (entries[used].d_tag == DT_STRSZ)
            bytes = value;
        else if (entries[used].d_tag == DT_FLAGS_1)
            elf->program = elf->program || value & DF_1_PIE;
    }
    if (bytes > 0)
        elf->strings = load(elf, offset_of(elf, table), bytes);
    if (elf->strings)
        elf->needed = calloc(used + 1, sizeof(*elf->needed));
    size_t n = 0;
    for (size_t i = 0; elf->needed && i < used; i++) {
        if (entries[i].d_un.d_val >= bytes)
            continue;
        const char *name = elf->strings + entries[i].d_un.d_val;
        if (entries[i].d_tag == DT_NEEDED)
            elf->needed[n++] = name;
        else if (entries[i].d_tag == DT_SONAME)
            elf->soname = name;
    }
    free(entries);
    return 0;
}

static int read_segments(struct ct_elf *elf)
{
    int error = 0;
    bool dynamic = false;
    Elf64_Phdr segment;
    for (uint32_t i = 0; error == 0 && i < elf->segments; i++) {
        if (!segment_at(elf, i, &segment))
            return -ENOEXEC;
        if (segment.p_type == PT_INTERP && !elf->interpreter && segment.p_filesz <= PATH_MAX) {
            elf->interpreter = load(elf, segment.p_offset, segment.p_filesz);
        } else if (segment.p_type == PT_DYNAMIC && !dynamic) {
            dynamic = true; /* a hostile file may have sixty thousand such segments */
            error = read_dynamic(elf, &segment);
        }
    }
    return error;
}

/* ---- opening ---- */

static int read_header(struct ct_elf *elf)
{
    Elf64_Ehdr header;
    unsigned char identity[EI_NIDENT];
    if (!read_at(elf, identity, sizeof(identity), 0) || memcmp(identity, ELFMAG, SELFMAG) != 0)
        return -ENOEXEC;
    if (identity[EI_CLASS] != ELFCLASS64)
        return 0;
    if (!read_at(elf, &header, sizeof(header), 0))
        return -ENOEXEC;
    elf->native = identity[EI_DATA] == ELFDATA2LSB && header.e_machine == OWN_MACHINE;
    if (!elf->native)
        return 0;
    if (header.e_phentsize == sizeof(Elf64_Phdr)) {
        elf->segments = header.e_phnum;
        elf->segments_offset = header.e_phoff;
    }
    if (header.e_shentsize == sizeof(Elf64_Shdr)) {
        elf->sections = header.e_shnum;
        elf->sections_offset = header.e_shoff;
    }
    elf->program = header.e_type == ET_EXEC;
    return read_segments(elf);
}

int ct_elf_open(struct ct_elf *elf, const char *path)
{
    *elf = (struct ct_elf){ .fd = -1 };
    struct stat status;
    const int fd = ct_regular_file_open(path, &status);
    if (fd < 0)
        return fd;
    elf->fd = fd;
    elf->bytes = (uint64_t)status.st_size;
    const int error = read_header(elf);
    if (error)
        ct_elf_close(elf);
    return error;
}

void ct_elf_close(struct ct_elf *elf)
{
    if (elf->fd >= 0)
        close(elf->fd);
    free(elf->interpreter);
    free(elf->strings);
    free(elf->needed);
    *elf = (struct ct_elf){ .fd = -1 };
}

/* ---- names ---- */

static int compare(const void *left, const void *right)
{
    return strcmp(*(const char *const *)left, *(const char *const *)right);
}

/* Sorts the names and removes duplicates. Returns 0, or -errno if out of memory. */
static int settle(struct ct_elf_names *names)
{
    size_t kept = 0;
    if (!names->name) {
        ct_elf_names_free(names);
        return -ENOMEM;
    }
    if (names->count > 0)
        qsort(names->name, names->count, sizeof(*names->name), compare);
    for (size_t i = 0; i < names->count; i++) {
        if (kept == 0 || strcmp(names->name[kept - 1], names->name[i]) != 0)
            names->name[kept++] = names->name[i];
    }
    names->count = kept;
    return 0;
}

bool ct_elf_names_have(const struct ct_elf_names *names, const char *name)
{
    return names->count > 0 &&
           bsearch(&name, names->name, names->count, sizeof(*names->name), compare) != NULL;
}

void ct_elf_names_free(struct ct_elf_names *names)
{
    free(names->name);
    free(names->text);
    *names = (struct ct_elf_names){ 0 };
}

/* Loads the first section of the given type and the string table that it refers to. If the section or its
 * string table is missing, returns false and sets both pointers to NULL. */
static bool load_section(const struct ct_elf *elf, uint32_t type, char **table, uint64_t *bytes, char **text,
                         uint64_t *text_bytes)
{
    Elf64_Shdr section, strings;
    uint32_t i = 0;
    while (i < elf->sections && (!section_at(elf, i, &section) || section.sh_type != type))
        i++;
    if (i >= elf->sections || !section_at(elf, section.sh_link, &strings))
        return false;
    *bytes = section.sh_size;
    *text_bytes = strings.sh_size;
    *table = load(elf, section.sh_offset, section.sh_size);
    *text = load(elf, strings.sh_offset, strings.sh_size);
    if (*table && *text)
        return true;
    free(*table);
    free(*text);
    *table = *text = NULL;
    return false;
}

static void add_name(struct ct_elf_names *names, const char *name)
{
    if (strnlen(name, NAME_BYTES_MAX) < NAME_BYTES_MAX)
        names->name[names->count++] = name;
}

static bool is_exported(const Elf64_Sym *symbol, uint64_t text_bytes)
{
    const unsigned type = ELF64_ST_TYPE(symbol->st_info);
    return (type == STT_FUNC || type == STT_GNU_IFUNC) && ELF64_ST_BIND(symbol->st_info) != STB_LOCAL &&
           symbol->st_shndx != SHN_UNDEF && symbol->st_name < text_bytes;
}

bool ct_elf_read(const struct ct_elf *elf, void *to, size_t bytes, uint64_t offset)
{
    return read_at(elf, to, bytes, offset);
}

int ct_elf_each_function(const struct ct_elf *elf, ct_elf_taker *take, void *data, char **text)
{
    char *table;
    uint64_t bytes, text_bytes;
    if (!load_section(elf, SHT_DYNSYM, &table, &bytes, text, &text_bytes))
        return -ENODATA;
    const Elf64_Sym *symbols = (const Elf64_Sym *)(void *)table;
    for (size_t i = 0; i < bytes / sizeof(*symbols); i++) {
        if (is_exported(&symbols[i], text_bytes))
            take(*text + symbols[i].st_name,
                 ELF64_ST_TYPE(symbols[i].st_info) == STT_FUNC ? offset_of(elf, symbols[i].st_value)
                                                               : UINT64_MAX,
                 data);
    }
    free(table);
    return 0;
}

struct choice {
    struct ct_elf_names *names;
    size_t room;
    bool (*wanted)(const char *name);
    bool is_short;
};

static void choose(const char *name, uint64_t offset, void *data)
{
    struct choice *choice = data;
    (void)offset;
    if (!choice->wanted(name))
        return;
    choice->is_short |=
        !ct_make_room(&choice->names->name, choice->names->count, &choice->room, sizeof(char *));
    if (!choice->is_short)
        add_name(choice->names, name);
}

int ct_elf_functions(const struct ct_elf *elf, bool (*wanted)(const char *name), struct ct_elf_names *names)
{
    struct choice choice = { .names = names, .wanted = wanted };
    *names = (struct ct_elf_names){ 0 };
    const int error = ct_elf_each_function(elf, choose, &choice, &names->text);
    if (error)
        return error;
    if (!choice.is_short && !names->name) /* no functions matched, so NULL does not mean out of memory */
        choice.is_short = !ct_make_room(&names->name, 0, &choice.room, sizeof(char *));
    if (choice.is_short) {
        ct_elf_names_free(names);
        return -ENOMEM;
    }
    return settle(names);
}

int ct_elf_versions(const struct ct_elf *elf, struct ct_elf_names *names)
{
    *names = (struct ct_elf_names){ 0 };
    char *table;
    uint64_t bytes, text_bytes;
    if (!load_section(elf, SHT_GNU_verdef, &table, &bytes, &names->text, &text_bytes))
        return 0;
    Elf64_Verdef version;
    Elf64_Verdaux name;
    names->name = calloc(bytes / sizeof(version) + 1, sizeof(*names->name));
    /* Each entry holds the distance to the next one. A distance smaller than an entry ends the loop, which
     * could otherwise run forever. */
    for (uint64_t at = 0; names->name && at <= bytes && bytes - at >= sizeof(version);) {
        memcpy(&version, table + at, sizeof(version));
        const uint64_t name_at = at + version.vd_aux;
        if (name_at <= bytes && bytes - name_at >= sizeof(name) && !(version.vd_flags & VER_FLG_BASE)) {
            memcpy(&name, table + name_at, sizeof(name));
            if (name.vda_name < text_bytes)
                add_name(names, names->text + name.vda_name);
        }
        if (version.vd_next < sizeof(version))
            break;
        at += version.vd_next;
    }
    free(table);
    return settle(names);
}

/* ---- notes ---- */

static bool find_note(const char *notes, uint64_t bytes, const char *owner, uint32_t type, void *description,
                      size_t wanted)
{
    Elf64_Nhdr note;
    for (uint64_t at = 0; at <= bytes && bytes - at >= sizeof(note);) {
        memcpy(&note, notes + at, sizeof(note));
        const uint64_t name_at = at + sizeof(note);
        const uint64_t description_at = name_at + ((uint64_t)note.n_namesz + 3) / 4 * 4;
        if (description_at > bytes || note.n_descsz > bytes - description_at)
            return false;
        if (note.n_type == type && note.n_namesz == strlen(owner) + 1 && note.n_descsz == wanted &&
            memcmp(notes + name_at, owner, note.n_namesz) == 0) {
            memcpy(description, notes + description_at, wanted);
            return true;
        }
        at = description_at + ((uint64_t)note.n_descsz + 3) / 4 * 4;
    }
    return false;
}

int ct_elf_note(const struct ct_elf *elf, const char *owner, uint32_t type, void *description, size_t bytes)
{
    Elf64_Phdr segment;
    bool found = false;
    for (uint32_t i = 0; !found && i < elf->segments && segment_at(elf, i, &segment); i++) {
        /* Segments aligned to 8 bytes hold .note.gnu.property, which has a different layout. */
        char *notes = segment.p_type == PT_NOTE && segment.p_align <= 4
                          ? load(elf, segment.p_offset, segment.p_filesz)
                          : NULL;
        found = notes && find_note(notes, segment.p_filesz, owner, type, description, bytes);
        free(notes);
    }
    return found ? 0 : -ENODATA;
}

int ct_elf_note_names(const struct ct_elf *elf, const char *owner, uint32_t type, size_t bytes,
                      struct ct_elf_names *names)
{
    enum { NAMES_MOST = 1 << 20 };
    *names = (struct ct_elf_names){ 0 };
    if (bytes == 0 || bytes > NAMES_MOST)
        return -ENODATA;
    names->text = calloc(bytes + 1, 1);
    names->name = calloc(bytes, sizeof(*names->name));
    if (!names->text || !names->name)
        return -ENOMEM;
    const int error = ct_elf_note(elf, owner, type, names->text, bytes);
    for (const char *at = names->text; !error && at < names->text + bytes; at += strlen(at) + 1) {
        if (*at)
            names->name[names->count++] = at;
    }
    return error;
}
