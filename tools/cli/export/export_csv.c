/* Implements `cudatrace export --format csv`. Writes one line per call, as in RFC 4180 except for the line
 * ending. */
#include "export_format.h"
#include "printable.h"

#include <string.h>

static bool begin(struct ct_export *to)
{
    return fputs("call_id,pid,tid,layer,name,category,depth,start_s,duration_ns,status,status_name,bytes\n",
                 to->to) >= 0;
}

static void print_text(struct ct_export *to, const char *text)
{
    ct_print_csv_field(text, strlen(text), to->to);
    fputc(',', to->to);
}

static bool call(struct ct_export *to, const struct ct_stream_call *call)
{
    const struct ct_site *site = &call->site;
    fprintf(to->to, "%lld,%lld,%lld,", (long long)call->id, (long long)site->pid, (long long)site->tid);
    print_text(to, site->layer);
    print_text(to, site->name);
    print_text(to, site->category);
    fprintf(to->to, "%d,", site->depth);
    ct_export_time(to, call->start_ns - to->extent.begin_ns, 1000000000, 9);
    fprintf(to->to, ",%lld,%d,", (long long)(call->id - call->start_ns), site->status);
    print_text(to, site->status_name ? site->status_name : "");
    if (call->has_bytes)
        fprintf(to->to, "%lld", (long long)call->bytes);
    return fputc('\n', to->to) != EOF;
}

const struct ct_export_format ct_export_csv = {
    .name = "csv", .about = "one line for each call", .begin = begin, .call = call
};
