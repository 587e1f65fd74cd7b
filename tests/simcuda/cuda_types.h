/* cuda_types.h: driver structs that only the models need, with the layouts and values of cuda.h 13.0. A name
 * has no version suffix if only one version of the struct is modelled. */
#ifndef SIMCUDA_CUDA_TYPES_H
#define SIMCUDA_CUDA_TYPES_H

#include "cuda_min_types.h"

#include <assert.h>

typedef struct CUlinkState_st *CUlinkState;
typedef size_t (*CUoccupancyB2DSize)(int block_size);

enum {
    CU_CTX_FLAGS_MASK = 0xff,

    CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK = 0,
    CU_FUNC_ATTRIBUTE_NUM_REGS = 4,
    CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES = 8,
    CU_FUNC_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT = 9,
    CU_FUNC_ATTRIBUTE_COUNT = 16,
};

typedef struct CUmemLocation {
    int type;
    int id;
} CUmemLocation;

typedef struct CUDA_ARRAY3D_DESCRIPTOR {
    size_t Width, Height, Depth;
    unsigned int Format, NumChannels, Flags;
} CUDA_ARRAY3D_DESCRIPTOR;
static_assert(sizeof(CUDA_KERNEL_NODE_PARAMS) == 72, "CUDA_KERNEL_NODE_PARAMS");
static_assert(sizeof(CUDA_MEMCPY2D) == 128, "CUDA_MEMCPY2D");

typedef struct CUmemcpy3DOperand {
    int type; /* 1 pointer, 2 array */
    union {
        struct {
            CUdeviceptr ptr;
            size_t rowLength, layerHeight;
            CUmemLocation locHint;
        } ptr;
        struct {
            CUarray array;
            size_t x, y, z;
        } array;
    } op;
} CUmemcpy3DOperand;

typedef struct CUDA_MEMCPY3D_BATCH_OP {
    CUmemcpy3DOperand src, dst;
    size_t width, height, depth; /* in elements of the array, or in bytes if no array is involved */
    int srcAccessOrder;
    unsigned int flags;
} CUDA_MEMCPY3D_BATCH_OP;
static_assert(sizeof(CUDA_MEMCPY3D_BATCH_OP) == 112, "CUDA_MEMCPY3D_BATCH_OP");

typedef struct CUuuid {
    uint8_t bytes[16];
} CUuuid;

typedef struct CUgraphNodeParams {
    CUgraphNodeType type;
    int reserved0[3];
    union {
        long long reserved1[29];
        CUDA_KERNEL_NODE_PARAMS kernel;
        struct {
            CUgraph graph;
            int ownership;
        } graph;
        struct {
            unsigned long long handle;
            int type; /* CUgraphConditionalNodeType */
            unsigned int size;
            CUgraph *phGraph_out; /* an array of `size` bodies, which the driver owns */
            CUcontext ctx;
        } conditional;
    };
    long long reserved2;
} CUgraphNodeParams;
static_assert(sizeof(CUgraphNodeParams) == 256, "CUgraphNodeParams");

typedef struct CUgraphEdgeData {
    unsigned char from_port, to_port, type, reserved[5];
} CUgraphEdgeData;

#endif
