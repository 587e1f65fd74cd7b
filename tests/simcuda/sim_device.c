/*
 * sim_device.c: the simulated devices, alike but for their numbers, and what can be asked about them. Attributes
 * are those of attributes.def.
 */
#include "simcuda.h"

#include <stdio.h>
#include <string.h>

uint64_t sim_device_used[SIM_MAX_DEVICES];

static const char device_name[] = "simcuda";

bool device_valid(CUdevice device)
{
    return device >= 0 && device < sim_settings.devices;
}

/* Attribute numbers are dense from 1, so each is its place in this table. */
static const int attributes[CU_DEVICE_ATTRIBUTE_LAST] = {
#define ATTRIBUTE(name, number, value) [number] = (value),
#include "attributes.def"
#undef ATTRIBUTE
};

int device_attribute(int attribute)
{
    return attributes[attribute];
}

CUresult sim_cuDeviceGet(CUdevice *device, int ordinal)
{
    if (!device)
        return CUDA_ERROR_INVALID_VALUE;
    if (!device_valid(ordinal))
        return CUDA_ERROR_INVALID_DEVICE;
    *device = ordinal;
    return CUDA_SUCCESS;
}

CUresult sim_cuDeviceGetCount(int *count)
{
    if (!count)
        return CUDA_ERROR_INVALID_VALUE;
    *count = sim_settings.devices;
    return CUDA_SUCCESS;
}

CUresult sim_cuDeviceGetName(char *name, int size, CUdevice device)
{
    if (!name || size <= 0)
        return CUDA_ERROR_INVALID_VALUE;
    if (!device_valid(device))
        return CUDA_ERROR_INVALID_DEVICE;
    snprintf(name, (size_t)size, "%s", device_name);
    return CUDA_SUCCESS;
}

CUresult sim_cuDeviceGetUuid_v2(CUuuid *uuid, CUdevice device)
{
    if (!uuid)
        return CUDA_ERROR_INVALID_VALUE;
    if (!device_valid(device))
        return CUDA_ERROR_INVALID_DEVICE;
    memcpy(uuid->bytes, "simcuda device \0", sizeof uuid->bytes);
    uuid->bytes[15] = (unsigned char)device;
    return CUDA_SUCCESS;
}

CUresult sim_cuDeviceGetUuid(CUuuid *uuid, CUdevice device)
{
    return sim_cuDeviceGetUuid_v2(uuid, device);
}

CUresult sim_cuDeviceTotalMem_v2(size_t *bytes, CUdevice device)
{
    if (!bytes)
        return CUDA_ERROR_INVALID_VALUE;
    if (!device_valid(device))
        return CUDA_ERROR_INVALID_DEVICE;
    *bytes = sim_settings.memory_bytes;
    return CUDA_SUCCESS;
}

CUresult sim_cuDeviceTotalMem(unsigned int *bytes, CUdevice device)
{
    size_t all;
    if (!bytes)
        return CUDA_ERROR_INVALID_VALUE;
    const CUresult result = sim_cuDeviceTotalMem_v2(&all, device);
    if (result == CUDA_SUCCESS)
        *bytes = all > UINT32_MAX ? UINT32_MAX : (unsigned)all;
    return result;
}

CUresult sim_cuDeviceGetAttribute(int *value, int attribute, CUdevice device)
{
    if (!value || attribute < 1 || attribute >= CU_DEVICE_ATTRIBUTE_LAST)
        return CUDA_ERROR_INVALID_VALUE;
    if (!device_valid(device))
        return CUDA_ERROR_INVALID_DEVICE;
    *value = attributes[attribute];
    if (attribute == CU_DEVICE_ATTRIBUTE_PCI_DEVICE_ID)
        *value += device;
    return CUDA_SUCCESS;
}

CUresult sim_cuDeviceComputeCapability(int *major, int *minor, CUdevice device)
{
    if (!major || !minor)
        return CUDA_ERROR_INVALID_VALUE;
    if (!device_valid(device))
        return CUDA_ERROR_INVALID_DEVICE;
    *major = attributes[CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR];
    *minor = attributes[CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR];
    return CUDA_SUCCESS;
}

CUresult sim_cuDeviceGetProperties(CUdevprop *properties, CUdevice device)
{
    if (!properties)
        return CUDA_ERROR_INVALID_VALUE;
    if (!device_valid(device))
        return CUDA_ERROR_INVALID_DEVICE;
    const int *at = attributes;
    *properties = (CUdevprop){
        .maxThreadsPerBlock = at[CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_BLOCK],
        .maxThreadsDim = { at[CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_X], at[CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_Y],
                           at[CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_Z] },
        .maxGridSize = { at[CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_X], at[CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_Y],
                         at[CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_Z] },
        .sharedMemPerBlock = at[CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK],
        .totalConstantMemory = at[CU_DEVICE_ATTRIBUTE_TOTAL_CONSTANT_MEMORY],
        .SIMDWidth = at[CU_DEVICE_ATTRIBUTE_WARP_SIZE],
        .memPitch = at[CU_DEVICE_ATTRIBUTE_MAX_PITCH],
        .regsPerBlock = at[CU_DEVICE_ATTRIBUTE_MAX_REGISTERS_PER_BLOCK],
        .clockRate = at[CU_DEVICE_ATTRIBUTE_CLOCK_RATE],
        .textureAlign = at[CU_DEVICE_ATTRIBUTE_TEXTURE_ALIGNMENT],
    };
    return CUDA_SUCCESS;
}

static void pci_bus_id(char text[16], CUdevice device)
{
    snprintf(text, 16, "%04x:%02x:%02x.0", 0, attributes[CU_DEVICE_ATTRIBUTE_PCI_BUS_ID] & 0xff,
             (attributes[CU_DEVICE_ATTRIBUTE_PCI_DEVICE_ID] + device) & 0xff);
}

CUresult sim_cuDeviceGetPCIBusId(char *text, int size, CUdevice device)
{
    char full[16];
    if (!text)
        return CUDA_ERROR_INVALID_VALUE;
    if (!device_valid(device))
        return CUDA_ERROR_INVALID_DEVICE;
    pci_bus_id(full, device);
    if (size < (int)strlen(full) + 1)
        return CUDA_ERROR_INVALID_VALUE;
    strcpy(text, full);
    return CUDA_SUCCESS;
}

CUresult sim_cuDeviceGetByPCIBusId(CUdevice *device, const char *text)
{
    if (!device || !text)
        return CUDA_ERROR_INVALID_VALUE;
    for (CUdevice candidate = 0; candidate < sim_settings.devices; candidate++) {
        char full[16];
        pci_bus_id(full, candidate);
        if (!strcmp(full, text)) {
            *device = candidate;
            return CUDA_SUCCESS;
        }
    }
    return CUDA_ERROR_INVALID_DEVICE;
}

CUresult sim_cuDeviceCanAccessPeer(int *can, CUdevice device, CUdevice peer)
{
    if (!can)
        return CUDA_ERROR_INVALID_VALUE;
    if (!device_valid(device) || !device_valid(peer))
        return CUDA_ERROR_INVALID_DEVICE;
    *can = device != peer;
    return CUDA_SUCCESS;
}

CUresult sim_cuDeviceGetP2PAttribute(int *value, int attribute, CUdevice from, CUdevice to)
{
    if (!value || attribute < 1 || attribute > 5)
        return CUDA_ERROR_INVALID_VALUE;
    if (!device_valid(from) || !device_valid(to) || from == to)
        return CUDA_ERROR_INVALID_DEVICE;
    *value = attribute == 2 || attribute == 4; /* access and array access, but no native atomics */
    return CUDA_SUCCESS;
}

CUresult sim_cuDeviceGetTexture1DLinearMaxWidth(size_t *elements, int format, unsigned int channels,
                                                CUdevice device)
{
    (void)format;
    if (!elements || channels == 0)
        return CUDA_ERROR_INVALID_VALUE;
    if (!device_valid(device))
        return CUDA_ERROR_INVALID_DEVICE;
    *elements = (size_t)attributes[CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE1D_LINEAR_WIDTH];
    return CUDA_SUCCESS;
}

CUresult sim_cuDeviceGetExecAffinitySupport(int *supported, int type, CUdevice device)
{
    (void)type;
    if (!supported)
        return CUDA_ERROR_INVALID_VALUE;
    if (!device_valid(device))
        return CUDA_ERROR_INVALID_DEVICE;
    *supported = 0;
    return CUDA_SUCCESS;
}

CUresult sim_cuDeviceGetGraphMemAttribute(CUdevice device, int attribute, void *value)
{
    if (!value || attribute < 0 || attribute > 3)
        return CUDA_ERROR_INVALID_VALUE;
    if (!device_valid(device))
        return CUDA_ERROR_INVALID_DEVICE;
    memset(value, 0, sizeof(uint64_t)); /* graphs' memory comes out of the device's like any other */
    return CUDA_SUCCESS;
}

CUresult sim_cuDeviceGraphMemTrim(CUdevice device)
{
    return device_valid(device) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_DEVICE;
}
