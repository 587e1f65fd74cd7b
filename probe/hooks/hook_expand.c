#include "hook_expand.h"

#include "elf_reader.h"
#include "hook_find.h"
#include "kernel_symbols.h"
#include "names.h"
#include "room.h"
#include "tracepoint.h"

#include <ctype.h>
#include <errno.h>
#include <fnmatch.h>
#include <glob.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

/* The hooks that a pattern stands for. */
struct expansion {
    struct ct_hook_table *table; /* of the hooks so far */
    const struct ct_hook_entry *pattern;
    char *text;                        /* the pattern */
    const char *library;               /* of uprobes: the file that is being read */
    const struct ct_elf *elf;          /* and its contents */
    const struct ct_kernel_bars *bars; /* of kprobes */
    const struct ct_selection *recorded;
    size_t begin;              /* index of the pattern's first hook in the table */
    size_t matches, left_out;  /* number of targets, and of functions on which no hook is possible */
    size_t recorded_functions; /* of those that are left out */
    bool is_out_of_memory;
};

/* ---- copies of a hook ---- */

static bool copy_text(char **to, const char *from)
{
    *to = from ? strdup(from) : NULL;
    return *to || !from;
}

/* Makes a name of the target's name. */
static void take_name(struct ct_hook_entry *hook, const char *target)
{
    size_t length = 0;
    if (isdigit((unsigned char)*target))
        hook->name[length++] = '_';
    for (; *target && length < CT_FUNCTION_NAME_MAX; target++)
        hook->name[length++] = (char)(isalnum((unsigned char)*target) ? *target : '_');
    hook->name[length] = '\0';
}

/* Copies the pattern's hook for a target. Returns false if out of memory. The caller frees the copy. */
static bool copy(struct ct_hook_entry *hook, const struct expansion *expansion, const char *place,
                 const char *symbol, uint64_t offset)
{
    const struct ct_hook_entry *pattern = expansion->pattern;
    *hook = *pattern;
    hook->function = NULL;
    hook->offset = offset;
    bool good = copy_text(&hook->pattern, expansion->text);
    good = copy_text(&hook->place, place) && good;
    good = copy_text(&hook->symbol, symbol) && good;
    for (int i = 0; i < CT_HOOK_FIELDS; i++)
        good = copy_text(&hook->field_place[i], pattern->field_place[i]) && good;
    for (int i = 0; i < CT_HOOK_CONDITIONS; i++)
        good = copy_text(&hook->condition_place[i], pattern->condition_place[i]) && good;
    if (*hook->name == '\0')
        take_name(hook, symbol ? symbol : place);
    return good;
}

/* Returns whether a hook of the pattern, or of an earlier line, has the target already. A function can occur
 * several times in a library (versions, and names of the same code) and in the kernel (static functions). */
static bool is_known(const struct expansion *expansion, const char *place, const char *symbol,
                     uint64_t offset)
{
    for (size_t i = 0; i < expansion->table->count; i++) {
        const struct ct_hook_entry *hook = &expansion->table->hook[i];
        if (hook->kind == expansion->pattern->kind && strcmp(hook->place, place) == 0 &&
            (!symbol || strcmp(hook->symbol, symbol) == 0 || (offset > 0 && hook->offset == offset)))
            return true;
    }
    return false;
}

/* Adds a target. `offset` is that of a library's function, otherwise 0. */
static void add(struct expansion *expansion, const char *place, const char *symbol, uint64_t offset)
{
    struct ct_hook_table *table = expansion->table;
    struct ct_hook_entry hook;
    if (is_known(expansion, place, symbol, offset))
        return;
    expansion->matches++;
    if (table->count >= CT_HOOKS_MAX)
        return; /* the number of targets is reported */
    if (copy(&hook, expansion, place, symbol, offset) &&
        ct_make_room(&table->hook, table->count, &table->room, sizeof(hook))) {
        table->hook[table->count++] = hook;
        return;
    }
    ct_hook_entry_free(&hook);
    expansion->is_out_of_memory = true;
}

/* ---- targets ---- */

static bool add_symbol(const struct ct_kernel_symbol *symbol, void *data)
{
    struct expansion *expansion = data;
    char name[512], patterns[512], *rest = patterns;
    snprintf(name, sizeof(name), "%.*s", (int)symbol->length, symbol->name);
    snprintf(patterns, sizeof(patterns), "%s", expansion->pattern->place);
    for (const char *pattern; (pattern = strsep(&rest, "|")) != NULL;) {
        if (fnmatch(pattern, name, 0) != 0)
            continue;
        if (ct_kernel_bars_why(expansion->bars, symbol->name))
            expansion->left_out++;
        else
            add(expansion, name, NULL, 0);
        break;
    }
    return !expansion->is_out_of_memory;
}

static int add_kernels(struct expansion *expansion)
{
    struct ct_kernel_bars bars = { 0 };
    if (!ct_kernel_has_kprobes())
        return -EOPNOTSUPP;
    ct_kernel_bars_read(&bars);
    expansion->bars = &bars;
    const int error = ct_kernel_symbols_each(add_symbol, expansion);
    ct_kernel_bars_free(&bars);
    return error;
}

/* Returns whether a hook on the function is possible. */
static bool is_possible(const struct expansion *expansion, const char *name, uint64_t offset)
{
    const struct ct_hook_entry *pattern = expansion->pattern;
    const bool has_return = !pattern->rule.is_entry;
    return offset != UINT64_MAX &&
           !(has_return && (ct_hook_keeps_return_address(name) || ct_hook_examines_caller(name))) &&
           !(has_return && !pattern->is_nothrow && ct_hook_may_throw(expansion->elf, name));
}

static void add_function(const char *name, uint64_t offset, void *data)
{
    struct expansion *expansion = data;
    if (fnmatch(expansion->pattern->symbol, name, 0) != 0)
        return;
    const bool is_recorded = expansion->recorded && ct_hook_is_driver_function(expansion->library, name) &&
                             ct_selection_takes(expansion->recorded, CT_LAYER_DRIVER, name);
    if (!is_recorded && is_possible(expansion, name, offset)) {
        add(expansion, expansion->library, name, offset);
        return;
    }
    expansion->left_out++;
    expansion->recorded_functions += is_recorded;
}

static int add_libraries(struct expansion *expansion)
{
    glob_t found;
    int error = glob(expansion->pattern->place, 0, NULL, &found);
    if (error != 0)
        return error == GLOB_NOMATCH ? 0 : -ENOMEM;
    for (size_t i = 0; i < found.gl_pathc && !error; i++) {
        struct stat status;
        struct ct_elf elf;
        char *text = NULL;
        expansion->library = found.gl_pathv[i];
        if (stat(expansion->library, &status) != 0 || !S_ISREG(status.st_mode) ||
            ct_elf_open(&elf, expansion->library) != 0)
            continue;
        expansion->elf = &elf;
        if (elf.native && ct_elf_each_function(&elf, add_function, expansion, &text) == -ENOMEM)
            error = -ENOMEM;
        free(text);
        ct_elf_close(&elf);
    }
    globfree(&found);
    return error;
}

static void add_tracepoint(const char *group, const char *name, void *data)
{
    struct expansion *expansion = data;
    if (fnmatch(expansion->pattern->place, group, 0) == 0 &&
        fnmatch(expansion->pattern->symbol, name, 0) == 0)
        add(expansion, group, name, 0);
}

/* ---- patterns ---- */

static char *text_of(const struct ct_hook_entry *pattern)
{
    static const char *const kinds[] = { "kprobe", "uprobe", "tracepoint" };
    char *text;
    return asprintf(&text, "%s:%s%s%s", kinds[pattern->kind], pattern->place, pattern->symbol ? ":" : "",
                    pattern->symbol ? pattern->symbol : "") < 0
               ? NULL
               : text;
}

/* Adds the hooks of a pattern. Returns false after printing an error. */
static bool expand(struct ct_hook_table *table, const struct ct_hook_entry *pattern,
                   const struct ct_selection *recorded, int tracefs)
{
    struct expansion expansion = {
        .table = table,
        .pattern = pattern,
        .begin = table->count,
        .text = text_of(pattern),
        .recorded = recorded,
    };
    int error = !expansion.text                   ? -ENOMEM
                : pattern->kind == CT_HOOK_KPROBE ? add_kernels(&expansion)
                : pattern->kind == CT_HOOK_UPROBE ? add_libraries(&expansion)
                : tracefs < 0                     ? tracefs
                                                  : ct_tracepoints_each(tracefs, add_tracepoint, &expansion);
    if (expansion.is_out_of_memory)
        error = -ENOMEM;
    char why[128] = "";
    if (error == -EOPNOTSUPP)
        snprintf(why, sizeof(why), "the kernel has no kprobes (CONFIG_KPROBES)");
    else if (error)
        snprintf(why, sizeof(why), "%s", strerror(-error));
    else if (expansion.matches == 0 && expansion.recorded_functions > 0)
        snprintf(why, sizeof(why),
                 "the probe itself records the %zu functions that match, unless --calls excludes them",
                 expansion.recorded_functions);
    else if (expansion.matches == 0 && expansion.left_out > 0)
        snprintf(why, sizeof(why),
                 "%zu functions match, but a hook is possible on none; --list names the reasons",
                 expansion.left_out);
    else if (expansion.matches == 0)
        snprintf(why, sizeof(why), "nothing on this machine matches");
    else if (expansion.begin + expansion.matches > CT_HOOKS_MAX)
        snprintf(why, sizeof(why), "%zu targets match, and the table has room for %zu: narrow the pattern",
                 expansion.matches, (size_t)CT_HOOKS_MAX - expansion.begin);
    const bool is_good = *why == '\0';
    fprintf(stderr, "%s:%u: %s: ", pattern->source, pattern->line,
            expansion.text ? expansion.text : "a pattern");
    if (is_good && expansion.left_out == 0)
        fprintf(stderr, "%zu target%s\n", expansion.matches, expansion.matches == 1 ? "" : "s");
    else if (is_good)
        fprintf(stderr, "%zu target%s; %zu more match, but a hook is not possible on them\n",
                expansion.matches, expansion.matches == 1 ? "" : "s", expansion.left_out);
    else
        fprintf(stderr, "%s\n", why);
    while (!is_good && table->count > expansion.begin)
        ct_hook_entry_free(&table->hook[--table->count]);
    free(expansion.text);
    return is_good;
}

bool ct_hook_expand(struct ct_hook_table *table, const struct ct_selection *recorded, int tracefs)
{
    struct ct_hook_table expanded = { 0 };
    bool good = true;
    for (size_t i = 0; i < table->count; i++) {
        struct ct_hook_entry *hook = &table->hook[i];
        if (ct_hook_is_pattern(hook) && expand(&expanded, hook, recorded, tracefs)) {
            ct_hook_entry_free(hook);
        } else if (ct_make_room(&expanded.hook, expanded.count, &expanded.room, sizeof(*hook))) {
            good &= !ct_hook_is_pattern(hook);
            expanded.hook[expanded.count++] = *hook;
        } else {
            good = false;
            ct_hook_entry_free(hook);
        }
    }
    free(table->hook);
    *table = expanded;
    return good;
}
