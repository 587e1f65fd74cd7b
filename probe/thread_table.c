#include "thread_table.h"

#include <stdlib.h>

static struct ct_thread **bucket_of(const struct ct_thread_table *table, uint32_t tid)
{
    return &table->bucket[tid % CT_THREAD_BUCKETS];
}

bool ct_thread_table_begin(struct ct_thread_table *table)
{
    table->bucket = calloc(CT_THREAD_BUCKETS, sizeof(struct ct_thread *));
    return table->bucket != NULL;
}

struct ct_thread *ct_thread_table_find(const struct ct_thread_table *table, uint32_t tid)
{
    struct ct_thread *thread = *bucket_of(table, tid);
    while (thread && thread->identity.tid != tid)
        thread = thread->next;
    return thread;
}

struct ct_thread *ct_thread_table_get(struct ct_thread_table *table, uint32_t tid)
{
    struct ct_thread **bucket = bucket_of(table, tid);
    struct ct_thread *thread = ct_thread_table_find(table, tid);
    if (thread || !(thread = calloc(1, sizeof(*thread))))
        return thread;
    thread->identity.tid = tid;
    thread->index = CT_PROBE_THREADS;
    thread->next = *bucket;
    *bucket = thread;
    return thread;
}

void ct_thread_table_remove(struct ct_thread_table *table, uint32_t tid)
{
    struct ct_thread **link = bucket_of(table, tid), *thread;
    while (*link && (*link)->identity.tid != tid)
        link = &(*link)->next;
    if (!(thread = *link))
        return;
    *link = thread->next;
    free(thread);
}

void ct_thread_table_each(const struct ct_thread_table *table,
                          void (*act)(struct ct_thread *thread, void *data), void *data)
{
    for (size_t i = 0; i < CT_THREAD_BUCKETS; i++) {
        for (struct ct_thread *thread = table->bucket[i]; thread; thread = thread->next)
            act(thread, data);
    }
}
