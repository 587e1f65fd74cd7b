#include "list_lines.h"

#include <ctype.h>
#include <fnmatch.h>
#include <search.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

static const char *const kinds[] = {
    [CT_HOOK_KPROBE] = "kprobe:", [CT_HOOK_UPROBE] = "uprobe:", [CT_HOOK_TRACEPOINT] = "tracepoint:"
};
enum { KINDS = sizeof(kinds) / sizeof(kinds[0]) };

/* ---- patterns ---- */

bool ct_list_is_of_kind(const char *pattern, enum ct_hook_kind kind, const char **rest)
{
    *rest = pattern;
    for (size_t i = 0; i < KINDS; i++) {
        const size_t length = strlen(kinds[i]);
        if (strncmp(pattern, kinds[i], length) != 0)
            continue;
        *rest = pattern + length;
        return i == (size_t)kind;
    }
    return true;
}

bool ct_list_wants(const struct ct_list *list, enum ct_hook_kind kind)
{
    bool wants = false;
    const char *rest;
    for (size_t i = 0; i < list->options->patterns; i++)
        wants |= ct_list_is_of_kind(list->options->pattern[i], kind, &rest);
    return wants;
}

bool ct_list_takes(struct ct_list *list, enum ct_hook_kind kind, const char *text, const char *name)
{
    bool takes = false;
    for (size_t i = 0; i < list->options->patterns; i++) {
        const char *pattern = list->options->pattern[i], *rest;
        if (!ct_list_is_of_kind(pattern, kind, &rest) ||
            (fnmatch(rest, text, 0) != 0 && (rest != pattern || fnmatch(rest, name, 0) != 0)))
            continue;
        list->is_matched[i] = true;
        takes = true;
    }
    return takes;
}

/* ---- lines ---- */

void ct_list_declare(struct ct_list_fields *fields, const char *format, ...)
{
    const size_t length = strlen(fields->declaration);
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(fields->declaration + length, sizeof(fields->declaration) - length, format, arguments);
    va_end(arguments);
}

void ct_list_add_field(struct ct_list_fields *fields, const char *name, const char *source, bool is_text)
{
    const size_t length = strlen(fields->text);
    char shortened[CT_FIELD_NAME_MAX + 1];
    snprintf(shortened, sizeof(shortened), "%s", name);
    if (fields->fields == CT_HOOK_FIELDS || (is_text && fields->texts == CT_HOOK_TEXTS) ||
        length + strlen(name) + strlen(source) + 3 > sizeof(fields->text))
        return;
    for (int i = 0; i < fields->fields; i++) {
        if (strcasecmp(fields->name[i], shortened) == 0)
            return;
    }
    snprintf(fields->text + length, sizeof(fields->text) - length, " %s=%s", shortened, source);
    strcpy(fields->name[fields->fields++], shortened);
    fields->texts += is_text;
}

static int compare(const void *a, const void *b)
{
    return strcmp(a, b);
}

const char *ct_list_take_name(void **names, const char *wanted)
{
    char *name = malloc(CT_FUNCTION_NAME_MAX + 1);
    size_t length = 0;
    if (!name)
        return NULL;
    if (isdigit((unsigned char)*wanted))
        name[length++] = '_';
    for (; *wanted && length < CT_FUNCTION_NAME_MAX; wanted++)
        name[length++] = (char)(isalnum((unsigned char)*wanted) ? *wanted : '_');
    name[length] = '\0';
    for (unsigned number = 2; tfind(name, names, compare); number++) {
        char suffix[16];
        const size_t added = (size_t)snprintf(suffix, sizeof(suffix), "_%u", number);
        strcpy(name + (length + added > CT_FUNCTION_NAME_MAX ? CT_FUNCTION_NAME_MAX - added : length),
               suffix);
    }
    if (tsearch(name, names, compare))
        return name;
    free(name);
    return NULL;
}

void ct_list_print(struct ct_list *list, const char *target, const char *name,
                   const struct ct_list_fields *fields, const char *remark, const char *barred)
{
    const char *declaration = list->options->verbose && fields ? fields->declaration : "";
    const char *comments[] = { declaration, remark ? remark : "", barred ? barred : "" };
    const char *separator = "  # ";
    printf("%s%s", barred ? "# " : "", target);
    if (list->options->verbose && !barred) {
        const char *own = ct_list_take_name(&list->names, name);
        printf(" %s%s", own ? own : name, fields ? fields->text : "");
    }
    for (size_t i = 0; i < sizeof(comments) / sizeof(comments[0]); i++) {
        if (*comments[i])
            printf("%s%s", separator, comments[i]);
        separator = *comments[i] ? "; " : separator;
    }
    putchar('\n');
}
