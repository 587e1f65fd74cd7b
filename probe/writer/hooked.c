#include "hooked.h"

#include <assert.h>
#include <string.h>

static_assert((int)CT_HOOK_FIELDS == (int)CT_FIELDS_MAX, "a hook's fields fit into a record");

static bool is_read(const struct ct_probe_hooked *hooked, uint32_t field)
{
    return hooked->record.read & 1U << field;
}

size_t ct_hooked_payload(uint8_t payload[CT_FIELDS_BYTES_MAX], const struct ct_function_entry *function,
                         const struct ct_probe_hooked *hooked)
{
    struct ct_field field[CT_FIELDS_MAX];
    char text[CT_HOOK_TEXTS + 1][CT_HOOK_TEXT_BYTES];
    uint32_t count = 0;
    for (uint32_t i = 0; i < function->fields; i++) {
        const struct ct_function_field *from = &function->field[i];
        const bool is_text = from->type == CT_FIELD_TEXT;
        if (!is_text && !is_read(hooked, i))
            continue;
        field[count] = (struct ct_field){ .name = from->name,
                                          .type = (enum ct_field_type)from->type,
                                          .value = hooked->value[i] };
        if (is_text && is_read(hooked, i)) {
            const bool is_task = from->text == CT_HOOK_TEXTS;
            const size_t bytes = is_task ? sizeof(hooked->task) : sizeof(hooked->text[0]);
            memcpy(text[from->text], is_task ? hooked->task : hooked->text[from->text], bytes);
            text[from->text][bytes - 1] = '\0';
            field[count].text = text[from->text];
        }
        count++;
    }
    return ct_fields_write(payload, field, count);
}

int32_t ct_hooked_status(const struct ct_function_entry *function, const struct ct_probe_hooked *hooked)
{
    for (uint32_t i = 0; i < function->fields; i++) {
        if (strcmp(function->field[i].name, "status") == 0 && is_read(hooked, i))
            return (int32_t)hooked->value[i];
    }
    return hooked->record.status;
}
