/* If an import table entry is bound to the driver, it contains an address in the driver. A lazily bound entry
 * points into its own object until the first call, which overwrites it with the function's address. If the
 * first call would bind the entry to the driver, the hook writes the stub's address to it in advance.
 *
 * If a visit has loaded the hook (proto/visit.h), no object is linked to the hook's exports. In that case,
 * the hook also exchanges entries that lead to the runtime, or to C library functions that it exports itself.
 * All exchanged entries can be restored. */
#include "imports.h"

#include "driver_addresses.h"
#include "exchanged.h"
#include "loader.h"
#include "rows.h"
#include "runtime_functions.h"
#include "system.h"

#include <dlfcn.h>
#include <link.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#if defined(__x86_64__)
enum { BY_CALL = R_X86_64_JUMP_SLOT, BY_TABLE = R_X86_64_GLOB_DAT, BY_DATA = R_X86_64_64 };
#elif defined(__aarch64__)
enum { BY_CALL = R_AARCH64_JUMP_SLOT, BY_TABLE = R_AARCH64_GLOB_DAT, BY_DATA = R_AARCH64_ABS64 };
#endif

enum { WANTED_MOST = 16384 };
struct importer {
    bool is_visitor;         /* a visit has loaded the hook */
    bool is_opened;          /* the hook has made the loader's protected pages writable */
    struct ct_sealed sealed; /* the pages that the loader protected */
    struct ct_page page;     /* the page that was last checked */
    /* One bit for each symbol that the object imports, set if the symbol is wanted. The bits are used only if
     * the number of imported symbols is known. Otherwise, every relocation's name must be compared, which
     * takes tens of milliseconds. */
    bool has_list;
    uint8_t list[WANTED_MOST / 8];
    uint32_t look; /* sequence number of this call to ct_imports_take() */
};

/* C library functions that the hook also exports. */
static struct own {
    const char *const name;
    void *ours, *theirs;
} own[] = {
    { .name = "_Exit" }, { .name = "_Fork" },   { .name = "_exit" },
    { .name = "dlsym" }, { .name = "dlvsym" },  { .name = "ioctl" },
    { .name = "prctl" }, { .name = "syscall" }, { .name = "vfork" },
};

static bool find_own(const struct ct_object *object, void *data)
{
    (void)data;
    for (size_t i = 0; object->is_hook && i < CT_ARRAY_LENGTH(own); i++)
        own[i].ours = ct_symbol_in(object, own[i].name, NULL);
    return object->is_hook;
}

static void know_own(void)
{
    ct_symbol_each(find_own, NULL);
    for (size_t i = 0; i < CT_ARRAY_LENGTH(own); i++)
        own[i].theirs = ct_symbol_of_library(own[i].name);
}

static struct own *own_named(const char *name)
{
    for (size_t i = 0; i < CT_ARRAY_LENGTH(own); i++) {
        if (own[i].name[0] == name[0] && strcmp(own[i].name, name) == 0)
            return &own[i];
    }
    return NULL;
}

/* True if entries for the name may have to be exchanged. */
static bool is_wanted(const struct importer *importer, const char *name)
{
    if (name[0] == 'c' && name[1] == 'u')
        return ct_row_of_driver(name) != CT_ROWS_ALL ||
               (importer->is_visitor && ct_row_of_runtime(name) != CT_ROWS_ALL);
    return importer->is_visitor && own_named(name);
}

/* ---- targets of entries ---- */

/* A symbol's address in the first object that defines it, and the number of objects that do. */
struct definer {
    const char *name;
    void *first;
    uint32_t count;
};

/* Caches where each row's symbol is defined, since thousands of entries share a few hundred names. */
static struct {
    struct definer found;
    _Atomic uint32_t look;
} definers[CT_ROW_COUNT + CT_RUNTIME_FUNCTIONS];

static bool defines(const struct ct_object *object, void *data)
{
    struct definer *definer = data;
    void *found = object->is_hook ? NULL : ct_symbol_in(object, definer->name, NULL);
    if (found && definer->count++ == 0)
        definer->first = found;
    return false;
}

static struct definer find_definer(const struct importer *importer, const char *name)
{
    const uint32_t driver = ct_row_of_driver(name);
    const uint32_t row = driver != CT_ROWS_ALL ? driver : ct_row_of_runtime(name);
    struct definer definer = { .name = name };
    if (row == CT_ROWS_ALL)
        return definer;
    if (atomic_load_explicit(&definers[row].look, memory_order_acquire) == importer->look)
        return definers[row].found;
    ct_symbol_each(defines, &definer);
    definers[row].found = definer;
    atomic_store_explicit(&definers[row].look, importer->look, memory_order_release);
    return definer;
}

/* Returns the address that an entry leads to, or will lead to once it is bound. An unbound entry will lead to
 * the first object that defines its name, even if the object was loaded with RTLD_LOCAL. Returns NULL if the
 * address is unknown. */
static void *leads_to(const struct importer *importer, const struct ct_object *object,
                      const ElfW(Rela) * entry, void *value)
{
    const uint64_t type = ELF64_R_TYPE(entry->r_info);
    if (type != BY_TABLE && type != BY_DATA && type != BY_CALL)
        return NULL;
    if (type != BY_CALL || ct_symbol_use(object, value, 1) == 0)
        return value;
    const char *name = ct_symbol_name(object, ELF64_R_SYM(entry->r_info));
    const struct own *function = importer->is_visitor ? own_named(name) : NULL;
    if (function)
        return function->theirs;
    const struct definer definer = find_definer(importer, name);
    /* The entry's symbol version would show which object is meant, but is not read. */
    const bool is_one_of_several = definer.count > 1 && ct_row_of_runtime(name) != CT_ROWS_ALL;
    return is_one_of_several ? NULL : definer.first;
}

/* Returns the stub for an entry that leads to `real`, or NULL if the entry must not be changed. */
static void *stub_of(const struct importer *importer, const char *name, void *real)
{
    void *stub = real ? ct_driver_stub(real) : NULL;
    if (stub || !real || !importer->is_visitor)
        return stub;
    const struct own *function = own_named(name);
    if (function)
        return function->theirs == real ? function->ours : NULL;
    const uint32_t row = ct_row_of_runtime(name);
    return row == CT_ROWS_ALL ? NULL : ct_runtime_known_stub(real, row);
}

/* ---- one object ---- */

/* Returns the pages that the loader makes read-only after it has filled them in. */
static struct ct_sealed sealed_of(const struct ct_object *object)
{
    const ElfW(Phdr) *const headers = object->headers;
    for (uint64_t i = 0; i < object->header_count; i++) {
        if (headers[i].p_type != PT_GNU_RELRO)
            continue;
        const uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE), begin = object->base + headers[i].p_vaddr;
        const uintptr_t from = begin & -page, to = (begin + headers[i].p_memsz) & -page;
        if (to > from)
            return (struct ct_sealed){ (void *)from, to - from };
    }
    return (struct ct_sealed){ 0 };
}

static bool protect(const struct ct_sealed *sealed, int protection)
{
    return !sealed->from || mprotect(sealed->from, sealed->bytes, protection) == 0;
}

/* Checks with the kernel, since the program headers may no longer be right: another library may have changed
 * the protection. */
static bool may_write(struct importer *importer, const struct ct_object *object, void *where)
{
    const unsigned use = ct_symbol_use(object, where, sizeof(void *));
    if (use != CT_SEGMENT_DATA && use != CT_SEGMENT_SEALED)
        return false;
    if (ct_page_writable(&importer->page, where))
        return true;
    if (use != CT_SEGMENT_SEALED || importer->is_opened || !ct_system_begin())
        return false;
    importer->is_opened = protect(&importer->sealed, PROT_READ | PROT_WRITE);
    ct_system_end();
    importer->page = (struct ct_page){ 0 };
    return ct_page_writable(&importer->page, where);
}

static void take_entry(struct importer *importer, const struct ct_object *object, const char *name,
                       const ElfW(Rela) * entry)
{
    void **where = (void **)(object->base + entry->r_offset);
    void *value = __atomic_load_n(where, __ATOMIC_RELAXED);
    void *stub = stub_of(importer, name, leads_to(importer, object, entry, value));
    if (!stub || stub == value || !may_write(importer, object, where))
        return;
    const bool is_sealed =
        importer->is_opened && ct_symbol_use(object, where, sizeof(void *)) == CT_SEGMENT_SEALED;
    if (!importer->is_visitor || ct_exchanged_note(where, value, stub, is_sealed ? &importer->sealed : NULL))
        __atomic_store_n(where, stub, __ATOMIC_RELEASE);
}

static bool is_listed(const struct importer *importer, const struct ct_object *object, uint64_t symbol)
{
    if (!importer->has_list)
        return is_wanted(importer, ct_symbol_name(object, symbol));
    return symbol < WANTED_MOST && importer->list[symbol / 8] >> symbol % 8 & 1;
}

static void take_table(struct importer *importer, const struct ct_object *object,
                       const struct ct_relocations *table)
{
    const ElfW(Rela) *const entries = table->from;
    for (uint64_t i = 0; i < table->bytes / sizeof(*entries); i++) {
        const uint64_t symbol = ELF64_R_SYM(entries[i].r_info);
        if (symbol && is_listed(importer, object, symbol))
            take_entry(importer, object, ct_symbol_name(object, symbol), &entries[i]);
    }
}

/* True if the object may import a wanted symbol, which most objects do not. Imported symbols precede the
 * hashed symbols, which the object defines itself. If no symbol is hashed, the number of imported symbols is
 * unknown. */
static bool wants_any(struct importer *importer, const struct ct_object *object)
{
    const uint32_t *const table = object->gnu_hash;
    bool wants = false;
    importer->has_list = false;
    if (!table || (table[0] == 1 && table[4 + 2 * table[2]] == 0))
        return true;
    importer->has_list = importer->is_visitor && table[1] <= WANTED_MOST;
    if (importer->has_list)
        memset(importer->list, 0, sizeof(importer->list));
    for (uint32_t i = 1; i < table[1]; i++) {
        if (!is_wanted(importer, ct_symbol_name(object, i)))
            continue;
        wants = true;
        if (!importer->has_list)
            break;
        importer->list[i / 8] |= (uint8_t)(1U << i % 8);
    }
    return wants;
}

static bool take_object(const struct ct_object *object, void *data)
{
    struct importer *importer = data;
    const bool is_driver = ct_symbol_is(object, CT_DRIVER_FILE);
    if (object->is_hook || (is_driver && !importer->is_visitor) || !wants_any(importer, object))
        return false;
    importer->is_opened = false;
    importer->sealed = sealed_of(object);
    importer->page = (struct ct_page){ 0 };
    for (size_t i = 0; i < CT_ARRAY_LENGTH(object->relocations); i++)
        take_table(importer, object, &object->relocations[i]);
    if (importer->is_opened && ct_system_begin()) {
        protect(&importer->sealed, PROT_READ);
        ct_system_end();
    }
    return false;
}

/* The loader lists an object before it has filled in the object's tables. After counting the objects,
 * ct_imports_take() therefore looks a symbol up. The lookup waits until no thread is loading a library, by
 * which time the tables of all counted objects are filled in. The program's own call to dlsym would wait for
 * the same threads. */
static struct ct_seen seen;

void ct_imports_take(void)
{
    struct ct_arrivals arrivals;
    struct importer importer = { .is_visitor = ct_symbol_is_visitor() };
    static _Atomic uint32_t looks;
    if (!ct_symbol_arrivals(&seen, &arrivals))
        return;
    importer.look = atomic_fetch_add_explicit(&looks, 1, memory_order_relaxed) + 1;
    ct_loader_symbol(RTLD_DEFAULT, "dlsym");
    if (importer.is_visitor) {
        ct_runtime_look();
        know_own();
    }
    ct_exchanged_begin();
    ct_symbol_each_of(&arrivals, take_object, &importer);
    ct_symbol_see(&seen, &arrivals);
    ct_exchanged_end();
}

bool ct_imports_put_back(void)
{
    if (!ct_exchanged_put_back())
        return false;
    ct_symbol_see(&seen, &(struct ct_arrivals){ 0 });
    return true;
}
