#include "request_rows.h"

#include "current.h"
#include "names.h"
#include "segment_file.h"

bool ct_request_is(uint32_t function)
{
    return function >= CT_EVENT_ESCAPE && function <= CT_EVENT_MODESET;
}

enum ct_ioctl_space ct_request_space(uint32_t function)
{
    return (enum ct_ioctl_space)(CT_IOCTL_ESCAPE + function - CT_EVENT_ESCAPE);
}

uint32_t ct_request_other(uint32_t function)
{
    return function == CT_EVENT_CONTROL || function == CT_EVENT_CLASS ? CT_EVENT_ESCAPE : function;
}

static uint16_t define(struct ct_segment *segment, const struct ct_ioctl *ioctl)
{
    char name[CT_IOCTL_NAME_BYTES];
    ct_ioctl_name(ioctl, name);
    if (!ct_process_lock())
        return 0;
    const uint16_t id = ct_segment_define(segment, name, CT_LAYER_IOCTL, CT_CATEGORY_control);
    ct_process_unlock();
    return id;
}

uint16_t ct_request_rows_id(struct ct_request_rows *rows, struct ct_segment *segment, uint32_t function,
                            uint32_t code)
{
    const struct ct_ioctl ioctl = { .space = ct_request_space(function), .code = code };
    const uint64_t key = (uint64_t)ioctl.space << 32 | code;
    const uint32_t known = ct_table_get(&rows->ids, key);
    if (known || rows->count >= CT_IOCTL_NAMES_MAX)
        return (uint16_t)known;
    const uint16_t id = define(segment, &ioctl);
    if (id && ct_table_lock()) {
        ct_table_set(&rows->ids, key, id);
        ct_table_unlock();
    }
    rows->count++;
    return id;
}

void ct_request_rows_forget(struct ct_request_rows *rows)
{
    ct_table_forget(&rows->ids);
    rows->count = 0;
}
