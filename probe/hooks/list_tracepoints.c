/* Lists tracepoints of the kernel and of its modules. */
#include "hook_find.h"
#include "list_lines.h"
#include "tracepoint.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static void describe(struct ct_list_fields *fields, FILE *format)
{
    char line[1024];
    *fields = (struct ct_list_fields){ 0 };
    while (fgets(line, sizeof(line), format)) {
        struct ct_hook_record_field field;
        if (!ct_hook_read_record_field(line, &field) ||
            strncmp(field.name, "common_", strlen("common_")) == 0)
            continue;
        ct_list_declare(fields, "%s%s %s%s", *fields->declaration ? ", " : "", field.type, field.name,
                        field.array);
        if (field.is_usable)
            ct_list_add_field(fields, field.name, field.name, field.is_text);
    }
}

static void list_event(struct ct_list *list, int tracefs, const char *group, const char *event)
{
    char target[600];
    struct ct_list_fields fields;
    snprintf(target, sizeof(target), "tracepoint:%s:%s", group, event);
    /* A folder without an `id` file does not belong to a tracepoint. Such a folder describes a record that
     * ftrace itself writes. */
    FILE *id = ct_tracepoint_open(tracefs, group, event, "id");
    if (!id || !ct_list_takes(list, CT_HOOK_TRACEPOINT, target + strlen("tracepoint:"), event)) {
        if (id)
            fclose(id);
        return;
    }
    fclose(id);
    FILE *format = list->options->verbose ? ct_tracepoint_open(tracefs, group, event, "format") : NULL;
    if (format) {
        describe(&fields, format);
        fclose(format);
    }
    ct_list_print(list, target, event, format ? &fields : NULL, NULL, NULL);
}

static int is_name(const struct dirent *entry)
{
    return entry->d_name[0] != '.';
}

/* Returns the number of entries in the folder, or -1 with errno set. */
static int read_folder(int tracefs, const char *path, struct dirent ***entries)
{
    return scandirat(tracefs, path, entries, is_name, alphasort);
}

static void list_group(struct ct_list *list, int tracefs, const char *group)
{
    char path[512];
    struct dirent **entries;
    snprintf(path, sizeof(path), "events/%s", group);
    const int count = read_folder(tracefs, path, &entries);
    for (int i = 0; i < count; i++) {
        list_event(list, tracefs, group, entries[i]->d_name);
        free(entries[i]);
    }
    if (count >= 0)
        free(entries);
}

void ct_list_tracepoints(struct ct_list *list)
{
    struct dirent **groups;
    if (!ct_list_wants(list, CT_HOOK_TRACEPOINT))
        return;
    const int tracefs = ct_tracefs_open();
    const int count = tracefs < 0 ? -1 : read_folder(tracefs, "events", &groups);
    if (count < 0)
        fprintf(stderr, "cudatrace-probe: tracepoints cannot be listed: tracefs: %s%s\n",
                strerror(tracefs < 0 ? -tracefs : errno), geteuid() == 0 ? "" : ": run as root");
    for (int i = 0; i < count; i++) {
        list_group(list, tracefs, groups[i]->d_name);
        free(groups[i]);
    }
    if (count >= 0)
        free(groups);
    if (tracefs >= 0)
        close(tracefs);
}
