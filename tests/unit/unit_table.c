/* Tests that a key has the value that was set last. The table must not grow if keys are also removed. A
 * concurrent reader must see only values that were set. */
#include "table.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

enum { KEYS = 5000, ROUNDS = 200, STEADY = 1000 };

static struct ct_table table;
static _Atomic bool done;

static void fail(const char *what)
{
    fprintf(stderr, "%s\n", what);
    exit(EXIT_FAILURE);
}

static void count(uint64_t key, uint32_t value, void *data)
{
    if (value != (uint32_t)key)
        fail("a key has another's value");
    ++*(size_t *)data;
}

/* Keys 1 to STEADY exist during the whole test. */
static void *read_on(void *unused)
{
    (void)unused;
    for (uint64_t key = 1; !atomic_load(&done); key = key % STEADY + 1) {
        if (ct_table_get(&table, key) != key)
            fail("a reader misses a key that is there");
        const uint32_t value = ct_table_get(&table, STEADY + key);
        if (value != 0 && value != STEADY + key)
            fail("a reader finds another key's value");
    }
    return NULL;
}

int main(void)
{
    for (uint64_t key = 1; key <= STEADY; key++)
        ct_table_set(&table, key, (uint32_t)key);
    pthread_t reader;
    pthread_create(&reader, NULL, read_on, NULL);
    struct ct_table_slots *seen[64] = { 0 };
    size_t memories = 0;
    for (uint32_t round = 0; round < ROUNDS; round++) {
        for (uint64_t i = 1; i <= KEYS; i++) {
            const uint64_t key = STEADY + round * KEYS + i;
            if (!ct_table_set(&table, key, (uint32_t)key) || ct_table_get(&table, key) != (uint32_t)key)
                fail("a key lacks its value");
        }
        for (uint64_t i = 1; i <= KEYS; i++) {
            const uint64_t key = STEADY + round * KEYS + i;
            ct_table_set(&table, key, 0);
            if (ct_table_get(&table, key) != 0)
                fail("a key that was taken out is there");
        }
        size_t place = 0;
        while (place < memories && seen[place] != table.current)
            place++;
        if (place == memories && memories < 64)
            seen[memories++] = table.current;
    }
    atomic_store(&done, true);
    pthread_join(reader, NULL);
    size_t keys = 0;
    ct_table_each(&table, count, &keys);
    if (keys != STEADY)
        fail("not exactly the steady keys are left");
    if (memories > 10)
        fail("a table of steady size took new memory again and again");
    if (ct_table_get(&table, 0) != 0 || ct_table_set(&table, 0, 1))
        fail("0 is no key");
    return EXIT_SUCCESS;
}
