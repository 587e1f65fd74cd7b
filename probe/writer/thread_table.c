#include "thread_table.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

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

void ct_thread_table_adopt(struct ct_thread_table *table,
                           const struct ct_probe_thread shared[CT_PROBE_THREADS], pid_t pid)
{
    for (uint32_t i = 0; i < CT_PROBE_THREADS; i++) {
        const uint32_t tid = __atomic_load_n(&shared[i].tid, __ATOMIC_RELAXED);
        struct ct_thread *thread = tid ? ct_thread_table_get(table, tid) : NULL;
        if (!thread)
            continue;
        thread->index = i;
        char path[64];
        snprintf(path, sizeof(path), "/proc/%d/task/%u/comm", (int)pid, tid);
        FILE *comm = fopen(path, "re");
        if (!comm)
            continue;
        if (fgets(thread->identity.name.name, sizeof(thread->identity.name.name), comm))
            thread->identity.name.name[strcspn(thread->identity.name.name, "\n")] = '\0';
        fclose(comm);
    }
}
