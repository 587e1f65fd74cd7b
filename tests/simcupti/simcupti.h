/* simcupti.h: the interface of the simulated CUPTI, for programs that use it and for its own files. The
 * names, numbers and layouts are facts from NVIDIA's documentation of CUPTI for CUDA 12 and 13
 * (docs.nvidia.com/cupti). */
#ifndef SIMCUPTI_H
#define SIMCUPTI_H

#include <stddef.h>
#include <stdint.h>

#ifndef SIMCUPTI_VERSION
#define SIMCUPTI_VERSION 13
#endif

enum {
    SIMCUPTI_SUCCESS = 0,
    SIMCUPTI_INVALID_PARAMETER = 1,
    SIMCUPTI_MAX_LIMIT_REACHED = 12,
    SIMCUPTI_NOT_INITIALIZED = 15,
    SIMCUPTI_INVALID_KIND = 21,
    SIMCUPTI_MULTIPLE_SUBSCRIBERS = 39,
    SIMCUPTI_UNKNOWN = 999,
};
enum { SIMCUPTI_DRIVER_API = 1 }; /* a domain of callbacks */
enum {
    SIMCUPTI_MEMCPY = 1,
    SIMCUPTI_MEMSET = 2,
    SIMCUPTI_CONCURRENT_KERNEL = 10,
    SIMCUPTI_GRAPH_TRACE = 51,
    SIMCUPTI_KINDS = 64
};

struct simcupti_call {
    int32_t site; /* 0: entry, 1: return */
    const char *function;
    const void *parameters;
    void *result;
    const char *symbol;
    void *context;
    uint32_t context_number;
    uint64_t *shared;
    uint32_t correlation;
};
typedef void simcupti_callback(void *data, int32_t domain, uint32_t id, const struct simcupti_call *call);

struct simcupti_subscriber_parameters {
    size_t bytes;
    const char *name;
    char *old_name;
    size_t old_name_bytes;
};

typedef void simcupti_request(uint8_t **buffer, size_t *bytes, size_t *records);
typedef void simcupti_complete(void *context, uint32_t stream, uint8_t *buffer, size_t bytes, size_t valid);

int32_t cuptiSubscribe(void **subscriber, simcupti_callback *callback, void *data);
int32_t cuptiSubscribe_v2(void **subscriber, simcupti_callback *callback, void *data,
                          struct simcupti_subscriber_parameters *parameters);
int32_t cuptiUnsubscribe(void *subscriber);
int32_t cuptiEnableCallback(uint32_t enable, void *subscriber, int32_t domain, uint32_t id);
int32_t cuptiGetCallbackName(int32_t domain, uint32_t id, const char **name);
int32_t cuptiActivityRegisterCallbacks(simcupti_request *request, simcupti_complete *complete);
int32_t cuptiActivityRegisterTimestampCallback(uint64_t (*now)(void));
int32_t cuptiActivityEnable(int32_t kind);
int32_t cuptiActivityDisable(int32_t kind);
int32_t cuptiActivityFlushAll(uint32_t forced);
int32_t cuptiActivityGetNextRecord(uint8_t *buffer, size_t valid, uint8_t **record);
int32_t cuptiActivityGetNumDroppedRecords(void *context, uint32_t stream, size_t *dropped);
int32_t cuptiGetVersion(uint32_t *version);
int32_t cuptiFinalize(void);

#endif
