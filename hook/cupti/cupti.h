/* The functions of CUPTI that a recording uses, and where to find them. The declarations are our own. Names,
 * parameters and values are facts from NVIDIA's CUPTI documentation (docs.nvidia.com/cupti), and agree with
 * the headers of CUDA 11 to 13. */
#ifndef CT_CUPTI_H
#define CT_CUPTI_H

#include "gpu_host.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* CUptiResult. All functions return 0 or an error. */
enum { CT_CUPTI_MULTIPLE_SUBSCRIBERS = 39 };
/* CUpti_CallbackDomain and CUpti_ApiCallbackSite. */
enum { CT_CUPTI_DRIVER_API = 1, CT_CUPTI_ENTER = 0 };
/* The argument of cuptiActivityFlushAll() that also returns buffers with unfinished records. */
enum { CT_CUPTI_FLUSH_FORCED = 1 };

/* CUpti_CallbackData. */
struct ct_cupti_call {
    int32_t site;
    const char *function;
    const void *parameters;
    void *result;
    const char *symbol;
    void *context;
    uint32_t context_number;
    uint64_t *shared;
    uint32_t correlation;
};
typedef void ct_cupti_callback(void *data, int32_t domain, uint32_t id, const struct ct_cupti_call *call);

/* CUpti_SubscriberParams, of CUDA 12.8 and later. On CT_CUPTI_MULTIPLE_SUBSCRIBERS, the other subscriber's
 * name is written to `holder`, which must have at least 64 bytes. */
struct ct_cupti_subscriber {
    size_t bytes;
    const char *name;
    char *holder;
    size_t holder_bytes;
};

typedef void ct_cupti_request(uint8_t **buffer, size_t *bytes, size_t *records);
typedef void ct_cupti_complete(void *context, uint32_t stream, uint8_t *buffer, size_t bytes, size_t valid);

/* Each row consists of a function's name without `cupti`, whether it is necessary, and its parameters. */
#define CT_CUPTI_FUNCTIONS(FUNCTION)                                                                         \
    FUNCTION(Subscribe, true, (void **, ct_cupti_callback *, void *))                                        \
    FUNCTION(Subscribe_v2, false, (void **, ct_cupti_callback *, void *, struct ct_cupti_subscriber *))      \
    FUNCTION(Unsubscribe, true, (void *))                                                                    \
    FUNCTION(EnableCallback, true, (uint32_t, void *, int32_t, uint32_t))                                    \
    FUNCTION(GetCallbackName, true, (int32_t, uint32_t, const char **))                                      \
    FUNCTION(ActivityRegisterCallbacks, true, (ct_cupti_request *, ct_cupti_complete *))                     \
    FUNCTION(ActivityRegisterTimestampCallback, true, (uint64_t(*)(void)))                                   \
    FUNCTION(ActivityEnable, true, (int32_t))                                                                \
    FUNCTION(ActivityDisable, true, (int32_t))                                                               \
    FUNCTION(ActivityFlushAll, true, (uint32_t))                                                             \
    FUNCTION(ActivityGetNextRecord, true, (uint8_t *, size_t, uint8_t **))                                   \
    FUNCTION(ActivityGetNumDroppedRecords, true, (void *, uint32_t, size_t *))                               \
    FUNCTION(GetVersion, true, (uint32_t *))                                                                 \
    FUNCTION(Finalize, true, (void))

struct ct_cupti {
#define FUNCTION(name, necessary, parameters) int32_t(*name) parameters;
    CT_CUPTI_FUNCTIONS(FUNCTION)
#undef FUNCTION
};

/* Opens each CUPTI that can be found, beginning with the best fit, until `use` returns true.
 * Returns false if `use` has never returned true. */
bool ct_cupti_each(const struct ct_gpu_host *host, bool (*use)(const struct ct_cupti *cupti, void *data),
                   void *data);

#endif
