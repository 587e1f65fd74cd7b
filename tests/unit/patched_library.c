#include "patched_library.h"

#include "../ensure.h"

#include <dlfcn.h>
#include <fcntl.h>
#include <inttypes.h>
#include <link.h>
#include <sys/mman.h>
#include <unistd.h>

enum { THUNK_BYTES = 16 };

/* Writing through /proc/self/mem also works for read-only code. */
static int memory_file(void)
{
    static int file = -1;
    if (file < 0)
        file = open("/proc/self/mem", O_RDWR | O_CLOEXEC);
    ENSURE(file >= 0);
    return file;
}

static bool read_memory(void *context, uint64_t address, void *to, size_t bytes)
{
    (void)context;
    return pread(memory_file(), to, bytes, (off_t)address) == (ssize_t)bytes;
}

static void write_memory(uint64_t address, const void *from, size_t bytes)
{
    ENSURE(pwrite(memory_file(), from, bytes, (off_t)address) == (ssize_t)bytes);
}

/* ---- a library's functions ---- */

static int note_image(struct dl_phdr_info *info, size_t bytes, void *data)
{
    struct patched *library = data;
    const struct link_map *map = library->handle;
    (void)bytes;
    if (info->dlpi_addr != map->l_addr || strcmp(info->dlpi_name, map->l_name) != 0)
        return 0;
    struct ct_inline_image *image = &library->image;
    image->begin = UINT64_MAX;
    for (int i = 0; i < info->dlpi_phnum; i++) {
        const ElfW(Phdr) *segment = &info->dlpi_phdr[i];
        const uint64_t begin = info->dlpi_addr + segment->p_vaddr, end = begin + segment->p_memsz;
        if (segment->p_type != PT_LOAD)
            continue;
        image->begin = begin < image->begin ? begin : image->begin;
        image->end = end > image->end ? end : image->end;
        if (segment->p_flags & PF_X) {
            image->code_begin = begin;
            image->code_end = end;
        }
    }
    return 1;
}

struct patched *patched_open(const char *path)
{
    struct patched *library = calloc(1, sizeof(*library));
    ENSURE(library);
    library->handle = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    if (!library->handle)
        fprintf(stderr, "%s\n", dlerror());
    ENSURE(library->handle);
    library->image.read = read_memory;
    ENSURE(dl_iterate_phdr(note_image, library) == 1);
    return library;
}

void *patched_function(const struct patched *library, const char *name)
{
    void *found = dlsym(library->handle, name);
    if (!found)
        fprintf(stderr, "there is no %s\n", name);
    ENSURE(found);
    return found;
}

void patched_add(struct patched *library, bool (*wanted)(const char *name))
{
    const struct link_map *map = library->handle;
    const char *strings = NULL;
    const ElfW(Sym) *symbols = NULL;
    const uint32_t *hash = NULL;
    for (const ElfW(Dyn) *entry = map->l_ld; entry->d_tag != DT_NULL; entry++) {
        if (entry->d_tag == DT_STRTAB)
            strings = (const char *)entry->d_un.d_ptr;
        else if (entry->d_tag == DT_SYMTAB)
            symbols = (const ElfW(Sym) *)entry->d_un.d_ptr;
        else if (entry->d_tag == DT_GNU_HASH)
            hash = (const uint32_t *)entry->d_un.d_ptr;
    }
    ENSURE(strings && symbols && hash);
    /* The last symbol is at the end of whichever chain begins last in the hash table. */
    const uint32_t buckets = hash[0], first = hash[1];
    const uint32_t *bucket = hash + 4 + hash[2] * 2, *chain = bucket + buckets;
    uint32_t last = 0;
    for (uint32_t i = 0; i < buckets; i++)
        last = bucket[i] > last ? bucket[i] : last;
    while (last >= first && !(chain[last - first] & 1))
        last++;
    for (uint32_t i = first; i <= last; i++) {
        if (ELF64_ST_TYPE(symbols[i].st_info) != STT_FUNC || symbols[i].st_shndx == SHN_UNDEF ||
            !wanted(strings + symbols[i].st_name))
            continue;
        ENSURE(library->count < FUNCTIONS_MOST);
        library->names[library->count] = strings + symbols[i].st_name;
        library->functions[library->count++] = (struct ct_inline_function){
            .address = map->l_addr + symbols[i].st_value,
            .bytes = symbols[i].st_size,
        };
    }
}

enum ct_inline_verdict patched_verdict(const struct patched *library, const char *name)
{
    for (size_t i = 0; i < library->count; i++) {
        if (strcmp(library->names[i], name) == 0)
            return library->plan.verdicts[i];
    }
    fprintf(stderr, "there is no %s\n", name);
    exit(1);
}

/* ---- applying the plan ---- */

static size_t read_ranges(struct ct_inline_range *ranges, size_t most)
{
    size_t count = 0;
    FILE *maps = fopen("/proc/self/maps", "re");
    ENSURE(maps);
    char line[4096];
    while (fgets(line, sizeof(line), maps)) {
        ENSURE(count < most);
        ENSURE(sscanf(line, "%" SCNx64 "-%" SCNx64, &ranges[count].begin, &ranges[count].end) == 2);
        count++;
    }
    fclose(maps);
    return count;
}

static uint64_t map_near(const struct patched *library, uint64_t bytes)
{
    static struct ct_inline_range ranges[65536];
    const size_t count = read_ranges(ranges, 65536);
    const uint64_t at = ct_inline_area_place(&library->image, ranges, count, bytes);
    ENSURE(at != 0);
    void *got = mmap((void *)(uintptr_t)at, bytes, PROT_READ | PROT_WRITE,
                     MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0);
    ENSURE(got == (void *)(uintptr_t)at);
    return at;
}

/* lock incq counter(%rip); jmp *real(%rip) */
static void write_thunk(uint8_t *thunk, const uint64_t *counter, const uint64_t *real)
{
    static const uint8_t count[] = { 0xf0, 0x48, 0xff, 0x05 }, jump[] = { 0xff, 0x25 };
    const int32_t to_counter = (int32_t)((const uint8_t *)counter - (thunk + 8));
    const int32_t to_real = (int32_t)((const uint8_t *)real - (thunk + 14));
    memcpy(thunk, count, 4);
    memcpy(thunk + 4, &to_counter, 4);
    memcpy(thunk + 8, jump, 2);
    memcpy(thunk + 10, &to_real, 4);
}

/* Points each slot to a thunk that counts the call and passes it on. */
static void take_slots(struct patched *library)
{
    const struct ct_inline_plan *plan = &library->plan;
    const size_t bytes = (size_t)plan->count * (THUNK_BYTES + 2 * sizeof(uint64_t));
    uint8_t *thunks = mmap(NULL, bytes + 1, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    ENSURE(thunks != MAP_FAILED);
    library->counters = (uint64_t *)(void *)(thunks + (size_t)plan->count * THUNK_BYTES);
    uint64_t *reals = library->counters + plan->count;
    for (uint32_t i = 0; i < plan->count; i++) {
        uint8_t *thunk = thunks + (size_t)i * THUNK_BYTES;
        uint64_t *slot = (uint64_t *)(uintptr_t)plan->slots[i].slot;
        write_thunk(thunk, &library->counters[i], &reals[i]);
        reals[i] = *slot;
        *slot = (uintptr_t)thunk;
    }
    ENSURE(mprotect(thunks, bytes + 1, PROT_READ | PROT_WRITE | PROT_EXEC) == 0);
}

void patched_plan(struct patched *library)
{
    const uint64_t bytes = ct_inline_area_bytes(library->count), area = map_near(library, bytes);
    EXPECT(0, ct_inline_plan_make(&library->plan, &library->image, library->functions, library->count, area));
    ENSURE(library->plan.bytes == bytes);
}

void patched_write_area(const struct patched *library)
{
    const struct ct_inline_plan *plan = &library->plan;
    write_memory(plan->area, plan->contents, plan->bytes);
    ENSURE(mprotect((void *)(uintptr_t)plan->area, plan->code_bytes, PROT_READ | PROT_EXEC) == 0);
}

void patched_enter(struct patched *library)
{
    const struct ct_inline_plan *plan = &library->plan;
    patched_write_area(library);
    for (uint32_t i = 0; i < plan->count; i++)
        write_memory(plan->patches[i].address, plan->patches[i].new, CT_INLINE_JUMP_BYTES);
    take_slots(library);
}

uint8_t *patched_code(const struct patched *library)
{
    const size_t bytes = library->image.code_end - library->image.code_begin;
    uint8_t *copy = malloc(bytes);
    ENSURE(copy && read_memory(NULL, library->image.code_begin, copy, bytes));
    return copy;
}

void patched_undo(struct patched *library, const uint8_t *code)
{
    const struct ct_inline_plan *plan = &library->plan;
    struct ct_inline_patch patch;
    for (uint32_t i = 0; i < plan->count; i++) {
        ENSURE(!ct_inline_redo(&library->image, &plan->slots[i], &patch));
        ENSURE(ct_inline_undo(&library->image, &plan->slots[i], &patch));
        ENSURE(patch.address == plan->patches[i].address);
        ENSURE(memcmp(patch.old, plan->patches[i].new, sizeof(patch.old)) == 0);
        ENSURE(memcmp(patch.new, plan->patches[i].old, sizeof(patch.new)) == 0);
        write_memory(patch.address, patch.new, CT_INLINE_JUMP_BYTES);
        ENSURE(!ct_inline_undo(&library->image, &plan->slots[i], &patch));
    }
    /* Once a slot points to the moved instructions again, its patch can be reapplied. */
    for (uint32_t i = 0; i < plan->count; i++) {
        uint64_t *slot = (uint64_t *)(uintptr_t)plan->slots[i].slot;
        ENSURE(!ct_inline_redo(&library->image, &plan->slots[i], &patch));
        memcpy(slot, plan->contents + ((uintptr_t)slot - plan->area), sizeof(*slot));
        ENSURE(ct_inline_redo(&library->image, &plan->slots[i], &patch));
        ENSURE(memcmp(&patch, &plan->patches[i], sizeof(patch)) == 0);
    }
    uint8_t *now = patched_code(library);
    ENSURE(memcmp(now, code, library->image.code_end - library->image.code_begin) == 0);
    free(now);
}

uint64_t *patched_counter(const struct patched *library, const char *name)
{
    const uint64_t address = (uintptr_t)patched_function(library, name);
    for (uint32_t i = 0; i < library->plan.count; i++) {
        if (library->plan.slots[i].export == address)
            return &library->counters[i];
    }
    fprintf(stderr, "%s has no slot\n", name);
    exit(1);
}

void patched_say(const struct patched *library, const char *path)
{
    printf("%s: %u of %zu get slots", strrchr(path, '/') + 1, library->plan.count, library->count);
    for (int verdict = CT_INLINE_FINE + 1; verdict < CT_INLINE_VERDICTS; verdict++) {
        if (library->plan.verdict_counts[verdict])
            printf("; %u %s", library->plan.verdict_counts[verdict],
                   ct_inline_reason((enum ct_inline_verdict)verdict));
    }
    printf("\n");
}
