#include "processes.h"

#include "number.h"
#include "proc.h"
#include "room.h"

#include <dirent.h>
#include <stdlib.h>
#include <string.h>

static const struct ct_process *find(const struct ct_processes *processes, pid_t pid)
{
    size_t low = 0, high = processes->count;
    while (low < high) {
        const size_t middle = (low + high) / 2;
        if (processes->process[middle].pid < pid)
            low = middle + 1;
        else
            high = middle;
    }
    return low < processes->count && processes->process[low].pid == pid ? &processes->process[low] : NULL;
}

/* Reads a process's stat file. Returns false if the process has exited or is a kernel thread. */
static bool see(pid_t pid, struct ct_process *seen)
{
    enum { STATE = 3, BEGUN = 22, MEMORY = 23, STACK = 28 }; /* numbered as in proc(5) */
    char text[1024];
    if (ct_proc_read((int32_t)pid, "stat", text, sizeof(text)) != 0)
        return false;
    *seen = (struct ct_process){ .pid = pid };
    const char *field = strrchr(text, ')');
    for (int i = STATE; field && i <= STACK && (field = strchr(field, ' ')) != NULL; i++) {
        field++;
        if (i == BEGUN)
            seen->start_ticks = strtoull(field, NULL, 10);
        else if (i == MEMORY)
            seen->memory_bytes = strtoull(field, NULL, 10);
        else if (i == STACK)
            seen->stack = strtoull(field, NULL, 10); /* differs between programs; 0 without permission */
    }
    return seen->memory_bytes > 0;
}

static int by_pid(const void *left, const void *right)
{
    const struct ct_process *a = left, *b = right;
    return (a->pid > b->pid) - (a->pid < b->pid);
}

static void compare(struct ct_process *now, const struct ct_process *before)
{
    if (!before || before->start_ticks != now->start_ticks || before->stack != now->stack) {
        now->change = CT_PROCESS_NEW;
        return;
    }
    now->note = before->note;
    now->change = before->memory_bytes == now->memory_bytes ? CT_PROCESS_SAME : CT_PROCESS_GROWN;
}

void ct_processes_look(struct ct_processes *processes)
{
    DIR *all = opendir("/proc");
    struct ct_processes now = { 0 };
    size_t room = 0;
    for (struct dirent *entry; all && (entry = readdir(all)) != NULL;) {
        int64_t pid;
        struct ct_process seen;
        if (!ct_number_parse(entry->d_name, 1, INT32_MAX, &pid) || !see((pid_t)pid, &seen))
            continue;
        compare(&seen, find(processes, seen.pid));
        if (ct_make_room(&now.process, now.count, &room, sizeof(seen)))
            now.process[now.count++] = seen;
    }
    if (all)
        closedir(all);
    if (now.count > 0)
        qsort(now.process, now.count, sizeof(*now.process), by_pid);
    ct_processes_free(processes);
    *processes = now;
}

void ct_processes_free(struct ct_processes *processes)
{
    free(processes->process);
    *processes = (struct ct_processes){ 0 };
}
