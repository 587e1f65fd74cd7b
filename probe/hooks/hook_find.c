#include "hook_find.h"

#include "regular_file.h"
#include "targets.h"
#include "tracepoint.h"

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { WHY_BYTES = 512 };

/* ---- functions in the kernel ---- */

/* The compiler adds suffixes to the names of functions that it has changed. If it has split off a part of a
 * function (.part, .cold), that part must not be mistaken for the function. */
size_t ct_hook_function_length(const char *symbol)
{
    static const char *const changes[] = { ".isra.", ".constprop." };
    const size_t whole = strlen(symbol);
    size_t length = whole;
    for (size_t i = 0; i < sizeof(changes) / sizeof(changes[0]); i++) {
        const char *suffix = strstr(symbol, changes[i]);
        if (suffix && (size_t)(suffix - symbol) < length)
            length = (size_t)(suffix - symbol);
    }
    return strstr(symbol + length, ".part") || strstr(symbol + length, ".cold") ? whole : length;
}

static bool is_function(const char *symbol, const char *name, size_t length)
{
    return strncmp(symbol, name, length) == 0 &&
           (symbol[length] == '\0' || ct_hook_function_length(symbol) == length);
}

/* Returns the symbol's position in a list of names separated by '|', or -1 if it is not in the list. */
static int position_of(const char *symbol, const char *names)
{
    int position = 0;
    for (;; position++) {
        const size_t length = strcspn(names, "|");
        if (length > 0 && is_function(symbol, names, length))
            return position;
        if (names[length] == '\0')
            return -1;
        names += length + 1;
    }
}

static bool find_in_kernel(struct ct_hook_entry *hook, char why[WHY_BYTES])
{
    char line[512], symbol[256], kind;
    int best = -1;
    FILE *symbols = fopen("/proc/kallsyms", "re");
    while (symbols && fgets(line, sizeof(line), symbols)) {
        if (sscanf(line, "%*x %c %255s", &kind, symbol) != 2 || !strchr("tTwW", kind))
            continue;
        const int position = position_of(symbol, hook->place);
        if (position < 0 || (best >= 0 && position >= best))
            continue;
        char *found = strdup(symbol);
        if (!found)
            break;
        free(hook->function);
        hook->function = found;
        best = position;
    }
    if (symbols)
        fclose(symbols);
    if (best < 0)
        snprintf(why, WHY_BYTES,
                 "the kernel has no function %s: its module is not loaded, or the compiler has inlined it",
                 hook->place);
    return best >= 0;
}

uint64_t ct_hook_find_trampoline(void)
{
    /* The trampoline's names since Linux 5.18, since Linux 5.16, and in older versions. */
    static const char *const names[] = { "arch_rethook_trampoline", "__kretprobe_trampoline",
                                         "kretprobe_trampoline" };
    char line[512], symbol[256];
    uint64_t address, found = 0;
    FILE *symbols = fopen("/proc/kallsyms", "re");
    while (symbols && !found && fgets(line, sizeof(line), symbols)) {
        for (size_t i = 0; sscanf(line, "%" SCNx64 " %*c %255s", &address, symbol) == 2 && i < 3; i++)
            found = strcmp(symbol, names[i]) == 0 ? address : found;
    }
    if (symbols)
        fclose(symbols);
    return found;
}

/* ---- functions in libraries ---- */

struct search {
    const char *name;
    uint64_t offset;
    bool is_found;
};

static void compare(const char *name, uint64_t offset, void *data)
{
    struct search *search = data;
    if (strcmp(name, search->name) != 0)
        return;
    search->offset = offset;
    search->is_found = true;
}

static bool is_among(const char *name, const char *const *names)
{
    while (*names && strcmp(name, *names) != 0)
        names++;
    return *names;
}

/* To probe a function's return, the kernel replaces the return address on the stack. */
bool ct_hook_keeps_return_address(const char *name)
{
    static const char *const names[] = { "setjmp",     "_setjmp",     "sigsetjmp",    "__sigsetjmp",
                                         "getcontext", "swapcontext", "__getcontext", "vfork",
                                         "__vfork",    NULL };
    return is_among(name, names);
}

/* The loader finds the caller's library by the return address, for RTLD_NEXT and for the search path. */
bool ct_hook_examines_caller(const char *name)
{
    static const char *const names[] = { "dlsym", "dlvsym", "dlopen", "dlmopen", NULL };
    return is_among(name, names);
}

/* If the return address on the stack has been replaced by a probe, the C++ unwinder does not recognize it,
 * and terminates the program. */
bool ct_hook_may_throw(const struct ct_elf *elf, const char *symbol)
{
    bool is_cpp = strncmp(symbol, "_Z", 2) == 0;
    for (size_t i = 0; elf->needed && elf->needed[i]; i++)
        is_cpp |= strncmp(elf->needed[i], "libstdc++.", strlen("libstdc++.")) == 0 ||
                  strncmp(elf->needed[i], "libc++.", strlen("libc++.")) == 0;
    return is_cpp;
}

bool ct_hook_is_driver_function(const char *library, const char *symbol)
{
    const char *slash = strrchr(library, '/');
    return slash && strncmp(slash, "/libcuda.so", strlen("/libcuda.so")) == 0 &&
           ct_targets_is_driver_function(symbol);
}

const char *ct_hook_file(const struct ct_hook_entry *hook, char path[CT_HOOK_FILE_BYTES])
{
    snprintf(path, CT_HOOK_FILE_BYTES, "/proc/self/fd/%d", hook->file);
    return path;
}

static bool find_in_library(struct ct_hook_entry *hook, char why[WHY_BYTES])
{
    if (!hook->rule.is_entry && ct_hook_keeps_return_address(hook->symbol)) {
        snprintf(why, WHY_BYTES, "%s saves its return address: a probe of its return would crash the program",
                 hook->symbol);
        return false;
    }
    if (!hook->rule.is_entry && ct_hook_examines_caller(hook->symbol)) {
        snprintf(why, WHY_BYTES,
                 "%s examines the address of its caller: a probe of its return would change its result; "
                 "record it 'at entry'",
                 hook->symbol);
        return false;
    }
    struct ct_elf elf = { .fd = -1 };
    struct search search = { .name = hook->symbol };
    char *text = NULL, path[CT_HOOK_FILE_BYTES];
    struct stat status;
    const int file = ct_regular_file_open(hook->place, &status);
    hook->file = file > 0 ? file : 0;
    int error = file < 0 ? file : ct_elf_open(&elf, ct_hook_file(hook, path));
    if (!error && !elf.native)
        error = -ENOEXEC;
    if (!error)
        error = ct_elf_each_function(&elf, compare, &search, &text);
    free(text);
    const bool is_refused = !error && search.is_found && !hook->is_nothrow && !hook->rule.is_entry &&
                            ct_hook_may_throw(&elf, hook->symbol);
    if (!error && search.is_found && search.offset != UINT64_MAX)
        hook->offset = ct_targets_place(&elf, search.offset);
    ct_elf_close(&elf);
    if (error == -ENOEXEC)
        snprintf(why, WHY_BYTES, "%s: not a library for this processor", hook->place);
    else if (error && error != -ENODATA)
        snprintf(why, WHY_BYTES, "%s: %s", hook->place, strerror(-error));
    else if (!search.is_found)
        snprintf(why, WHY_BYTES, "%s does not export a function %s", hook->place, hook->symbol);
    else if (is_refused)
        snprintf(why, WHY_BYTES,
                 "a C++ exception that leaves a function with a probe of its return ends the program: record "
                 "%s 'at entry', or add 'nothrow' if no exception leaves it",
                 hook->symbol);
    else if (search.offset == UINT64_MAX)
        snprintf(why, WHY_BYTES, "%s: %s is an indirect function, which has no code of its own", hook->place,
                 hook->symbol);
    return !error && search.is_found && search.offset != UINT64_MAX && !is_refused;
}

/* ---- tracepoints ---- */

/* A line is "	field:__data_loc char[] dev;	offset:8;	size:4;	signed:0;" or
 * "	field:char comm[16];	offset:8;	size:16;	signed:0;". */
bool ct_hook_read_record_field(char *line, struct ct_hook_record_field *field)
{
    unsigned offset, bytes, is_signed;
    char *declaration = strstr(line, "field:"), *end = declaration ? strchr(declaration, ';') : NULL;
    if (!end || sscanf(end, "; offset:%u; size:%u; signed:%u;", &offset, &bytes, &is_signed) != 3)
        return false;
    declaration += strlen("field:");
    *end = '\0';
    char *array = strchr(declaration, '[');
    const bool is_relative = strstr(declaration, "__rel_loc") != NULL; /* from the place's own place */
    const bool is_located = is_relative || strstr(declaration, "__data_loc");
    const bool is_text = array && !is_relative && strstr(declaration, "char");
    *field = (struct ct_hook_record_field){ .type = declaration, .array = "", .is_text = is_text };
    if (array && !is_located) {
        field->array = memmove(array + 1, array, strlen(array) + 1); /* the numbers have been read */
        *array = '\0';
    }
    char *blank = strrchr(declaration, ' ');
    if (!blank)
        return false;
    *blank = '\0';
    field->name = blank + 1;
    field->source = (struct ct_hook_source){
        .origin = CT_ORIGIN_RECORD,
        .form = !is_text     ? CT_FORM_VALUE
                : is_located ? CT_FORM_LOCATION
                             : CT_FORM_TEXT,
        .bytes = (uint8_t)(bytes > 8 ? 0 : bytes),
        .is_signed = is_signed != 0,
        .offset = (int32_t)offset,
    };
    field->is_usable = is_text || (!array && (bytes == 1 || bytes == 2 || bytes == 4 || bytes == 8));
    return true;
}

/* Sets the source from the field called `wanted` in the tracepoint's record. */
static bool find_field(FILE *format, const char *wanted, struct ct_hook_source *source, char why[WHY_BYTES])
{
    char line[1024], known[256] = "";
    struct ct_hook_record_field field;
    rewind(format);
    while (fgets(line, sizeof(line), format)) {
        if (!ct_hook_read_record_field(line, &field))
            continue;
        if (strcmp(field.name, wanted) == 0) {
            *source = field.source;
            if (!field.is_usable)
                snprintf(why, WHY_BYTES, "the field '%s' is neither a number nor a text", wanted);
            return field.is_usable;
        }
        const size_t length = strlen(known);
        if (strncmp(field.name, "common_", strlen("common_")) != 0)
            snprintf(known + length, sizeof(known) - length, "%s%s", length ? ", " : "", field.name);
    }
    snprintf(why, WHY_BYTES, "the tracepoint has no field '%s', but %s", wanted,
             known[0] ? known : "no field at all");
    return false;
}

static bool find_fields(struct ct_hook_entry *hook, FILE *format, char why[WHY_BYTES])
{
    struct ct_hook_rule *rule = &hook->rule;
    rule->texts = 0;
    for (uint32_t i = 0; i < rule->fields && hook->field_place[i]; i++) {
        if (!find_field(format, hook->field_place[i], &rule->field[i], why))
            return false;
        if (ct_hook_is_text(&rule->field[i]) && rule->texts == CT_HOOK_TEXTS) {
            snprintf(why, WHY_BYTES, "more than %d fields are texts", CT_HOOK_TEXTS);
            return false;
        }
        if (ct_hook_is_text(&rule->field[i]))
            rule->field[i].text = rule->texts++;
    }
    for (uint32_t i = 0; i < rule->conditions; i++) {
        if (!find_field(format, hook->condition_place[i], &rule->condition[i].source, why))
            return false;
        if (ct_hook_is_text(&rule->condition[i].source)) {
            snprintf(why, WHY_BYTES, "a condition compares numbers, and '%s' is a text",
                     hook->condition_place[i]);
            return false;
        }
    }
    return true;
}

static bool find_tracepoint(struct ct_hook_entry *hook, int tracefs, char why[WHY_BYTES])
{
    if (tracefs < 0) {
        snprintf(why, WHY_BYTES, "tracefs is not mounted at /sys/kernel/tracing, and mounting it: %s",
                 strerror(-tracefs));
        return false;
    }
    hook->event = ct_tracepoint_number(tracefs, hook->place, hook->symbol);
    FILE *format = hook->event >= 0 ? ct_tracepoint_open(tracefs, hook->place, hook->symbol, "format") : NULL;
    if (!format)
        snprintf(why, WHY_BYTES,
                 hook->event == -ENOENT ? "the kernel has no tracepoint %s:%s, or its module is not loaded"
                                        : "tracepoint %s:%s: permission denied: run as root",
                 hook->place, hook->symbol);
    const bool found = format && find_fields(hook, format, why);
    if (format)
        fclose(format);
    return found;
}

static bool find(struct ct_hook_entry *hook, int tracefs, char why[WHY_BYTES])
{
    switch (hook->kind) {
    case CT_HOOK_KPROBE:
        return find_in_kernel(hook, why);
    case CT_HOOK_UPROBE:
        return find_in_library(hook, why);
    case CT_HOOK_TRACEPOINT:
        return find_tracepoint(hook, tracefs, why);
    }
    return false;
}

/* Returns whether both hooks have the same target. The kernel attaches a BPF program to a tracepoint only
 * once. Hooks with the scope `in machine` use a program of their own. */
static bool has_same_target(const struct ct_hook_entry *a, const struct ct_hook_entry *b)
{
    if (a->kind != b->kind)
        return false;
    return a->kind == CT_HOOK_KPROBE   ? strcmp(a->function, b->function) == 0
           : a->kind == CT_HOOK_UPROBE ? strcmp(a->place, b->place) == 0 && a->offset == b->offset
                                       : a->event == b->event && (a->rule.scope == CT_SCOPE_MACHINE) ==
                                                                     (b->rule.scope == CT_SCOPE_MACHINE);
}

/* Returns an earlier hook on the same target, or NULL. */
static const struct ct_hook_entry *find_earlier(const struct ct_hook_table *table,
                                                const struct ct_hook_entry *hook)
{
    for (const struct ct_hook_entry *earlier = table->hook; earlier < hook; earlier++) {
        if (earlier->is_found && has_same_target(earlier, hook))
            return earlier;
    }
    return NULL;
}

bool ct_hook_find_all(struct ct_hook_table *table, int tracefs)
{
    bool all = true;
    for (size_t i = 0; i < table->count; i++) {
        char why[WHY_BYTES];
        struct ct_hook_entry *hook = &table->hook[i];
        if (ct_hook_is_pattern(hook))
            continue; /* its error has been printed */
        hook->is_found = find(hook, tracefs, why);
        const struct ct_hook_entry *earlier = hook->is_found ? find_earlier(table, hook) : NULL;
        if (earlier) {
            hook->is_found = false;
            char whose[32];
            snprintf(whose, sizeof(whose), earlier->line > 0 ? "line %u" : "the probe", earlier->line);
            snprintf(why, sizeof(why), "%s hooks %s%s%s already", whose,
                     hook->function ? hook->function : hook->place, hook->symbol ? ":" : "",
                     hook->symbol ? hook->symbol : "");
        }
        if (!hook->is_found && hook->line > 0)
            fprintf(stderr, "%s:%u: %s: %s\n", hook->source, hook->line, hook->name, why);
        all &= hook->is_found || hook->line == 0;
    }
    return all;
}
