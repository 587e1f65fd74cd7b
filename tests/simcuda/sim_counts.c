/* sim_counts.c: counts calls, as a reference for traces. With SIMCUDA_COUNTS=FOLDER, each process keeps two
 * counters for each exported function in FOLDER/<pid>.<start>.counts. The file is a shared mapping, so the
 * counts survive however the process ends. <start> is the process's start time, field 22 of /proc/<pid>/stat.
 * counts.py reads these files.
 *
 * exec changes neither the pid nor the start time, so the new program continues in its predecessor's file. */
#include "sim_entry.h"

#include "sim_settings.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

struct counts {
    char magic[8]; /* "SIMCOUNT" */
    uint32_t version;
    uint32_t row_count;
    struct {
        _Atomic uint64_t entered;
        _Atomic uint64_t returned;
    } rows[ROW_COUNT];
};

static struct counts *counts;

static unsigned long long process_start(void)
{
    char stat[1024];
    unsigned long long start = 0;
    const int fd = open("/proc/self/stat", O_RDONLY | O_CLOEXEC);
    const ssize_t length = fd < 0 ? -1 : read(fd, stat, sizeof stat - 1);
    if (fd >= 0)
        close(fd);
    if (length <= 0)
        return 0;
    stat[length] = '\0';
    /* In /proc/<pid>/stat, the process's name is in parentheses, and may contain any characters. All fields
     * after the last parenthesis are numbers. */
    const char *at = strrchr(stat, ')');
    for (int field = 2; at && field < 22; field++)
        at = strchr(at + 1, ' ');
    if (at)
        sscanf(at, "%llu", &start);
    return start;
}

/* Writes FOLDER/names, which contains the name of each row on a separate line. Only the first process writes
 * this file, because all processes would write the same names. */
static void write_names(const char *folder)
{
    char final[4096], mine[4096];
    snprintf(final, sizeof final, "%s/names", folder);
    snprintf(mine, sizeof mine, "%s/names.%d", folder, (int)getpid());
    if (access(final, F_OK) == 0)
        return;
    FILE *file = fopen(mine, "we");
    if (!file)
        settings_refuse("SIMCUDA_COUNTS", folder, "a folder to write to");
    for (uint32_t row = 0; row < ROW_COUNT; row++)
        fprintf(file, "%s\n", sim_functions[row].name);
    if (fclose(file) != 0 || rename(mine, final) != 0)
        settings_refuse("SIMCUDA_COUNTS", folder, "a folder to write to");
}

void counts_open(const char *folder)
{
    char path[4096];
    write_names(folder);
    snprintf(path, sizeof path, "%s/%d.%llu.counts", folder, (int)getpid(), process_start());
    const int fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0666);
    if (fd < 0 || ftruncate(fd, sizeof *counts) != 0)
        settings_refuse("SIMCUDA_COUNTS", folder, "a folder to write to");
    void *mapped = mmap(NULL, sizeof *counts, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    close(fd);
    if (mapped == MAP_FAILED)
        settings_refuse("SIMCUDA_COUNTS", folder, "a folder to write to");
    /* A forked child must not use its parent's mapping. */
    if (counts)
        munmap(counts, sizeof *counts);
    counts = mapped;
    memcpy(counts->magic, "SIMCOUNT", sizeof counts->magic);
    counts->version = 1;
    counts->row_count = ROW_COUNT;
}

void counts_entered(uint32_t row)
{
    atomic_fetch_add_explicit(&counts->rows[row].entered, 1, memory_order_relaxed);
}

void counts_returned(uint32_t row)
{
    atomic_fetch_add_explicit(&counts->rows[row].returned, 1, memory_order_relaxed);
}
