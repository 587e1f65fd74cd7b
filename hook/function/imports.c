/* An entry that was bound holds an address of the driver. One that is bound at its first call leads into its
 * own object until then, and would be written over: it gets the stub now if it would be bound to the driver.
 */
#include "imports.h"

#include "driver_addresses.h"
#include "loader.h"
#include "rows.h"
#include "system.h"

#include <dlfcn.h>
#include <link.h>
#include <sys/mman.h>
#include <unistd.h>

#if defined(__x86_64__)
enum { BY_CALL = R_X86_64_JUMP_SLOT, BY_TABLE = R_X86_64_GLOB_DAT, BY_DATA = R_X86_64_64 };
#elif defined(__aarch64__)
enum { BY_CALL = R_AARCH64_JUMP_SLOT, BY_TABLE = R_AARCH64_GLOB_DAT, BY_DATA = R_AARCH64_ABS64 };
#endif

struct importer {
    const struct ct_object *driver;
    bool is_opened; /* what the loader has protected may be written, in the object at hand */
};

/* ---- whom an entry leads to ---- */

struct definer {
    const char *name;
    const struct ct_object *driver;
    bool is_driver;
};

static bool defines(const struct ct_object *object, void *data)
{
    struct definer *definer = data;
    if (object->is_hook || !ct_symbol_in(object, definer->name, NULL))
        return false;
    definer->is_driver = object->dynamic == definer->driver->dynamic;
    return true;
}

/* True if the driver is the first object that defines the name. Where one stands in front that was loaded for
 * a single library, the entry stays, too. */
static bool binds_to_driver(const struct ct_object *driver, const char *name)
{
    struct definer definer = { name, driver, false };
    return ct_symbol_each(defines, &definer) && definer.is_driver;
}

/* The stub for an entry, NULL where it is to stay as it is. */
static void *stub_of(const struct importer *importer, const struct ct_object *object,
                     const ElfW(Rela) * entry, void *value)
{
    const uint64_t type = ELF64_R_TYPE(entry->r_info);
    if (type == BY_TABLE || type == BY_DATA || (type == BY_CALL && ct_symbol_use(object, value, 1) == 0))
        return ct_driver_stub(value);
    if (type != BY_CALL)
        return NULL;
    const char *name = ct_symbol_name(object, ELF64_R_SYM(entry->r_info));
    const uint32_t row = ct_row_of_driver(name);
    return row != CT_ROWS_ALL && ct_rows[row].real && ct_rows[row].way == CT_WAY_NAMES &&
                   binds_to_driver(importer->driver, name)
               ? ct_row_stub(row)
               : NULL;
}

/* ---- one object ---- */

static bool protect(const struct ct_object *object, int protection)
{
    const ElfW(Phdr) *const headers = object->headers;
    bool done = true;
    for (uint64_t i = 0; i < object->header_count; i++) {
        if (headers[i].p_type != PT_GNU_RELRO)
            continue;
        const uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE), begin = object->base + headers[i].p_vaddr;
        const uintptr_t from = begin & -page, to = (begin + headers[i].p_memsz) & -page;
        done &= to <= from || mprotect((void *)from, to - from, protection) == 0;
    }
    return done;
}

static bool may_write(struct importer *importer, const struct ct_object *object, void *where)
{
    const unsigned use = ct_symbol_use(object, where, sizeof(void *));
    if (use == CT_SEGMENT_SEALED && !importer->is_opened && ct_system_begin()) {
        importer->is_opened = protect(object, PROT_READ | PROT_WRITE);
        ct_system_end();
    }
    return use == CT_SEGMENT_DATA || (use == CT_SEGMENT_SEALED && importer->is_opened);
}

static void take_table(struct importer *importer, const struct ct_object *object,
                       const struct ct_relocations *table)
{
    const ElfW(Rela) *const entries = table->from;
    for (uint64_t i = 0; i < table->bytes / sizeof(*entries); i++) {
        const ElfW(Rela) *entry = &entries[i];
        if (ELF64_R_SYM(entry->r_info) == 0)
            continue;
        const char *name = ct_symbol_name(object, ELF64_R_SYM(entry->r_info));
        if (name[0] != 'c' || name[1] != 'u')
            continue;
        void **where = (void **)(object->base + entry->r_offset);
        void *stub = stub_of(importer, object, entry, __atomic_load_n(where, __ATOMIC_RELAXED));
        if (stub && may_write(importer, object, where))
            __atomic_store_n(where, stub, __ATOMIC_RELEASE);
    }
}

/* Most objects want nothing of the driver: what they do want stands in front of the symbols that are hashed,
 * which are their own. Where none is hashed, how many there are is not known. */
static bool wants_driver(const struct ct_object *object)
{
    const uint32_t *const table = object->gnu_hash;
    if (!table || (table[0] == 1 && table[4 + 2 * table[2]] == 0))
        return true;
    for (uint32_t i = 1; i < table[1]; i++) {
        const char *name = ct_symbol_name(object, i);
        if (name[0] == 'c' && name[1] == 'u' && ct_row_of_driver(name) != CT_ROWS_ALL)
            return true;
    }
    return false;
}

static bool take_object(const struct ct_object *object, void *data)
{
    struct importer *importer = data;
    if (object->is_hook || object->dynamic == importer->driver->dynamic || !wants_driver(object))
        return false;
    importer->is_opened = false;
    for (size_t i = 0; i < CT_ARRAY_LENGTH(object->relocations); i++)
        take_table(importer, object, &object->relocations[i]);
    if (importer->is_opened && ct_system_begin()) {
        protect(object, PROT_READ);
        ct_system_end();
    }
    return false;
}

/* An object is in the list before its tables are filled. A look-up waits until nobody is loading: one is made
 * here behind the counting, so that what was counted is filled. Who called dlsym would wait for the same. */
void ct_imports_take(const struct ct_object *driver)
{
    static struct ct_seen seen;
    struct ct_arrivals arrivals;
    struct importer importer = { .driver = driver };
    if (!ct_symbol_arrivals(&seen, &arrivals))
        return;
    ct_loader_symbol(RTLD_DEFAULT, "dlsym");
    ct_symbol_each_of(&arrivals, take_object, &importer);
    ct_symbol_see(&seen, &arrivals);
}
