/* Each string is sent once per segment, before the first record that refers to it.
 *
 * A string without holders is kept for a while, since an unloaded module is often loaded again. If strings
 * without holders take more than IDLE_BYTES_MAX, the oldest are dropped. Memory use is thus bounded by the
 * strings held at the same time, even if a program compiles and unloads code for days. IDs are not reused,
 * since the collector identifies a process's strings by them. */
#include "texts.h"

#include "bound.h"
#include "current.h"
#include "pool.h"
#include "ring.h"
#include "table.h"
#include "test_point.h"

#include <string.h>

struct string {
    struct ct_pool_link link;
    uint32_t holders;
    uint32_t older, newer; /* neighbours in the list of strings without a holder */
    uint64_t key;          /* its key in by_text */
    char *text;
    uint32_t bytes;
    _Atomic bool kept; /* by ct_texts_keep() */
    _Atomic uint32_t number;
    _Atomic uint32_t epoch; /* the epoch of the last segment where the string was defined */
};

static struct ct_pool pool = { .object_bytes = sizeof(struct string) };
static struct ct_table by_text; /* maps a text's hash to its string */
static uint32_t numbers;        /* the last number assigned; 0 means unknown */

static struct string *string_at(uint32_t string)
{
    return ct_pool_at(&pool, string);
}

/* ---- memory for texts: pieces of 32 bytes to 8 KiB, with a list of free pieces for each size ---- */

enum { SIZES = 9, SMALLEST_BYTES = 32, ARENA_BYTES = 256 * 1024 };
static_assert((SMALLEST_BYTES << (SIZES - 1)) > CT_STRING_MAX, "the longest text and its end fit");

static char *free_pieces[SIZES]; /* each free piece begins with the address of the next free piece */
static char *arena;
static size_t arena_left;

static uint32_t size_of(uint32_t bytes)
{
    uint32_t size = 0;
    while ((uint32_t)SMALLEST_BYTES << size < bytes + 1)
        size++;
    return size;
}

static char *piece_take(uint32_t size)
{
    char *text = free_pieces[size];
    if (text) {
        free_pieces[size] = *(char **)(void *)text;
        return text;
    }
    const size_t bytes = (size_t)SMALLEST_BYTES << size;
    if (bytes > arena_left) {
        char *memory = ct_pages_map(ARENA_BYTES);
        if (!memory)
            return NULL;
        arena = memory;
        arena_left = ARENA_BYTES;
    }
    text = arena;
    arena += bytes;
    arena_left -= bytes;
    return text;
}

static void piece_give(char *text, uint32_t size)
{
    *(char **)(void *)text = free_pieces[size];
    free_pieces[size] = text;
}

/* ---- strings without a holder, oldest first ---- */

enum { IDLE_BYTES_MAX = 256 * 1024 };
static struct {
    uint32_t oldest, newest;
    uint64_t bytes;
} idle;

static uint64_t idle_bytes(const struct string *string)
{
    return (uint64_t)SMALLEST_BYTES << size_of(string->bytes);
}

static void idle_leave(const struct string *string)
{
    *(string->older ? &string_at(string->older)->newer : &idle.oldest) = string->newer;
    *(string->newer ? &string_at(string->newer)->older : &idle.newest) = string->older;
    idle.bytes -= idle_bytes(string);
}

static void idle_enter(uint32_t number, struct string *string)
{
    string->older = idle.newest;
    string->newer = 0;
    *(idle.newest ? &string_at(idle.newest)->newer : &idle.oldest) = number;
    idle.newest = number;
    idle.bytes += idle_bytes(string);
}

static void drop_oldest(void)
{
    const uint32_t number = idle.oldest;
    struct string *string = string_at(number);
    idle_leave(string);
    ct_table_set(&by_text, string->key, 0);
    piece_give(string->text, size_of(string->bytes));
    ct_pool_give(&pool, number);
}

/* ---- holding ---- */

static uint64_t hash_text(const char *text, size_t bytes)
{
    uint64_t h = UINT64_C(0xcbf29ce484222325); /* FNV-1a */
    for (size_t i = 0; i < bytes; i++)
        h = (h ^ (uint8_t)text[i]) * UINT64_C(0x100000001b3);
    return h ? h : 1;
}

static uint32_t create(uint64_t key, const char *text, uint32_t bytes)
{
    char *copy = piece_take(size_of(bytes));
    const uint32_t made = copy ? ct_pool_take(&pool) : 0;
    if (!made || !ct_table_set(&by_text, key, made)) {
        if (copy)
            piece_give(copy, size_of(bytes));
        if (made)
            ct_pool_give(&pool, made);
        return 0;
    }
    memcpy(copy, text, bytes);
    copy[bytes] = '\0';
    struct string *string = string_at(made);
    string->holders = 0;
    string->older = string->newer = 0;
    string->key = key;
    string->text = copy;
    string->bytes = bytes;
    atomic_store_explicit(&string->kept, false, memory_order_relaxed);
    atomic_store_explicit(&string->epoch, 0, memory_order_relaxed);
    atomic_store_explicit(&string->number, ++numbers, memory_order_relaxed);
    return made;
}

/* Two strings with the same 64-bit hash have successive keys. If the first is dropped, the second can no
 * longer be found. When the second is held again, it gets a new ID and must be defined again. */
uint32_t ct_texts_hold(const char *text, size_t room)
{
    const uint32_t bytes = (uint32_t)strnlen(text, room < CT_STRING_MAX ? room : CT_STRING_MAX);
    uint64_t key = hash_text(text, bytes);
    uint32_t found;
    while ((found = ct_table_get(&by_text, key)) != 0) {
        const struct string *string = string_at(found);
        if (string->bytes == bytes && memcmp(string->text, text, bytes) == 0)
            break;
        key = key + 1 ? key + 1 : 1;
    }
    if (found && string_at(found)->holders == 0)
        idle_leave(string_at(found));
    if (!found)
        found = create(key, text, bytes);
    ct_texts_share(found);
    return found;
}

void ct_texts_share(uint32_t string)
{
    if (string)
        string_at(string)->holders++;
}

void ct_texts_release(uint32_t number)
{
    struct string *string = number ? string_at(number) : NULL;
    if (!string || --string->holders > 0)
        return;
    idle_enter(number, string);
    while (idle.bytes > IDLE_BYTES_MAX)
        drop_oldest();
}

enum { KEPT_MAX = 1 << 16, KEPT_BYTES_MAX = 8 << 20 };
static struct {
    uint32_t strings;
    uint64_t bytes;
} kept;

static uint32_t keep(uint32_t number)
{
    if (number && !string_at(number)->kept) {
        kept.strings++;
        kept.bytes += string_at(number)->bytes;
        /* Pairs with the acquire in ct_texts_kept(). */
        atomic_store_explicit(&string_at(number)->kept, true, memory_order_release);
    } else {
        ct_texts_release(number);
    }
    return number;
}

uint32_t ct_texts_keep(const char *text)
{
    const uint32_t number = ct_texts_hold(text, CT_STRING_MAX);
    if (!number || string_at(number)->kept ||
        (kept.strings < KEPT_MAX && kept.bytes + string_at(number)->bytes <= KEPT_BYTES_MAX))
        return keep(number);
    ct_texts_release(number);
    return keep(ct_texts_hold("(one of more strings than cudatrace keeps)", CT_STRING_MAX));
}

const char *ct_texts_kept(uint32_t number, size_t *bytes)
{
    const struct string *string = ct_pool_holds(&pool, number) ? string_at(number) : NULL;
    if (!string || !atomic_load_explicit(&string->kept, memory_order_acquire))
        return NULL;
    *bytes = string->bytes;
    return string->text;
}

void ct_texts_forget(void)
{
    memset(&kept, 0, sizeof(kept));
    ct_table_forget(&by_text);
    ct_pool_forget(&pool);
    memset(free_pieces, 0, sizeof(free_pieces));
    arena = NULL;
    arena_left = 0;
    memset(&idle, 0, sizeof(idle));
}

/* ---- numbers ---- */

/* Sends a string's definition before the record that will refer to it. If this fails, the next record that
 * refers to the string tries again. The lock prevents the string from being dropped. A program must not
 * unload a kernel while launching it, but if it does, the hook must not cause a crash. */
static void define(uint32_t number, struct string *string, struct ct_producer *producer)
{
    if (!ct_table_lock())
        return;
    struct ct_record record = { .end = ct_now(), .kind = CT_KIND_STRING, .value = number };
    ct_record_measure(&record, string->bytes + 1);
    CT_TEST_POINT("texts.defining");
    if (atomic_load_explicit(&string->number, memory_order_relaxed) == number &&
        ct_record_room(producer, record.slots)) {
        ct_record_write(producer, &record, string->text, string->bytes + 1);
        CT_TEST_POINT("texts.sent");
        ct_lane_announce(producer->lane, producer->position);
        atomic_store_explicit(&string->epoch, producer->epoch, memory_order_relaxed);
        CT_TEST_POINT("texts.defined");
    }
    ct_table_unlock();
}

uint32_t ct_texts_number(uint32_t which, struct ct_producer *producer)
{
    if (!which)
        return 0;
    struct string *string = string_at(which);
    const uint32_t number = atomic_load_explicit(&string->number, memory_order_relaxed);
    if (producer && producer->lane &&
        CT_UNLIKELY(atomic_load_explicit(&string->epoch, memory_order_relaxed) != producer->epoch))
        define(number, string, producer);
    return number;
}

bool ct_texts_sent(uint32_t which, const struct ct_producer *producer)
{
    return which && producer->lane &&
           atomic_load_explicit(&string_at(which)->epoch, memory_order_relaxed) == producer->epoch;
}
