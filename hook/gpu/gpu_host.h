/* Between the hook and libcudatrace-gpu.so. The hook owns the thread, the lane and the loader, and the
 * library knows CUPTI. Both are of the same build. */
#ifndef CT_GPU_HOST_H
#define CT_GPU_HOST_H

#include "gpu_recording.h"
#include "payload.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The next step of the recording. */
enum ct_gpu_order {
    CT_GPU_GO_ON,
    CT_GPU_STOP, /* end, and leave CUPTI to the program */
    CT_GPU_EXIT, /* end; the process is about to exit */
};

/* The functions that the hook provides. Only the recording's thread may call them, except `now`, `note` and
 * `leave`. */
struct ct_gpu_host {
    /* dlopen() and dlsym(), unaffected by the hook's own interposition. */
    void *(*open)(const char *path);
    void *(*symbol)(void *handle, const char *name);
    /* Calls `visit` for each loaded object until it returns true. `soname` is NULL if there is none. `visit`
     * must not call the loader. */
    void (*objects)(bool (*visit)(const char *path, const char *soname, void *data), void *data);
    /* Returns the value of a variable of the environment, or NULL if it is not set. */
    const char *(*setting)(const char *name);
    /* True if calls of the driver's function launch, copy or set. */
    bool (*does_work)(const char *function);
    /* Returns the time in ticks of the segment's clock. May be called in any thread. */
    uint64_t (*now)(void);
    /* Waits at most `ms` milliseconds, or until there is an order. */
    enum ct_gpu_order (*wait)(uint32_t ms);
    /* Ends the wait early. May be called in any thread. */
    void (*wake)(void);
    /* Reports the state. `result` is the error that a CUPTI function returned, or 0. With CT_GPU_ON, it is an
     * enum ct_gpu_form, or the error if CUPTI cannot record whole graphs. `holder` is the name of the tool
     * that uses CUPTI, or NULL. */
    void (*report)(enum ct_gpu_state state, uint32_t result, const char *holder);
    /* Returns a string that contains a copy of the name, or 0 if out of memory. `release` releases it. */
    uint32_t (*text)(const char *name);
    void (*release)(uint32_t string);
    /* Records work, whose `kernel` is a string from `text` or 0. `end` and `duration` are in ticks, and
     * `correlation` is CUPTI's number. Work that finds no room is counted as dropped. */
    void (*work)(const struct ct_gpu_work *work, uint64_t end, uint64_t duration, uint32_t correlation);
    /* Adds `count` records to those that CUPTI has dropped, and reports them in the lane. */
    void (*drop)(uint64_t count);
    /* Notes CUPTI's number for the calling thread's open call, unless the number is 0. Returns false if the
     * hook does not trace the call of the driver. May be called in any thread. */
    bool (*note)(uint32_t correlation);
    /* Returns an enum ct_gpu_form. Must be called just before the recording of whole graphs is enabled. */
    uint32_t (*graphs)(void);
    /* Returns whether the process has called functions for graphs since the segment was created. */
    bool (*has_graphs)(void);
    /* Returns whether it has created contexts other than the devices' primary contexts. */
    bool (*has_contexts)(void);
    /* Holds the program's driver calls until `resume_calls`, which must follow within milliseconds. Returns
     * false if a call is in progress, or if the GPUs do not finish all work soon. `contexts` are the contexts
     * that have been used. All calls of the driver must be traced. */
    bool (*hold_calls)(void *const contexts[], size_t count);
    void (*resume_calls)(void);
    /* Returns whether the process is about to exit. */
    bool (*is_exiting)(void);
    /* Ends the recording from another thread, which is about to exit the process. */
    void (*leave)(void);
};

/* The library's only export. Records until `wait` returns an order to end. `host` stays valid for ever. */
typedef void ct_gpu_record_function(const struct ct_gpu_host *host);
#define CT_GPU_RECORD_NAME "cudatrace_gpu_record"

#endif
