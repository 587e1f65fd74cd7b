/* The decoders in objects.def, which record a call's objects. A row of objects.def lists places in the
 * arguments, and a single function reads all of them.
 *
 * The arguments themselves are recorded even if the call failed. Pointers are followed only if it succeeded:
 * the driver has then accessed the same memory, and counts are valid. */
#include "addresses.h"
#include "decode.h"
#include "decode_image.h"
#include "kernel_names.h"
#include "object_names.h"

enum how {
    ARGUMENT_WORD,
    ARGUMENT_ENDED,
    ARGUMENT_UINT,
    ARGUMENT_INT,
    PRODUCT_OF,
    STREAM_NAMED,
    STREAM_QUEUED,
    STREAM_NODE,
    LOCATION_VALUE,
    /* The kinds below are read through a pointer. */
    BEHIND_WORD,
    BEHIND_UINT,
    BEHIND_INT,
    DEVICE_BEHIND,
    LOADED_BEHIND,
    LOCATION_BEHIND,
    RESOURCE_BEHIND,
    POOL_VALUE_BEHIND,
    IMAGE_BYTES,
    FILE_BYTES,
    /* The kinds below are read through a pointer to several elements. */
    FIRST_OF,
    SUM_OF,
    OPERATION_BEHIND,
};

/* A place in the arguments from which a value is read. If the role is CT_ROLE_none, the value is the call's
 * number of bytes. */
struct place {
    uint8_t how; /* enum how */
    uint8_t role;
    uint8_t argument;
    uint8_t count; /* for an array, the argument with the number of elements; for a node, its kind; for a
                    * loaded handle, the argument with its image, or 0 */
    uint8_t offset, stride;
    uint8_t flags; /* set together with CT_FLAG_BYTES */
};

static bool word_at(uint64_t address, uint64_t *word)
{
    return ct_target_read(address, word, sizeof(*word));
}

static bool uint_at(uint64_t address, uint64_t *value)
{
    uint32_t number;
    if (!ct_target_read(address, &number, sizeof(number)))
        return false;
    *value = number;
    return true;
}

/* Sign-extends an int to the size of a handle, so that -1 remains -1 in the database. */
static uint64_t widened(uint64_t word)
{
    return (uint64_t)(int64_t)(int32_t)(uint32_t)word;
}

/* A CUmemLocation consists of a type in the lower half and a device number in the upper half. All host
 * locations become CU_DEVICE_CPU, the value used by the first versions of the functions. */
static uint64_t device_of_location(uint64_t location)
{
    enum { LOCATION_DEVICE = 1, DEVICE_CPU = -1 };
    return widened((uint32_t)location == LOCATION_DEVICE ? location >> 32 : (uint64_t)DEVICE_CPU);
}

/* A CUDA_RESOURCE_DESC contains a type, followed by an array (type 0), a mipmapped array (1), or memory (2
 * and 3). */
static bool resource_at(uint64_t descriptor, uint64_t *value, uint8_t *role)
{
    uint64_t type;
    if (!uint_at(descriptor, &type))
        return false;
    *role = type < 2 ? CT_ROLE_array : CT_ROLE_address;
    return word_at(descriptor + 8, value);
}

/* In CUstreamBatchMemOpParams, barriers (6) and flushes (3) have no address. */
static bool operation_at(uint64_t operation, uint64_t *address)
{
    uint64_t type;
    return uint_at(operation, &type) && type != 3 && type != 6 && word_at(operation + 8, address);
}

/* The first three attributes in CUmemPool_attribute have int values, and the others have 64-bit values. */
static bool pool_value_at(uint64_t pointer, uint32_t attribute, uint64_t *value)
{
    if (attribute > 3)
        return word_at(pointer, value);
    const bool is_read = uint_at(pointer, value);
    *value = widened(*value);
    return is_read;
}

static bool sum_at(uint64_t first, uint64_t count, uint32_t stride, uint64_t *sum)
{
    *sum = 0;
    for (uint64_t i = 0, word; i < count; i++) {
        if (!word_at(first + i * stride, &word))
            return false;
        *sum += word;
    }
    return true;
}

/* True if there is a value to read. The number of elements may be an unsigned int or a size_t, so only its
 * lower 32 bits are compared with 0. */
static bool is_there(const struct ct_frame *frame, const struct place *place)
{
    return (place->how < BEHIND_WORD || (succeeded(frame) && ct_argument(frame, place->argument))) &&
           (place->how < FIRST_OF || (uint32_t)ct_argument(frame, place->count) != 0);
}

static bool read_place(const struct ct_frame *frame, const struct place *place, uint64_t *value,
                       uint8_t *role)
{
    const uint64_t argument = ct_argument(frame, place->argument), at = argument + place->offset;
    bool is_read;
    if (!is_there(frame, place))
        return false;
    switch ((enum how)place->how) {
    case ARGUMENT_WORD:
    case ARGUMENT_ENDED:
        *value = argument;
        return true;
    case ARGUMENT_UINT:
        *value = (uint32_t)argument;
        return true;
    case ARGUMENT_INT:
        *value = widened(argument);
        return true;
    case PRODUCT_OF:
        *value = argument * ct_argument(frame, place->argument + 1U);
        return true;
    case STREAM_NAMED:
    case STREAM_QUEUED:
    case STREAM_NODE:
        *value = stream_of(frame, argument);
        return true;
    case LOCATION_VALUE:
        *value = device_of_location(argument);
        return true;
    case BEHIND_WORD:
    case DEVICE_BEHIND:
    case LOADED_BEHIND:
    case FIRST_OF:
        return word_at(at, value);
    case BEHIND_UINT:
        return uint_at(at, value);
    case BEHIND_INT:
        is_read = uint_at(at, value);
        *value = widened(*value);
        return is_read;
    case LOCATION_BEHIND:
        is_read = word_at(at, value);
        *value = device_of_location(*value);
        return is_read;
    case RESOURCE_BEHIND:
        return resource_at(at, value, role);
    case POOL_VALUE_BEHIND:
        return pool_value_at(at, (uint32_t)ct_argument(frame, place->argument - 1U), value);
    case IMAGE_BYTES:
        return ct_image_bytes(argument, value);
    case FILE_BYTES:
        return ct_target_file_bytes(argument, value);
    case SUM_OF:
        return sum_at(at, ct_argument(frame, place->count), place->stride, value);
    case OPERATION_BEHIND:
        return operation_at(at, value);
    }
    return false;
}

static void loaded(const struct ct_frame *frame, uint64_t handle, uint64_t image)
{
    size_t name_bytes = 0;
    const char *name = image ? ct_image_only_kernel(image, &name_bytes) : NULL;
    ct_names_load(handle, began(frame), name, name_bytes, frame->producer);
}

static void decode(const struct ct_frame *frame, struct ct_decoded *decoded, const struct place *places,
                   size_t count)
{
    uint64_t address = 0;
    for (size_t i = 0; i < count; i++) {
        const struct place *place = &places[i];
        uint64_t value = 0;
        uint8_t role = place->role;
        if (!read_place(frame, place, &value, &role))
            continue;
        if (role == CT_ROLE_none) {
            decoded->value = value;
            decoded->flags |= CT_FLAG_BYTES | place->flags;
        } else {
            ct_decode_add_object(decoded, (enum ct_role)role, value);
        }
        if (place->how == STREAM_QUEUED)
            decoded->flags |= ct_decode_captured(frame, ct_argument(frame, place->argument));
        else if (place->how == STREAM_NODE)
            decoded->flags |= ct_decode_captured_as(frame, ct_argument(frame, place->argument),
                                                    (enum ct_node_kind)place->count, 1);
        else if (place->how == DEVICE_BEHIND)
            address = value;
        else if (place->how == ARGUMENT_ENDED && succeeded(frame))
            ct_named_end((enum ct_role)role, value, frame->producer);
        else if (place->how == LOADED_BEHIND)
            loaded(frame, value, place->count ? ct_argument(frame, place->count) : 0);
    }
    if (address)
        ct_addresses_learn(address, decoded->value);
}

/* clang-format off */
#define PLACE(how_, role_, ...)   { .how = (how_), .role = (role_), __VA_ARGS__ }
#define IN(role, i)               PLACE(ARGUMENT_WORD, CT_ROLE_##role, .argument = (i))
#define GONE(role, i)             PLACE(ARGUMENT_ENDED, CT_ROLE_##role, .argument = (i))
#define IN32(role, i)             PLACE(ARGUMENT_UINT, CT_ROLE_##role, .argument = (i))
#define INT(role, i)              PLACE(ARGUMENT_INT, CT_ROLE_##role, .argument = (i))
#define AT(role, i)               PLACE(BEHIND_WORD, CT_ROLE_##role, .argument = (i))
#define AT32(role, i)             PLACE(BEHIND_UINT, CT_ROLE_##role, .argument = (i))
#define ATINT(role, i)            PLACE(BEHIND_INT, CT_ROLE_##role, .argument = (i))
#define FIRST(role, i, n)         PLACE(FIRST_OF, CT_ROLE_##role, .argument = (i), .count = (n))
#define FIRST_FIELD(role, i, n, o) PLACE(FIRST_OF, CT_ROLE_##role, .argument = (i), .count = (n), .offset = (o))
#define STREAM(i)                 PLACE(STREAM_NAMED, CT_ROLE_stream, .argument = (i))
#define ON(i)                     PLACE(STREAM_QUEUED, CT_ROLE_stream, .argument = (i))
#define NODE(i, kind)             PLACE(STREAM_NODE, CT_ROLE_stream, .argument = (i), .count = CT_NODE_##kind)
#define DEVICE_AT(i)              PLACE(DEVICE_BEHIND, CT_ROLE_address, .argument = (i))
#define LOADED(role, i, m)        PLACE(LOADED_BEHIND, CT_ROLE_##role, .argument = (i), .count = (m))
#define LOCATION(i)               PLACE(LOCATION_VALUE, CT_ROLE_device, .argument = (i))
#define LOCATION_AT(i, o)         PLACE(LOCATION_BEHIND, CT_ROLE_device, .argument = (i), .offset = (o))
#define RESOURCE(i)               PLACE(RESOURCE_BEHIND, CT_ROLE_resource, .argument = (i))
#define MEMORY_OP(i, n)           PLACE(OPERATION_BEHIND, CT_ROLE_address, .argument = (i), .count = (n))
#define POOL_VALUE(i)             PLACE(POOL_VALUE_BEHIND, CT_ROLE_value, .argument = (i))
#define BYTES(i)                  PLACE(ARGUMENT_WORD, CT_ROLE_none, .argument = (i))
#define BYTES32(i)                PLACE(ARGUMENT_UINT, CT_ROLE_none, .argument = (i))
#define BYTES_PRODUCT(i)          PLACE(PRODUCT_OF, CT_ROLE_none, .argument = (i))
#define BYTES_AT(i, o)            PLACE(BEHIND_WORD, CT_ROLE_none, .argument = (i), .offset = (o))
#define BYTES_AT32(i)             PLACE(BEHIND_UINT, CT_ROLE_none, .argument = (i))
#define SIZE_AT(i)                PLACE(BEHIND_WORD, CT_ROLE_none, .argument = (i), .flags = CT_FLAG_SIZE)
#define SIZE_AT32(i)              PLACE(BEHIND_UINT, CT_ROLE_none, .argument = (i), .flags = CT_FLAG_SIZE)
#define BYTES_SUM(i, n, s, o)     PLACE(SUM_OF, CT_ROLE_none, .argument = (i), .count = (n), .stride = (s), .offset = (o))
#define IMAGE(i)                  PLACE(IMAGE_BYTES, CT_ROLE_none, .argument = (i))
#define FILE(i)                   PLACE(FILE_BYTES, CT_ROLE_none, .argument = (i))
/* clang-format on */

#define OBJECTS(name, ...)                                                                                   \
    void ct_decode_##name(const struct ct_frame *frame, struct ct_decoded *decoded)                          \
    {                                                                                                        \
        static const struct place places[] = { __VA_ARGS__ };                                                \
        decode(frame, decoded, places, CT_ARRAY_LENGTH(places));                                             \
    }
#define OBJECTS_ALWAYS OBJECTS
#include "objects.def"
#undef OBJECTS_ALWAYS
#undef OBJECTS
