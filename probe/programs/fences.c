#include "fences.h"

#include "tracepoint.h"

#include <bpf/libbpf.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

static const char *const points[CT_FENCE_POINTS] = {
    [CT_FENCE_SIGNALED] = "dma_fence_signaled",   [CT_FENCE_DESTROY] = "dma_fence_destroy",
    [CT_FENCE_WAIT_LEAVE] = "dma_fence_wait_end", [CT_FENCE_WAIT_ENTER] = "dma_fence_wait_start",
    [CT_FENCE_INIT] = "dma_fence_init",           [CT_FENCE_EMIT] = "dma_fence_emit",
};

static void refuse(const char *point, const char *why)
{
    fprintf(stderr, "probe: fences are not recorded: the tracepoint dma_fence:%s: %s\n", point, why);
}

/* Returns whether the tracepoint's record has the layout of struct fence_record (fences.bpf.c). */
static bool has_layout(int tracefs, const char *point)
{
    static const char *const members[] = { " driver;\toffset:8;\tsize:4;", " timeline;\toffset:12;\tsize:4;",
                                           " context;\toffset:16;\tsize:4;", " seqno;\toffset:20;\tsize:4;" };
    enum { MEMBERS = sizeof(members) / sizeof(members[0]) };
    char line[256];
    int found = 0;
    FILE *format = ct_tracepoint_open(tracefs, "dma_fence", point, "format");
    while (format && fgets(line, sizeof(line), format)) {
        for (int i = 0; i < MEMBERS; i++)
            found += strstr(line, members[i]) != NULL;
    }
    if (format)
        fclose(format);
    return found == MEMBERS;
}

bool ct_fences_find(struct ct_fences *fences, int tracefs)
{
    for (int i = 0; i < CT_FENCE_POINTS; i++) {
        fences->number[i] = tracefs < 0 ? tracefs : ct_tracepoint_number(tracefs, "dma_fence", points[i]);
        if (tracefs < 0)
            refuse(points[i], "tracefs is not mounted at /sys/kernel/tracing, and cannot be mounted");
        else if (fences->number[i] < 0)
            refuse(points[i], "the kernel has none (CONFIG_DMA_SHARED_BUFFER)");
        else if (!has_layout(tracefs, points[i]))
            refuse(points[i], "its fields are not known");
        else
            continue;
        return false;
    }
    return true;
}

static int attach(struct ct_fences *fences, const struct ct_programs *programs, enum ct_fence_point point)
{
    const struct bpf_program *program = ct_programs_fence(programs, point);
    if (bpf_program__type(program) == BPF_PROG_TYPE_TRACEPOINT)
        return ct_tracepoint_attach(program, fences->number[point], 0, &fences->link[point]);
    fences->link[point] = bpf_program__attach(program);
    return fences->link[point] ? 0 : -errno;
}

void ct_fences_attach(struct ct_fences *fences, struct ct_programs *programs)
{
    for (int i = 0; i < CT_FENCE_POINTS; i++) {
        const int error = attach(fences, programs, (enum ct_fence_point)i);
        if (error) {
            refuse(points[i], strerror(-error));
            ct_fences_detach(fences);
            return;
        }
    }
}

void ct_fences_detach(struct ct_fences *fences)
{
    for (int i = 0; i < CT_FENCE_POINTS; i++) {
        bpf_link__destroy(fences->link[i]);
        fences->link[i] = NULL;
    }
}
