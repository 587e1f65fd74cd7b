/* Domain names, category names and registered strings are few, and are kept forever (kernel_names.c). The
 * number of different messages is unlimited ("step 123456"), so a message is copied when its range starts,
 * and dropped when the range ends. */
#include "range_text.h"

#include "kernel_names.h"
#include "manual_event.h"
#include "table.h"

#include <string.h>

static uint32_t domain_names[CT_DOMAINS_MAX]; /* string numbers; entry 0 is the default domain */
static _Atomic uint32_t domain_count = 1;
static struct ct_table category_names; /* maps (domain + 1, category) to a string number */

/* Copies a string. If it does not fit, truncates it at a character boundary. */
static size_t copy(char *to, size_t room, const char *from)
{
    size_t bytes = strnlen(from, room);
    if (bytes == room) {
        /* The first byte cut off must not be inside a character. */
        bytes--;
        while (bytes > 0 && ((unsigned char)from[bytes] & 0xc0) == 0x80)
            bytes--;
    }
    memcpy(to, from, bytes);
    to[bytes] = '\0';
    return bytes + 1;
}

static size_t narrow(char *to, size_t room, const wchar_t *from)
{
    static const uint8_t first_bits[] = { 0, 0, 0xc0, 0xe0, 0xf0 };
    size_t bytes = 0;
    for (; *from; from++) {
        uint32_t c = (uint32_t)*from;
        if (c > 0x10ffff || (c >= 0xd800 && c < 0xe000))
            c = 0xfffd; /* the replacement character, for a value that is not a valid character */
        const size_t wanted = c < 0x80 ? 1 : c < 0x800 ? 2 : c < 0x10000 ? 3 : 4;
        if (bytes + wanted >= room)
            break;
        for (size_t i = wanted; i > 1; i--, c >>= 6)
            to[bytes + i - 1] = (char)(0x80 | (c & 0x3f));
        to[bytes] = (char)(wanted == 1 ? c : first_bits[wanted] | c);
        bytes += wanted;
    }
    to[bytes] = '\0';
    return bytes + 1;
}

size_t ct_range_text(char *to, size_t room, const char *text, const wchar_t *wide)
{
    return wide ? narrow(to, room, wide) : copy(to, room, text ? text : "");
}

/* ---- domains and categories ---- */

static uint32_t find_domain(uint32_t name)
{
    /* Pairs with the release in ct_range_domain(), so that the names of all counted domains are visible. */
    const uint32_t count = atomic_load_explicit(&domain_count, memory_order_acquire);
    for (uint32_t domain = 1; domain < count; domain++) {
        if (domain_names[domain] == name)
            return domain;
    }
    return 0;
}

uint32_t ct_range_domain(const char *name)
{
    char cut[CT_RANGE_NAME_BYTES];
    copy(cut, sizeof(cut), name);
    uint32_t number = ct_names_string(cut);
    uint32_t domain = find_domain(number);
    if (domain || !ct_table_lock())
        return domain ? domain : CT_DOMAINS_MAX - 1;
    domain = find_domain(number);
    const uint32_t count = atomic_load_explicit(&domain_count, memory_order_relaxed);
    if (!domain && count < CT_DOMAINS_MAX - 1) {
        domain = count;
        domain_names[domain] = number;
        atomic_store_explicit(&domain_count, count + 1, memory_order_release);
    }
    ct_table_unlock();
    if (domain)
        return domain;
    number = ct_names_string("(one of more domains than cudatrace keeps)");
    domain_names[CT_DOMAINS_MAX - 1] = number; /* threads that race here write the same value */
    return CT_DOMAINS_MAX - 1;
}

static uint64_t category_key(uint32_t domain, uint32_t category)
{
    return ((uint64_t)domain + 1) << 32 | category;
}

void ct_range_name_category(uint32_t domain, uint32_t category, const char *name)
{
    enum { CATEGORIES_MAX = 1 << 16 };
    static uint32_t named;
    char cut[CT_RANGE_NAME_BYTES];
    copy(cut, sizeof(cut), name);
    const uint32_t number = ct_names_string(cut);
    const uint64_t key = category_key(domain, category);
    if (!ct_table_lock())
        return;
    const bool known = ct_table_get(&category_names, key) != 0;
    if (known || named < CATEGORIES_MAX) {
        named += !known;
        ct_table_set(&category_names, key, number);
    }
    ct_table_unlock();
}

/* ---- records ---- */

uint32_t ct_range_keep(struct ct_range_kept *kept, const struct ct_said *said, char *room)
{
    *kept = (struct ct_range_kept){
        .payload = said->payload,
        .domain = said->domain,
        .category = said->category,
        .color = said->color,
        .payload_type = said->payload_type,
    };
    size_t bytes = 0;
    if (said->registered) {
        /* The ID may belong to a kernel's name rather than a registered string, and the name may be too
         * long. */
        kept->text = ct_names_text(said->registered, &bytes);
        if (kept->text && bytes < CT_RANGE_MESSAGE_BYTES)
            kept->text_bytes = (uint32_t)bytes + 1;
        return 0;
    }
    if (said->message || said->wide)
        bytes = ct_range_text(room, CT_RANGE_MESSAGE_BYTES, said->message, said->wide);
    kept->text = room;
    kept->text_bytes = (uint32_t)bytes;
    return (uint32_t)bytes;
}

/* Appends the name with the given ID. Returns its length in bytes, including the NUL, or 0 if there is no
 * such name. */
static uint32_t append_name(char **end, uint32_t number)
{
    size_t bytes;
    const char *text = ct_names_text(number, &bytes);
    if (!text)
        return 0;
    memcpy(*end, text, bytes + 1);
    *end += bytes + 1;
    return (uint32_t)bytes + 1;
}

void ct_range_write(struct ct_producer *producer, uint32_t row, const struct ct_range_kept *kept,
                    uint32_t depth, uint64_t id, uintptr_t frame, uint64_t *scratch)
{
    struct ct_range *range = (struct ct_range *)(void *)scratch;
    char *const texts = (char *)(range + 1);
    char *end = texts;
    if (kept->text_bytes > 0)
        memcpy(end, kept->text, kept->text_bytes);
    end += kept->text_bytes;
    *range = (struct ct_range){
        .message_bytes = kept->text_bytes,
        .domain_bytes = append_name(&end, domain_names[kept->domain]),
        .category_bytes =
            append_name(&end, ct_table_get(&category_names, category_key(kept->domain, kept->category))),
        .category = kept->category,
        .color = kept->color,
        .payload_type = kept->payload_type,
        .id = id,
    };
    ct_manual_event_record(producer, &(struct ct_manual_event){
                                         .frame = frame,
                                         .start = kept->start,
                                         .row = row,
                                         .depth = depth,
                                         .kind = CT_KIND_RANGE,
                                         .value = kept->payload,
                                         .payload = scratch,
                                         .payload_bytes = sizeof(*range) + (size_t)(end - texts),
                                     });
}
