/* The request to record a process's GPU work, and the state of the recording in the process's segment. */
#ifndef CT_PROTO_GPU_RECORDING_H
#define CT_PROTO_GPU_RECORDING_H

/* Requests a recording of the GPU's work from the start of a program. With the value CT_GPU_NODES_TEXT, the
 * recording contains each kernel, copy and set, including graph nodes. With CT_GPU_WHOLE_TEXT, it contains
 * whole graphs instead of their nodes.
 */
#define CT_GPU_ENV        "CUDATRACE_GPU"
#define CT_GPU_NODES_TEXT "kernels"
#define CT_GPU_WHOLE_TEXT "graphs"
#define CT_GPU_LIBRARY    "libcudatrace-gpu.so" /* in the folder of the hook */

/* The duration of an unlimited recording, about a hundred years. */
#define CT_GPU_ENDLESS_NS (UINT64_C(100) * 365 * 86400 * 1000000000)

/* The state of the recording by libcudatrace-gpu.so. */
enum ct_gpu_state {
    CT_GPU_OFF = 0, /* not requested, or the process has not yet called the driver */
    CT_GPU_STARTING,
    CT_GPU_ON, /* with an enum ct_gpu_form, or the error of a CUPTI that cannot record whole graphs */
    CT_GPU_ENDED,
    CT_GPU_NO_LIBRARY, /* libcudatrace-gpu.so cannot be loaded */
    CT_GPU_NO_CUPTI,   /* there is no libcupti with the necessary functions */
    CT_GPU_TAKEN,      /* another tool has subscribed to CUPTI, or a debugger uses the GPU */
    CT_GPU_REFUSED,    /* a function of CUPTI failed */
    CT_GPU_FORKED,     /* the process inherited its parent's CUPTI, which works only in the parent */
    CT_GPU_FILTERED,   /* the program's system call filter does not permit the hook to create a thread */
    CT_GPU_NO_THREAD,  /* no thread could be created, with an errno */
};

/* The form of graphs in a recording. */
enum ct_gpu_form {
    CT_GPU_FORM_NODES = 0,
    CT_GPU_FORM_WHOLE = 0xffffff,
    CT_GPU_FORM_LATE = 0xfffffe, /* nodes, although whole graphs were requested: older graphs may exist */
};

#endif
