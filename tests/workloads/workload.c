/* workload.c: the options and the first calls that all workloads share. */
#include "workload.h"

#include <errno.h>
#include <string.h>
#include <time.h>

const char *const via_words[] = { "linked", "dlsym", "procaddress", NULL };

static void print_help(const char *program, const char *summary, const struct option_row *rows)
{
    printf("usage: %s [OPTION...]\n%s\n\n", program, summary);
    for (; rows->name; rows++) {
        char left[64];
        snprintf(left, sizeof left, "--%s %s", rows->name, rows->argument);
        printf("  %-20s %s", left, rows->help);
        if (rows->words)
            printf(" (%s)\n", rows->words[*rows->number]);
        else if (rows->number)
            printf(" (%lld)\n", *rows->number);
        else
            printf("\n");
    }
}

static bool store(const struct option_row *row, const char *value)
{
    if (row->text) {
        *row->text = value;
        return true;
    }
    if (row->words) {
        for (long long i = 0; row->words[i]; i++)
            if (!strcmp(row->words[i], value)) {
                *row->number = i;
                return true;
            }
        return false;
    }
    char *end;
    errno = 0;
    const long long number = strtoll(value, &end, 10);
    if (errno || end == value || *end || number < row->low || number > row->high)
        return false;
    *row->number = number;
    return true;
}

void options_read(int argc, char **argv, const char *summary, const struct option_row *rows)
{
    for (int i = 1; i < argc; i += 2) {
        const struct option_row *row = rows;
        if (!strcmp(argv[i], "--help")) {
            print_help(argv[0], summary, rows);
            exit(0);
        }
        while (row->name && (strncmp(argv[i], "--", 2) != 0 || strcmp(argv[i] + 2, row->name) != 0))
            row++;
        if (!row->name || i + 1 == argc || !store(row, argv[i + 1])) {
            fprintf(stderr, "%s: %s: not understood, see --help\n", argv[0], argv[i]);
            exit(2);
        }
    }
}

void pause_ns(long long ns)
{
    const struct timespec time = { ns / 1000000000, ns % 1000000000 };
    nanosleep(&time, NULL);
}

CUcontext driver_start(void)
{
    CUdevice device;
    CUcontext context;
    OK(cu.Init(0));
    OK(cu.DeviceGet(&device, 0));
    OK(cu.DevicePrimaryCtxRetain(&context, device));
    OK(cu.CtxSetCurrent(context));
    return context;
}

CUresult launch_fill(CUfunction function, CUdeviceptr at, uint32_t value, uint32_t count, CUstream stream)
{
    void *params[] = { &at, &value, &count };
    return cu.LaunchKernel(function, (count + 127) / 128, 1, 1, 128, 1, 1, 0, stream, params, NULL);
}
