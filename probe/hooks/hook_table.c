#include "hook_table.h"

#include "printable.h"
#include "room.h"
#include "say.h"

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>
#include <unistd.h>

enum {
    LINE_BYTES_MAX = 4096,
    ERRORS_SHOWN = 20,
    REGISTER_BYTES = 8,
};

struct reader {
    const char *path;
    struct ct_hook_table *table;
    unsigned line, errors;
    size_t hooks; /* read from this file */
    char *rest;   /* of the line, for strtok_r() */
};

#define BLANKS " \t\r\n"

/* Prints an error about the current line. Always returns false. */
__attribute__((format(printf, 2, 3))) static bool reject(struct reader *reader, const char *format, ...)
{
    if (reader->errors++ >= ERRORS_SHOWN)
        return false;
    va_list arguments;
    va_start(arguments, format);
    char *text = ct_printable_format(format, arguments);
    ct_say("%s:%u: %s", reader->path, reader->line, text ? text : "out of memory");
    free(text);
    va_end(arguments);
    return false;
}

static char *next_word(struct reader *reader)
{
    return strtok_r(NULL, BLANKS, &reader->rest);
}

/* ---- numbers and names ---- */

/* Reads a decimal or hexadecimal number in C notation. The number can have a sign if `is_signed` is true, and
 * a duration can have a unit. */
static bool read_number(const char *text, bool is_signed, bool is_duration, uint64_t *number)
{
    static const struct {
        const char *name;
        uint64_t ns;
    } units[] = { { "", 1 }, { "ns", 1 }, { "us", 1000 }, { "ms", 1000000 }, { "s", 1000000000 } };
    const char *digits = text + (is_signed && *text == '-');
    char *end;
    if (!isdigit((unsigned char)*digits))
        return false;
    errno = 0;
    *number = strtoull(digits, &end, strncmp(digits, "0x", 2) == 0 ? 16 : 10);
    if (errno != 0 || (is_signed && *number > INT64_MAX))
        return false;
    if (digits != text)
        *number = 0 - *number;
    for (size_t i = 0; i < (is_duration ? sizeof(units) / sizeof(units[0]) : 1); i++) {
        if (strcmp(end, units[i].name) == 0)
            return !__builtin_mul_overflow(*number, units[i].ns, number);
    }
    return false;
}

static bool is_name(const char *text, size_t length, size_t longest)
{
    if (length == 0 || length > longest || isdigit((unsigned char)*text))
        return false;
    for (size_t i = 0; i < length; i++) {
        if (!isalnum((unsigned char)text[i]) && text[i] != '_')
            return false;
    }
    return true;
}

/* ---- sources ---- */

static bool read_type(struct reader *reader, const char *type, struct ct_hook_source *source)
{
    static const struct {
        const char *name;
        uint8_t bytes, is_signed;
    } types[] = { { "u8", 1, 0 }, { "u16", 2, 0 }, { "u32", 4, 0 }, { "u64", 8, 0 },
                  { "s8", 1, 1 }, { "s16", 2, 1 }, { "s32", 4, 1 }, { "s64", 8, 1 } };
    for (size_t i = 0; i < sizeof(types) / sizeof(types[0]); i++) {
        if (strcmp(type, types[i].name) == 0) {
            source->bytes = types[i].bytes;
            source->is_signed = types[i].is_signed;
            return true;
        }
    }
    if (strcmp(type, "str") == 0) {
        source->form = CT_FORM_TEXT;
        return true;
    }
    return reject(reader, "unknown type '%s': expected u8, u16, u32, u64, s8, s16, s32, s64 or str", type);
}

/* Reads the number of an argument, and an offset into the memory that the argument points to. */
static bool read_argument(struct reader *reader, const char *text, struct ct_hook_source *source)
{
    char *end;
    const unsigned long number = strtoul(text, &end, 10);
    source->origin = CT_ORIGIN_ARGUMENT;
    if (end == text || number >= CT_PROBE_ARGUMENTS)
        return reject(reader, "arg%s: expected arg0 to arg%d", text, CT_PROBE_ARGUMENTS - 1);
    source->argument = (uint8_t)number;
    if (*end == '\0')
        return true;
    uint64_t offset;
    if ((*end != '+' && *end != '-') || !read_number(end + 1, false, false, &offset) || offset > 1 << 20)
        return reject(reader, "arg%s: expected an offset from 0 to 1048576, such as arg%lu+16", text, number);
    source->form = CT_FORM_MEMORY;
    source->offset = *end == '-' ? -(int32_t)offset : (int32_t)offset;
    return true;
}

/* Reads a source of a function, such as "arg1+16:u32". */
static bool read_value(struct reader *reader, char *text, struct ct_hook_source *source)
{
    char *type = strchr(text, ':');
    if (type)
        *type++ = '\0';
    *source = (struct ct_hook_source){ .bytes = REGISTER_BYTES };
    const bool is_duration = strcmp(text, "duration") == 0;
    if (strcmp(text, "ret") == 0) {
        source->origin = CT_ORIGIN_RESULT;
        source->is_signed = 1;
    } else if (is_duration) {
        source->origin = CT_ORIGIN_DURATION;
    } else if (strncmp(text, "arg", strlen("arg")) != 0) {
        return reject(reader,
                      "unknown source '%s': expected an argument (arg0), the result (ret) or duration", text);
    } else if (!read_argument(reader, text + strlen("arg"), source)) {
        return false;
    }
    if (type && is_duration)
        return reject(reader, "duration has no type");
    return !type || read_type(reader, type, source);
}

/* Reads a source of the hook. For a tracepoint, only stores the name of the field in *place. */
static bool read_source(struct reader *reader, const struct ct_hook_entry *hook, char *text,
                        struct ct_hook_source *source, char **place)
{
    if (hook->kind != CT_HOOK_TRACEPOINT)
        return read_value(reader, text, source);
    if (!is_name(text, strlen(text), LINE_BYTES_MAX))
        return reject(reader, "invalid field '%s': expected the name of a field of the tracepoint", text);
    *source = (struct ct_hook_source){ .origin = CT_ORIGIN_RECORD };
    *place = strdup(text);
    return *place || reject(reader, "out of memory");
}

/* ---- the parts of a line ---- */

static bool read_target(struct reader *reader, struct ct_hook_entry *hook, const char *text)
{
    static const char *const kinds[] = {
        [CT_HOOK_KPROBE] = "kprobe:", [CT_HOOK_UPROBE] = "uprobe:", [CT_HOOK_TRACEPOINT] = "tracepoint:"
    };
    size_t kind = 0;
    while (kind < sizeof(kinds) / sizeof(kinds[0]) && strncmp(text, kinds[kind], strlen(kinds[kind])) != 0)
        kind++;
    if (kind == sizeof(kinds) / sizeof(kinds[0]))
        return reject(reader,
                      "unknown target '%s': expected kprobe:FUNCTION, uprobe:LIBRARY:FUNCTION or "
                      "tracepoint:GROUP:EVENT",
                      text);
    hook->kind = (enum ct_hook_kind)kind;
    const char *place = text + strlen(kinds[kind]);
    const char *last = strrchr(place, ':');
    if (*place == '\0' || (hook->kind != CT_HOOK_KPROBE && (!last || last == place || last[1] == '\0')))
        return reject(reader, "%s: expected %s", text,
                      hook->kind == CT_HOOK_KPROBE   ? "the name of a function in the kernel"
                      : hook->kind == CT_HOOK_UPROBE ? "uprobe:LIBRARY:FUNCTION"
                                                     : "tracepoint:GROUP:EVENT");
    if (hook->kind == CT_HOOK_UPROBE && *place != '/')
        return reject(reader, "%s: expected the library's path, beginning with '/'", text);
    const bool has_symbol = hook->kind != CT_HOOK_KPROBE;
    hook->place = strndup(place, has_symbol ? (size_t)(last - place) : strlen(place));
    hook->symbol = has_symbol ? strdup(last + 1) : NULL;
    return (hook->place && (hook->symbol || !has_symbol)) || reject(reader, "out of memory");
}

bool ct_hook_is_pattern(const struct ct_hook_entry *hook)
{
    static const char special[] = "*?[";
    return strpbrk(hook->place, special) || (hook->symbol && strpbrk(hook->symbol, special));
}

/* Reads the hook's name, or takes the name of its function or tracepoint if the line ends. */
static bool read_name(struct reader *reader, struct ct_hook_entry *hook, const char *text)
{
    const bool has_own = text != NULL;
    if (ct_hook_is_pattern(hook) && (!has_own || strcmp(text, "*") == 0))
        return true;
    if (!has_own)
        text = hook->symbol ? hook->symbol : hook->place;
    if (!has_own && !is_name(text, strlen(text), CT_FUNCTION_NAME_MAX))
        return reject(reader, "the hook has no name: expected a name after the target");
    if (!is_name(text, strlen(text), CT_FUNCTION_NAME_MAX))
        return reject(reader, "invalid name '%s': use at most %d letters, digits or '_'", text,
                      CT_FUNCTION_NAME_MAX);
    for (size_t i = 0; i < reader->table->count; i++) {
        const struct ct_hook_entry *other = &reader->table->hook[i];
        if (strcmp(other->name, text) == 0)
            return other->line > 0
                       ? reject(reader, "line %u has the name '%s' already", other->line, text)
                       : reject(reader, "the probe's own hook has the name '%s': use another name", text);
    }
    strcpy(hook->name, text);
    return true;
}

static bool has_field(const struct ct_hook_entry *hook, const char *name, size_t length)
{
    for (uint32_t i = 0; i < hook->rule.fields; i++) {
        if (strncasecmp(hook->field_name[i], name, length) == 0 && hook->field_name[i][length] == '\0')
            return true;
    }
    return false;
}

static bool read_field(struct reader *reader, struct ct_hook_entry *hook, char *text)
{
    char *equals = strchr(text, '=');
    const size_t length = equals ? (size_t)(equals - text) : 0;
    const uint32_t i = hook->rule.fields;
    if (!equals)
        return reject(reader,
                      "unknown word '%s': expected FIELD=SOURCE, if, limit, count, sample, in, at or nothrow",
                      text);
    if (i == CT_HOOK_FIELDS)
        return reject(reader, "more than %d fields", CT_HOOK_FIELDS);
    if (!is_name(text, length, CT_FIELD_NAME_MAX))
        return reject(reader, "invalid name of a field '%.*s': use at most %d letters, digits or '_'",
                      (int)length, text, CT_FIELD_NAME_MAX);
    if (has_field(hook, text, length))
        return reject(reader, "two fields have the name '%.*s'", (int)length, text);
    memcpy(hook->field_name[i], text, length);
    struct ct_hook_source *source = &hook->rule.field[i];
    hook->rule.fields++;
    if (!read_source(reader, hook, equals + 1, source, &hook->field_place[i]))
        return false;
    if (source->form == CT_FORM_TEXT && hook->rule.texts == CT_HOOK_TEXTS)
        return reject(reader, "more than %d fields are texts", CT_HOOK_TEXTS);
    if (source->form == CT_FORM_TEXT)
        source->text = hook->rule.texts++;
    return true;
}

static bool read_condition(struct reader *reader, struct ct_hook_entry *hook)
{
    static const char *const comparisons[] = {
        [CT_IS_EQUAL] = "==",         [CT_IS_UNEQUAL] = "!=", [CT_IS_LESS] = "<",
        [CT_IS_LESS_OR_EQUAL] = "<=", [CT_IS_GREATER] = ">",  [CT_IS_GREATER_OR_EQUAL] = ">=",
        [CT_HAS_BITS] = "&",
    };
    enum { COMPARISONS = sizeof(comparisons) / sizeof(comparisons[0]) };
    char *left = next_word(reader), *comparison = left ? next_word(reader) : NULL;
    const char *number = comparison ? next_word(reader) : NULL;
    if (!number)
        return reject(reader, "incomplete condition: expected three words, such as 'arg1 > 4096'");
    if (hook->rule.conditions == CT_HOOK_CONDITIONS)
        return reject(reader, "more than %d conditions", CT_HOOK_CONDITIONS);
    const uint32_t i = hook->rule.conditions++;
    struct ct_hook_condition *condition = &hook->rule.condition[i];
    if (!read_source(reader, hook, left, &condition->source, &hook->condition_place[i]))
        return false;
    if (condition->source.form == CT_FORM_TEXT)
        return reject(reader, "a condition compares numbers, not texts");
    while (condition->comparison < COMPARISONS && strcmp(comparison, comparisons[condition->comparison]) != 0)
        condition->comparison++;
    if (condition->comparison == COMPARISONS)
        return reject(reader, "unknown comparison '%s': expected ==, !=, <, <=, >, >= or &", comparison);
    const bool is_signed = condition->source.is_signed || hook->kind == CT_HOOK_TRACEPOINT;
    return read_number(number, is_signed, condition->source.origin == CT_ORIGIN_DURATION,
                       &condition->number) ||
           reject(reader, "invalid number '%s'%s", number,
                  is_signed ? "" : ": expected decimal or 0x, and not negative (or use a type such as :s32)");
}

static bool read_limit(struct reader *reader, struct ct_hook_entry *hook)
{
    char *text = next_word(reader), *slash = text ? strchr(text, '/') : NULL;
    uint64_t number = 0;
    if (slash)
        *slash = '\0';
    if (!slash || strcmp(slash + 1, "s") != 0 || !read_number(text, false, false, &number) || number == 0 ||
        number > 1000000)
        return reject(reader, "invalid limit: expected 1/s to 1000000/s");
    hook->rule.per_second = (uint32_t)number;
    return true;
}

static bool read_sample(struct reader *reader, struct ct_hook_entry *hook)
{
    const char *text = next_word(reader);
    uint64_t number = 0;
    if (!text || !read_number(text, false, false, &number) || number == 0 || number > 1000000)
        return reject(reader, "invalid sample: expected a number from 1 to 1000000, of which one call is "
                              "recorded");
    hook->rule.one_of = (uint32_t)number;
    return true;
}

static bool read_scope(struct reader *reader, struct ct_hook_entry *hook)
{
    static const char *const scopes[] = {
        [CT_SCOPE_PROCESSES] = "processes", [CT_SCOPE_CALLS] = "calls", [CT_SCOPE_MACHINE] = "machine"
    };
    const char *text = next_word(reader);
    for (uint32_t scope = 0; text && scope < sizeof(scopes) / sizeof(scopes[0]); scope++) {
        if (strcmp(text, scopes[scope]) == 0) {
            hook->rule.scope = scope;
            return true;
        }
    }
    return reject(reader, "expected 'in calls', 'in processes' or 'in machine'");
}

/* Adds fields that identify the thread, since the event may occur in any thread of the machine. */
static bool add_task_fields(struct reader *reader, struct ct_hook_entry *hook)
{
    static const struct {
        const char *name;
        struct ct_hook_source source;
    } fields[] = { { "task_pid", { .origin = CT_ORIGIN_PID, .bytes = sizeof(uint32_t) } },
                   { "task_tid", { .origin = CT_ORIGIN_TID, .bytes = sizeof(uint32_t) } },
                   { "task_name",
                     { .origin = CT_ORIGIN_TID, .form = CT_FORM_TASK, .text = CT_HOOK_TEXTS } } };
    enum { FIELDS = sizeof(fields) / sizeof(fields[0]) };
    if (hook->kind == CT_HOOK_UPROBE)
        return reject(reader, "'in machine' is only for tracepoints and functions of the kernel");
    if (hook->kind == CT_HOOK_KPROBE && !hook->rule.is_entry)
        return reject(reader, "'in machine' records a function of the kernel only 'at entry': add that");
    if (hook->rule.fields > CT_HOOK_FIELDS - FIELDS)
        return reject(reader, "more than %d fields: 'in machine' adds task_pid, task_tid and task_name",
                      CT_HOOK_FIELDS - FIELDS);
    for (size_t i = 0; i < FIELDS; i++) {
        if (has_field(hook, fields[i].name, strlen(fields[i].name)))
            return reject(reader, "'in machine' adds the field '%s': use another name", fields[i].name);
        strcpy(hook->field_name[hook->rule.fields], fields[i].name);
        hook->rule.field[hook->rule.fields++] = fields[i].source;
    }
    return true;
}

static bool needs_return(const struct ct_hook_rule *rule)
{
    bool needs = false;
    for (uint32_t i = 0; i < (uint32_t)rule->fields + rule->conditions; i++) {
        const struct ct_hook_source *source =
            i < rule->fields ? &rule->field[i] : &rule->condition[i - rule->fields].source;
        needs |= source->origin == CT_ORIGIN_RESULT || source->origin == CT_ORIGIN_DURATION;
    }
    return needs;
}

static bool read_moment(struct reader *reader, struct ct_hook_entry *hook)
{
    const char *text = next_word(reader);
    if (!text || strcmp(text, "entry") != 0)
        return reject(reader, "expected 'at entry'");
    hook->rule.is_entry = 1;
    return hook->kind != CT_HOOK_TRACEPOINT || reject(reader, "a tracepoint has no entry");
}

/* Reads fields and clauses. */
static bool read_rest(struct reader *reader, struct ct_hook_entry *hook)
{
    bool good = true;
    const char *before = "";
    for (char *word; good && (word = next_word(reader)); before = word) {
        if (strcmp(word, "if") == 0)
            good = read_condition(reader, hook);
        else if (strcmp(word, "and") == 0)
            good = strcmp(before, "if") == 0 || strcmp(before, "and") == 0
                       ? read_condition(reader, hook)
                       : reject(reader, "'and' has no condition before it");
        else if (strcmp(word, "limit") == 0)
            good = read_limit(reader, hook);
        else if (strcmp(word, "count") == 0)
            hook->rule.one_of = CT_HOOK_COUNTS;
        else if (strcmp(word, "sample") == 0)
            good = read_sample(reader, hook);
        else if (strcmp(word, "in") == 0)
            good = read_scope(reader, hook);
        else if (strcmp(word, "at") == 0)
            good = read_moment(reader, hook);
        else if (strcmp(word, "nothrow") == 0)
            hook->is_nothrow = true;
        else
            good = read_field(reader, hook, word);
    }
    if (good && hook->rule.one_of == CT_HOOK_COUNTS && hook->rule.fields > 0)
        return reject(reader, "'count' records no calls, so the hook can have no fields");
    if (good && hook->rule.is_entry && needs_return(&hook->rule))
        return reject(reader, "'at entry' excludes the result (ret) and the duration");
    return good && (hook->rule.scope != CT_SCOPE_MACHINE || add_task_fields(reader, hook));
}

/* Returns how many words of the stack must be stored for the sources. */
static uint8_t stack_words(const struct ct_hook_rule *rule)
{
    uint8_t most = 0;
    for (uint32_t i = 0; i < (uint32_t)rule->fields + rule->conditions; i++) {
        const struct ct_hook_source *source =
            i < rule->fields ? &rule->field[i] : &rule->condition[i - rule->fields].source;
        if (source->origin == CT_ORIGIN_ARGUMENT && source->argument >= CT_PROBE_REGISTERS + most)
            most = (uint8_t)(source->argument - CT_PROBE_REGISTERS + 1);
    }
    return most;
}

void ct_hook_entry_free(struct ct_hook_entry *hook)
{
    free(hook->place);
    free(hook->symbol);
    free(hook->pattern);
    free(hook->function);
    for (int i = 0; i < CT_HOOK_FIELDS; i++)
        free(hook->field_place[i]);
    for (int i = 0; i < CT_HOOK_CONDITIONS; i++)
        free(hook->condition_place[i]);
    if (hook->file > 0)
        close(hook->file);
    *hook = (struct ct_hook_entry){ 0 };
}

/* Reads a line whose comment has been cut off. */
static void read_line(struct reader *reader, char *line)
{
    struct ct_hook_table *table = reader->table;
    const char *target = strtok_r(line, BLANKS, &reader->rest);
    struct ct_hook_entry hook = { .source = reader->path, .line = reader->line };
    if (!target)
        return;
    if (reader->hooks == CT_HOOKS_MAX) {
        reject(reader, "the table has more than %d hooks", CT_HOOKS_MAX);
        return;
    }
    bool good = read_target(reader, &hook, target) && read_name(reader, &hook, next_word(reader)) &&
                read_rest(reader, &hook);
    hook.rule.is_kernel = hook.kind != CT_HOOK_UPROBE;
    hook.rule.stack_words = stack_words(&hook.rule);
    if (good && !ct_make_room(&table->hook, table->count, &table->room, sizeof(hook)))
        good = reject(reader, "out of memory");
    reader->hooks += good;
    if (good)
        table->hook[table->count++] = hook;
    else
        ct_hook_entry_free(&hook);
}

/* ---- the file ---- */

/* A comment begins at a '#' that is the first character of a word. */
static void cut_comment(char *line)
{
    for (char *at = line; (at = strchr(at, '#')); at++) {
        if (at == line || strchr(BLANKS, at[-1])) {
            *at = '\0';
            return;
        }
    }
}

/* Reads lines until the end of the file, or until a line shows that the file is not a table. */
static void read_lines(struct reader *reader, FILE *file)
{
    static char line[LINE_BYTES_MAX];
    while (reader->hooks <= CT_HOOKS_MAX && reader->errors < ERRORS_SHOWN &&
           fgets(line, sizeof(line), file)) {
        reader->line++;
        if (!strchr(line, '\n') && !feof(file)) {
            reject(reader, "the line has more than %d bytes, or a NUL: this is not a table of hooks",
                   LINE_BYTES_MAX - 2);
            return;
        }
        cut_comment(line);
        const unsigned errors = reader->errors;
        read_line(reader, line);
        if (reader->hooks == CT_HOOKS_MAX && reader->errors > errors)
            return;
    }
    if (reader->errors == ERRORS_SHOWN)
        ct_say("%s: only the first %d errors are shown", reader->path, ERRORS_SHOWN);
}

/* Opens the file if it is a regular file. Otherwise, returns NULL and sets errno. */
static FILE *open_regular(const char *path)
{
    struct stat status;
    const int fd = open(path, O_RDONLY | O_NONBLOCK | O_CLOEXEC);
    if (fd < 0 || fstat(fd, &status) != 0)
        return NULL;
    if (S_ISREG(status.st_mode))
        return fdopen(fd, "r");
    close(fd);
    errno = EINVAL;
    return NULL;
}

bool ct_hook_table_add(struct ct_hook_table *table, const char *text)
{
    struct reader reader = { .path = "cudatrace-probe", .table = table };
    size_t i = table->count;
    FILE *file = fmemopen((void *)(uintptr_t)text, strlen(text), "r");
    if (!file)
        return false;
    read_lines(&reader, file);
    fclose(file);
    for (; i < table->count; i++)
        table->hook[i].line = 0;
    return reader.errors == 0;
}

/* Opens what standard input contains. It is read only once, because SIGHUP reads the table again. */
static FILE *open_input(struct ct_hook_lines *lines)
{
    size_t room = 0;
    if (!lines->input && getdelim(&lines->input, &room, '\0', stdin) < 0) {
        if (ferror(stdin))
            return NULL;
        free(lines->input);
        lines->input = strdup("\n");
    }
    return lines->input ? fmemopen(lines->input, strlen(lines->input), "r") : NULL;
}

static bool read_file(struct ct_hook_table *table, struct ct_hook_lines *lines)
{
    const bool is_input = strcmp(lines->path, "-") == 0;
    struct reader reader = { .path = is_input ? "standard input" : lines->path, .table = table };
    FILE *file = is_input ? open_input(lines) : open_regular(lines->path);
    if (file)
        read_lines(&reader, file);
    const int error = !file || ferror(file) ? errno : 0;
    if (error)
        ct_say("cudatrace-probe: cannot read the hooks in %s: %s", reader.path, strerror(error));
    if (file)
        fclose(file);
    return !error && reader.errors == 0;
}

static bool read_options(struct ct_hook_table *table, const struct ct_hook_lines *lines)
{
    struct reader reader = { .path = "--hook", .table = table };
    char *text = NULL;
    size_t bytes = 0;
    FILE *file = open_memstream(&text, &bytes);
    for (size_t i = 0; file && i < lines->lines; i++)
        fprintf(file, "%s\n", lines->line[i]);
    if (file && fclose(file) == 0 && bytes > 0) {
        file = fmemopen(text, bytes, "r");
        if (file) {
            read_lines(&reader, file);
            fclose(file);
        }
    }
    free(text);
    if (!file)
        ct_say("cudatrace-probe: out of memory");
    return file && reader.errors == 0;
}

bool ct_hook_table_read(struct ct_hook_table *table, struct ct_hook_lines *lines)
{
    const bool good = !lines->path || read_file(table, lines);
    return read_options(table, lines) && good;
}

void ct_hook_table_free(struct ct_hook_table *table)
{
    for (size_t i = 0; i < table->count; i++)
        ct_hook_entry_free(&table->hook[i]);
    free(table->hook);
    *table = (struct ct_hook_table){ 0 };
}
