/* Lists tracepoints of the kernel and of its modules. */
#include "hook_find.h"
#include "list_lines.h"
#include "tracepoint.h"

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

struct listing {
    struct ct_list *list;
    int tracefs;
};

static void list_event(const char *group, const char *event, void *data)
{
    const struct listing *listing = data;
    struct ct_list *list = listing->list;
    char target[600];
    struct ct_list_fields fields;
    snprintf(target, sizeof(target), "tracepoint:%s:%s", group, event);
    if (!ct_list_takes(list, CT_HOOK_TRACEPOINT, target + strlen("tracepoint:"), event))
        return;
    FILE *format =
        list->options->verbose ? ct_tracepoint_open(listing->tracefs, group, event, "format") : NULL;
    if (format) {
        describe(&fields, format);
        fclose(format);
    }
    ct_list_print(list, target, event, format ? &fields : NULL, NULL, NULL);
}

void ct_list_tracepoints(struct ct_list *list)
{
    if (!ct_list_wants(list, CT_HOOK_TRACEPOINT))
        return;
    struct listing listing = { list, ct_tracefs_open() };
    const int error =
        listing.tracefs < 0 ? listing.tracefs : ct_tracepoints_each(listing.tracefs, list_event, &listing);
    if (error)
        fprintf(stderr, "cudatrace-probe: tracepoints cannot be listed: tracefs: %s%s\n", strerror(-error),
                geteuid() == 0 ? "" : ": run as root");
    if (listing.tracefs >= 0)
        close(listing.tracefs);
}
