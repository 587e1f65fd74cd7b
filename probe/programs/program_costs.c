#include "program_costs.h"

#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <inttypes.h>
#include <stdio.h>

int ct_program_costs_begin(void)
{
    return bpf_enable_stats(BPF_STATS_RUN_TIME);
}

static void print_program(const struct bpf_program *program)
{
    struct bpf_prog_info info = { 0 };
    uint32_t bytes = sizeof(info);
    if (bpf_program__fd(program) < 0 ||
        bpf_obj_get_info_by_fd(bpf_program__fd(program), &info, &bytes) != 0 || info.run_cnt == 0)
        return;
    fprintf(stderr,
            "probe: the BPF program %s ran %" PRIu64 " times, for %" PRIu64 " ns each, %.3f ms in total\n",
            bpf_program__name(program), (uint64_t)info.run_cnt, (uint64_t)(info.run_time_ns / info.run_cnt),
            (double)info.run_time_ns / 1e6);
}

void ct_program_costs_print(const struct ct_programs *programs, const struct ct_function_table *functions)
{
    const struct bpf_object *object = ct_programs_object(programs);
    for (const struct bpf_program *program = NULL;
         (program = bpf_object__next_program(object, (struct bpf_program *)(uintptr_t)program));)
        print_program(program);
    fputs("probe: events of the kernel that are recorded:", stderr);
    const char *separator = " ";
    for (uint32_t i = 0; i < CT_EVENT_COUNT; i++) {
        if (functions->entry[i].layer != CT_LAYER_KERNEL)
            continue;
        fprintf(stderr, "%s%s %" PRIu64, separator, functions->entry[i].name,
                ct_programs_recorded(programs, i));
        separator = ", ";
    }
    fputs("\n", stderr);
}
