/* Reads the symbols of loaded objects from their dynamic sections through either of the two hash tables, as
 * the dynamic linker does. Chapter 5 of the gABI describes the format, except for the GNU hash table, which
 * is documented only by its implementations. The code in this file takes no lock except the loader's, in
 * dl_iterate_phdr(), allocates no memory and makes no system calls. */
#include "symbol.h"

#include "compiler.h"
#include "visit.h"

#include <link.h>
#include <stdatomic.h>
#include <string.h>

extern const char __ehdr_start[]; /* the hook's own load address; defined by the linker */

/* Compares two strings for equality without strcmp(), which may be a sanitizer's. Sanitizers look symbols up
 * before their own functions are ready. */
static bool is_same(const char *a, const char *b)
{
    while (*a && *a == *b) {
        a++;
        b++;
    }
    return *a == *b;
}

/* ---- objects ---- */

/* Some dynamic entries contain addresses, and others contain offsets from the object's start: glibc relocates
 * the entries that it uses itself, whereas musl relocates none. */
static const void *dynamic_address(uintptr_t base, uint64_t value)
{
    return (const void *)(uintptr_t)(value < base ? base + value : value);
}

static bool read_dynamic(const struct dl_phdr_info *info, const void *dynamic, struct ct_object *object)
{
    *object = (struct ct_object){
        .base = info->dlpi_addr,
        .path = info->dlpi_name ? info->dlpi_name : "",
        .dynamic = dynamic,
        .is_hook = info->dlpi_addr == (uintptr_t)__ehdr_start,
        .headers = info->dlpi_phdr,
        .header_count = info->dlpi_phnum,
    };
    uint64_t soname = 0, nameless = 0;
    for (const ElfW(Dyn) *entry = object->dynamic; entry && entry->d_tag != DT_NULL; entry++) {
        const void *address = dynamic_address(object->base, entry->d_un.d_ptr);
        if (entry->d_tag == DT_STRTAB)
            object->strings = address;
        else if (entry->d_tag == DT_SYMTAB)
            object->symbols = address;
        else if (entry->d_tag == DT_GNU_HASH)
            object->gnu_hash = address;
        else if (entry->d_tag == DT_HASH)
            object->hash = address;
        else if (entry->d_tag == DT_VERSYM)
            object->versions = address;
        else if (entry->d_tag == DT_VERDEF)
            object->definitions = address;
        else if (entry->d_tag == DT_VERDEFNUM)
            object->definition_count = entry->d_un.d_val;
        else if (entry->d_tag == DT_SONAME)
            soname = entry->d_un.d_val;
        else if (entry->d_tag == DT_RELA)
            object->relocations[0].from = address;
        else if (entry->d_tag == DT_RELASZ)
            object->relocations[0].bytes = entry->d_un.d_val;
        else if (entry->d_tag == DT_RELACOUNT)
            nameless = entry->d_un.d_val * sizeof(ElfW(Rela));
        else if (entry->d_tag == DT_JMPREL)
            object->relocations[1].from = address;
        else if (entry->d_tag == DT_PLTRELSZ)
            object->relocations[1].bytes = entry->d_un.d_val;
    }
    if (object->relocations[0].from && nameless <= object->relocations[0].bytes) {
        object->relocations[0].from = (const char *)object->relocations[0].from + nameless;
        object->relocations[0].bytes -= nameless;
    }
    if (soname && object->strings)
        object->soname = (const char *)object->strings + soname;
    return object->strings && object->symbols;
}

static bool read_object(const struct dl_phdr_info *info, struct ct_object *object)
{
    const void *dynamic = NULL;
    for (uint32_t i = 0; i < info->dlpi_phnum; i++) {
        if (info->dlpi_phdr[i].p_type == PT_DYNAMIC)
            dynamic = (const void *)(uintptr_t)(info->dlpi_addr + info->dlpi_phdr[i].p_vaddr);
    }
    return read_dynamic(info, dynamic, object);
}

static const char *file_name(const char *path)
{
    const char *name = path;
    for (const char *at = path; *at; at++) {
        if (*at == '/')
            name = at + 1;
    }
    return name;
}

bool ct_symbol_in_list(const struct link_map *first, const char *name, struct ct_object *object)
{
    const struct link_map *map = first;
    while (map && !(map->l_name && is_same(file_name(map->l_name), name)))
        map = map->l_next;
    const ElfW(Ehdr) *const file = map ? (const ElfW(Ehdr) *)map->l_addr : NULL;
    if (!file || file->e_ident[0] != ELFMAG0 || file->e_ident[1] != ELFMAG1 || file->e_ident[2] != ELFMAG2 ||
        file->e_ident[3] != ELFMAG3)
        return false;
    const struct dl_phdr_info info = {
        .dlpi_addr = map->l_addr,
        .dlpi_name = map->l_name,
        .dlpi_phdr = (const ElfW(Phdr) *)(map->l_addr + file->e_phoff),
        .dlpi_phnum = file->e_phnum,
    };
    return read_object(&info, object);
}

void *ct_symbol_behind(const struct link_map *first, const char *name)
{
    bool behind = false;
    void *found = NULL;
    for (const struct link_map *map = first; map && !found; map = map->l_next) {
        const struct dl_phdr_info info = { .dlpi_addr = map->l_addr, .dlpi_name = map->l_name };
        struct ct_object object;
        if (behind && map->l_ld && read_dynamic(&info, map->l_ld, &object))
            found = ct_symbol_in(&object, name, NULL);
        behind |= map->l_addr == (uintptr_t)__ehdr_start;
    }
    return found;
}

/* How many objects had been loaded when the hook was. If the hook is preloaded, these are the objects loaded
 * with the program. */
static _Atomic uint64_t loaded_at_start;

/* musl's loader does not define `_r_debug`. The hook does nothing in a program that uses musl, but it must be
 * possible to load it there. */
#pragma weak _r_debug

static void *find_listed(const char *name)
{
    static const char *const files[] = { "libpthread.so.0", "libdl.so.2", "libc.so.6" };
    struct ct_object object;
    void *found = NULL;
    for (size_t i = 0; &_r_debug && !found && i < CT_ARRAY_LENGTH(files); i++)
        found =
            ct_symbol_in_list(_r_debug.r_map, files[i], &object) ? ct_symbol_in(&object, name, NULL) : NULL;
    return found;
}

/* Calls the C library's own dl_iterate_phdr(), as libc.h does for other functions. With musl, calls it by its
 * symbol. */
typedef int visit_function(struct dl_phdr_info *info, size_t bytes, void *data);
static int iterate(visit_function *visit, void *data)
{
    static __typeof__(&dl_iterate_phdr) _Atomic known;
    __typeof__(&dl_iterate_phdr) next = atomic_load_explicit(&known, memory_order_relaxed);
    if (CT_UNLIKELY(!next)) { /* any thread may be the first; all write the same value */
        next = (__typeof__(next))(uintptr_t)find_listed("dl_iterate_phdr");
        next = next ? next : dl_iterate_phdr;
        atomic_store_explicit(&known, next, memory_order_relaxed);
    }
    return next(visit, data);
}

struct walk {
    bool (*visit)(const struct ct_object *object, void *data);
    void *data;
    uint64_t at, from, to; /* the current object's index, and the range to visit */
};

static int visit_object(struct dl_phdr_info *info, size_t bytes, void *data)
{
    (void)bytes;
    struct walk *walk = data;
    struct ct_object object;
    const uint64_t start = atomic_load_explicit(&loaded_at_start, memory_order_relaxed);
    const uint64_t at = walk->at++;
    if (at < walk->from || at >= walk->to || !read_object(info, &object))
        return 0;
    object.at_start = start == 0 || at < start;
    return walk->visit(&object, walk->data);
}

bool ct_symbol_each(bool (*visit)(const struct ct_object *object, void *data), void *data)
{
    struct walk walk = { .visit = visit, .data = data, .to = UINT64_MAX };
    return iterate(visit_object, &walk) != 0;
}

bool ct_symbol_each_of(const struct ct_arrivals *arrivals,
                       bool (*visit)(const struct ct_object *object, void *data), void *data)
{
    struct walk walk = { .visit = visit, .data = data, .from = arrivals->from, .to = arrivals->to };
    return iterate(visit_object, &walk) != 0;
}

static int read_loads(struct dl_phdr_info *info, size_t bytes, void *data)
{
    (void)bytes;
    struct ct_arrivals *arrivals = data;
    arrivals->adds = info->dlpi_adds;
    arrivals->subs = info->dlpi_subs;
    return 1;
}

static int count_object(struct dl_phdr_info *info, size_t bytes, void *data)
{
    (void)info, (void)bytes;
    ++*(uint64_t *)data;
    return 0;
}

bool ct_symbol_arrivals(const struct ct_seen *seen, struct ct_arrivals *arrivals)
{
    *arrivals = (struct ct_arrivals){ 0 };
    iterate(read_loads, arrivals);
    if (arrivals->adds == atomic_load_explicit(&seen->adds, memory_order_relaxed))
        return false;
    iterate(count_object, &arrivals->to);
    if (arrivals->subs == atomic_load_explicit(&seen->subs, memory_order_relaxed))
        arrivals->from = atomic_load_explicit(&seen->objects, memory_order_relaxed);
    return true;
}

void ct_symbol_see(struct ct_seen *seen, const struct ct_arrivals *arrivals)
{
    atomic_store_explicit(&seen->objects, arrivals->to, memory_order_relaxed);
    atomic_store_explicit(&seen->subs, arrivals->subs, memory_order_relaxed);
    atomic_store_explicit(&seen->adds, arrivals->adds, memory_order_relaxed);
}

static bool is_hook(const struct ct_object *object, void *data)
{
    if (object->is_hook)
        *(const char **)data = object->path;
    return object->is_hook;
}

bool ct_symbol_is_visitor(void)
{
    static const char beginning[] = CT_VISIT_PATH;
    static _Atomic int known; /* 0: unknown, 1: no, 2: yes */
    int answer = atomic_load_explicit(&known, memory_order_relaxed);
    if (answer == 0) {
        const char *path = "";
        ct_symbol_each(is_hook, &path);
        const char *at = beginning;
        while (*at && *at == *path) {
            at++;
            path++;
        }
        answer = *at ? 1 : 2;
        atomic_store_explicit(&known, answer, memory_order_relaxed);
    }
    return answer == 2;
}

/* If a visit (proto/visit.h) loaded the hook, it is unknown which libraries were loaded with the program, so
 * `at_start` is set only for the program itself. */
__attribute__((constructor)) static void count_start(void)
{
    uint64_t count = 0;
    if (ct_symbol_is_visitor())
        count = 1;
    else
        iterate(count_object, &count);
    atomic_store_explicit(&loaded_at_start, count, memory_order_relaxed);
}

struct wanted {
    const char *name;
    const void *address;
    struct ct_object object; /* the result */
    void *symbol;
    bool behind; /* already past the hook */
};

bool ct_symbol_is(const struct ct_object *object, const char *soname)
{
    return is_same(file_name(object->path), soname) || (object->soname && is_same(object->soname, soname));
}

static bool is_named(const struct ct_object *object, void *data)
{
    struct wanted *wanted = data;
    if (!ct_symbol_is(object, wanted->name))
        return false;
    wanted->object = *object;
    return true;
}

bool ct_symbol_object(const char *soname, struct ct_object *object)
{
    struct wanted wanted = { .name = soname };
    if (!ct_symbol_each(is_named, &wanted))
        return false;
    *object = wanted.object;
    return true;
}

static bool begins_below(const struct ct_object *object, void *data)
{
    struct wanted *wanted = data;
    if (object->base <= (uintptr_t)wanted->address && object->base >= wanted->object.base)
        wanted->object = *object;
    return false;
}

bool ct_symbol_object_at(const void *address, struct ct_object *object)
{
    struct wanted wanted = { .address = address };
    ct_symbol_each(begins_below, &wanted);
    *object = wanted.object;
    return wanted.object.dynamic != NULL;
}

/* ---- one object's symbols ---- */

enum { VERSION_HIDDEN = 0x8000, VERSION_BASE = 1 };

/* Returns a version's definition, or NULL if the object does not define the version, or if the version only
 * names the file itself. */
static const ElfW(Verdef) * find_version(const struct ct_object *object, const char *version)
{
    const char *at = object->definitions;
    for (uint64_t i = 0; at && i < object->definition_count; i++) {
        const ElfW(Verdef) *definition = (const ElfW(Verdef) *)(const void *)at;
        const ElfW(Verdaux) *name = (const ElfW(Verdaux) *)(const void *)(at + definition->vd_aux);
        if (!(definition->vd_flags & VER_FLG_BASE) &&
            is_same((const char *)object->strings + name->vda_name, version))
            return definition;
        at += definition->vd_next;
    }
    return NULL;
}

bool ct_symbol_defines_version(const struct ct_object *object, const char *version)
{
    return find_version(object, version) != NULL;
}

static bool version_is(const struct ct_object *object, uint16_t index, const char *version)
{
    const ElfW(Verdef) *definition = find_version(object, version);
    return definition && definition->vd_ndx == index;
}

static bool matches(const struct ct_object *object, uint32_t index, const char *name, const char *version)
{
    const ElfW(Sym) *symbol = (const ElfW(Sym) *)object->symbols + index;
    const unsigned type = ELF64_ST_TYPE(symbol->st_info);
    if (symbol->st_shndx == SHN_UNDEF || symbol->st_value == 0 || (type != STT_FUNC && type != STT_NOTYPE) ||
        ELF64_ST_BIND(symbol->st_info) == STB_LOCAL ||
        !is_same((const char *)object->strings + symbol->st_name, name))
        return false;
    const uint16_t of = object->versions ? object->versions[index] : VERSION_BASE;
    const uint16_t number = of & (VERSION_HIDDEN - 1);
    if (number <= VERSION_BASE)
        return true;
    return version ? version_is(object, number, version) : !(of & VERSION_HIDDEN);
}

static uint32_t find_by_gnu_hash(const struct ct_object *object, const char *name, const char *version)
{
    uint32_t hash = 5381;
    for (const unsigned char *c = (const unsigned char *)name; *c; c++)
        hash = hash * 33 + *c;
    const uint32_t *table = object->gnu_hash;
    const uint32_t buckets = table[0], first = table[1], words = table[2], shift = table[3];
    const uint64_t *bloom = (const uint64_t *)(const void *)(table + 4);
    const uint32_t *bucket = (const uint32_t *)(const void *)(bloom + words), *chain = bucket + buckets;
    const uint64_t bits = UINT64_C(1) << hash % 64 | UINT64_C(1) << (hash >> shift) % 64;
    if (buckets == 0 || words == 0 || (bloom[hash / 64 % words] & bits) != bits)
        return 0;
    uint32_t index = bucket[hash % buckets];
    if (index < first)
        return 0;
    for (;; index++) {
        const uint32_t found = chain[index - first];
        if ((found | 1) == (hash | 1) && matches(object, index, name, version))
            return index;
        if (found & 1)
            return 0;
    }
}

static uint32_t find_by_hash(const struct ct_object *object, const char *name, const char *version)
{
    uint32_t hash = 0;
    for (const unsigned char *c = (const unsigned char *)name; *c; c++) {
        hash = (hash << 4) + *c;
        hash = (hash ^ (hash & 0xf0000000) >> 24) & 0x0fffffff;
    }
    const uint32_t *table = object->hash, *chain = table + 2 + table[0];
    uint32_t index = table[0] ? table[2 + hash % table[0]] : 0;
    while (index && !matches(object, index, name, version))
        index = chain[index];
    return index;
}

static const ElfW(Sym) * find_symbol(const struct ct_object *object, const char *name, const char *version)
{
    uint32_t index = 0;
    if (object->gnu_hash)
        index = find_by_gnu_hash(object, name, version);
    else if (object->hash)
        index = find_by_hash(object, name, version);
    return index ? (const ElfW(Sym) *)object->symbols + index : NULL;
}

void *ct_symbol_in(const struct ct_object *object, const char *name, const char *version)
{
    const ElfW(Sym) *symbol = find_symbol(object, name, version);
    return symbol ? (void *)(object->base + symbol->st_value) : NULL;
}

struct ct_code ct_symbol_code_in(const struct ct_object *object, const char *name)
{
    const ElfW(Sym) *symbol = find_symbol(object, name, NULL);
    return symbol ? (struct ct_code){ object->base + symbol->st_value, symbol->st_size }
                  : (struct ct_code){ 0 };
}

struct ct_code ct_symbol_code_in_libc(const char *name)
{
    struct ct_object object;
    const bool is_there = &_r_debug && ct_symbol_in_list(_r_debug.r_map, "libc.so.6", &object);
    return is_there ? ct_symbol_code_in(&object, name) : (struct ct_code){ 0 };
}

struct definition {
    const char *name;
    struct ct_object *object;
};

static bool take_definition(const struct ct_object *object, void *data)
{
    const struct definition *wanted = data;
    if (object->is_hook || !find_symbol(object, wanted->name, NULL))
        return false;
    *wanted->object = *object;
    return true;
}

bool ct_symbol_definer(const char *name, struct ct_object *object)
{
    return ct_symbol_each(take_definition, &(struct definition){ name, object });
}

const char *ct_symbol_name(const struct ct_object *object, uint64_t index)
{
    return (const char *)object->strings + ((const ElfW(Sym) *)object->symbols)[index].st_name;
}

unsigned ct_symbol_use(const struct ct_object *object, const void *address, uint64_t bytes)
{
    const ElfW(Phdr) *const headers = object->headers;
    unsigned use = 0;
    bool sealed = false;
    for (uint64_t i = 0; i < object->header_count; i++) {
        const uintptr_t begin = object->base + headers[i].p_vaddr, end = begin + headers[i].p_memsz;
        if ((uintptr_t)address < begin || (uintptr_t)address >= end || end - (uintptr_t)address < bytes)
            continue;
        if (headers[i].p_type == PT_GNU_RELRO)
            sealed = true;
        else if (headers[i].p_type == PT_LOAD && headers[i].p_flags & PF_X)
            use |= CT_SEGMENT_TEXT;
        else if (headers[i].p_type == PT_LOAD && headers[i].p_flags & PF_W)
            use |= CT_SEGMENT_DATA;
    }
    return sealed && use & CT_SEGMENT_DATA ? CT_SEGMENT_SEALED : use;
}

/* ---- several objects ---- */

static bool defines_behind(const struct ct_object *object, void *data)
{
    struct wanted *wanted = data;
    wanted->behind |= object->is_hook;
    if (object->is_hook || !wanted->behind)
        return false;
    wanted->symbol = ct_symbol_in(object, wanted->name, NULL);
    if (wanted->symbol)
        wanted->object = *object;
    return wanted->symbol != NULL;
}

void *ct_symbol_next(const char *name, struct ct_object *object)
{
    struct wanted wanted = { .name = name };
    if (ct_symbol_each(defines_behind, &wanted) && object)
        *object = wanted.object;
    return wanted.symbol;
}

void *ct_symbol_of_library(const char *name)
{
    struct wanted wanted = { .name = name, .symbol = ct_symbol_next(name, NULL), .behind = true };
    if (!wanted.symbol)
        ct_symbol_each(defines_behind, &wanted);
    return wanted.symbol;
}

void *ct_symbol_in_libc(const char *name)
{
    void *found = find_listed(name);
    return found ? found : ct_symbol_of_library(name);
}

void ct_scope_collect(const struct ct_object *object, struct ct_link_scope *scope)
{
    struct ct_object *const all = scope->objects;
    scope->count = 1;
    all[0] = *object;
    for (uint32_t i = 0; i < scope->count; i++) {
        for (const ElfW(Dyn) *entry = all[i].dynamic; entry->d_tag != DT_NULL; entry++) {
            struct ct_object *needed = &all[scope->count];
            if (entry->d_tag != DT_NEEDED || scope->count == CT_SCOPE_MAX ||
                !ct_symbol_object((const char *)all[i].strings + entry->d_un.d_val, needed))
                continue;
            uint32_t known = 0;
            while (all[known].dynamic != needed->dynamic)
                known++;
            scope->count += known == scope->count;
        }
    }
}

void *ct_scope_find(const struct ct_link_scope *scope, const char *name, const char *version,
                    struct ct_object *object)
{
    for (uint32_t i = 0; i < scope->count; i++) {
        void *symbol = ct_symbol_in(&scope->objects[i], name, version);
        if (symbol) {
            if (object)
                *object = scope->objects[i];
            return symbol;
        }
    }
    return NULL;
}
