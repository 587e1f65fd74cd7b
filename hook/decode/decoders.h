/* The decoders that hook/function/driver_api.def may name in its last column, and what the row needs besides: those of this
 * list, and those of objects.def. Included by functions.c (the table) and decode.h (the definitions). */
#ifndef CT_DECODERS_H
#define CT_DECODERS_H

#include "hook.h"

/* DECODER(name, row flags) */
#define CT_DECODERS(DECODER)                                                                                  \
    DECODER(alloc, CT_ROW_ALWAYS)       /* (pointer *, size, …) */                                            \
    DECODER(alloc_v1, CT_ROW_ALWAYS)    /* the same with 32-bit pointer and size */                           \
    DECODER(alloc_pitch, CT_ROW_ALWAYS) /* (pointer *, pitch *, width, height, element) */                    \
    DECODER(alloc_pitch_v1, CT_ROW_ALWAYS)                                                                    \
    DECODER(alloc_managed, CT_ROW_ALWAYS) /* (pointer *, size, flags) */                                      \
    DECODER(alloc_host, 0)              /* (void **, size, …) */                                              \
    DECODER(alloc_host_v1, 0)                                                                                 \
    DECODER(alloc_async, CT_ROW_ALWAYS) /* (pointer *, size, stream) */                                       \
    DECODER(alloc_from_pool, CT_ROW_ALWAYS) /* (pointer *, size, pool, stream) */                             \
    DECODER(host_register, 0)           /* (void *, size, flags) */                                           \
    DECODER(free, CT_ROW_ALWAYS)        /* (address, …) */                                                    \
    DECODER(free_v1, CT_ROW_ALWAYS)                                                                           \
    DECODER(free_async, CT_ROW_ALWAYS)  /* (address, stream) */                                               \
    DECODER(host_unregister, 0)         /* (void *) */                                                        \
    DECODER(physical, 0)                /* (handle *, size, …) */                                             \
    DECODER(physical_shared, 0)         /* (handle *, …): of memory that others hold too */                   \
    DECODER(physical_free, 0)           /* (handle) */                                                        \
    DECODER(reserve, CT_ROW_ALWAYS)     /* (pointer *, size, …) */                                            \
    DECODER(reserve_free, CT_ROW_ALWAYS) /* (address, size) */                                                \
    DECODER(map, 0)                     /* (address, size, offset, handle, …) */                              \
    DECODER(unmap, 0)                   /* (address, size) */                                                 \
    DECODER(pool_import, CT_ROW_ALWAYS) /* (pointer *, pool, …) */                                            \
    DECODER(ipc_open, CT_ROW_ALWAYS)    /* (pointer *, …) */                                                  \
    DECODER(ipc_close, CT_ROW_ALWAYS)   /* (address) */                                                       \
    DECODER(external_map, CT_ROW_ALWAYS) /* (pointer *, external memory, descriptor) */                       \
    DECODER(array_create, CT_ROW_ALWAYS) /* (array *, CUDA_ARRAY_DESCRIPTOR *) */                             \
    DECODER(array_create_v1, CT_ROW_ALWAYS)                                                                   \
    DECODER(array_create_3d, CT_ROW_ALWAYS) /* (array *, CUDA_ARRAY3D_DESCRIPTOR *) */                        \
    DECODER(array_create_3d_v1, CT_ROW_ALWAYS)                                                                \
    DECODER(array_create_mipmapped, CT_ROW_ALWAYS) /* … and levels */                                         \
    DECODER(array_destroy, CT_ROW_ALWAYS) /* (array) */                                                       \
    DECODER(copy, 0)                    /* (destination, source, bytes): the driver finds out the direction */\
    DECODER(copy_async, 0)              /* … and stream */                                                    \
    DECODER(copy_peer, 0)               /* (destination, context, source, context, bytes) */                  \
    DECODER(copy_peer_async, 0)                                                                               \
    DECODER(copy_htod, 0)               /* (destination, source, bytes) */                                    \
    DECODER(copy_htod_async, 0)         /* … and stream */                                                    \
    DECODER(copy_htod_v1, 0)            /* 32-bit pointer and size */                                         \
    DECODER(copy_htod_async_v1, 0)                                                                            \
    DECODER(copy_dtoh, 0)                                                                                     \
    DECODER(copy_dtoh_async, 0)                                                                               \
    DECODER(copy_dtoh_v1, 0)                                                                                  \
    DECODER(copy_dtoh_async_v1, 0)                                                                            \
    DECODER(copy_dtod, 0)                                                                                     \
    DECODER(copy_dtod_async, 0)                                                                               \
    DECODER(copy_dtod_v1, 0)                                                                                  \
    DECODER(copy_dtod_async_v1, 0)                                                                            \
    DECODER(copy_dtoa, 0)               /* (array, offset, source, bytes) */                                  \
    DECODER(copy_dtoa_v1, 0)                                                                                  \
    DECODER(copy_atod, 0)               /* (destination, array, offset, bytes) */                             \
    DECODER(copy_atod_v1, 0)                                                                                  \
    DECODER(copy_htoa, 0)               /* (array, offset, source, bytes) */                                  \
    DECODER(copy_htoa_async, 0)                                                                               \
    DECODER(copy_htoa_v1, 0)                                                                                  \
    DECODER(copy_htoa_async_v1, 0)                                                                            \
    DECODER(copy_atoh, 0)               /* (destination, array, offset, bytes) */                             \
    DECODER(copy_atoh_async, 0)                                                                               \
    DECODER(copy_atoh_v1, 0)                                                                                  \
    DECODER(copy_atoh_async_v1, 0)                                                                            \
    DECODER(copy_atoa, 0)               /* (array, offset, array, offset, bytes) */                           \
    DECODER(copy_atoa_v1, 0)                                                                                  \
    DECODER(copy_2d, 0)                 /* (CUDA_MEMCPY2D_v2 *) */                                            \
    DECODER(copy_2d_async, 0)                                                                                 \
    DECODER(copy_2d_v1, 0)              /* (CUDA_MEMCPY2D_v1 *) */                                            \
    DECODER(copy_2d_async_v1, 0)                                                                              \
    DECODER(copy_3d, 0)                 /* (CUDA_MEMCPY3D_v2 *), and CUDA_MEMCPY3D_PEER, laid out alike */    \
    DECODER(copy_3d_async, 0)                                                                                 \
    DECODER(copy_3d_peer, 0)                                                                                  \
    DECODER(copy_3d_peer_async, 0)                                                                            \
    DECODER(copy_3d_v1, 0)              /* (CUDA_MEMCPY3D_v1 *) */                                            \
    DECODER(copy_3d_async_v1, 0)                                                                              \
    DECODER(copy_batch, 0)              /* (destinations, sources, sizes, count, …, failed, stream) */        \
    DECODER(copy_batch_v2, 0)           /* … without failed */                                                \
    DECODER(copy_3d_batch, 0)           /* (count, operations, failed, flags, stream) */                      \
    DECODER(copy_3d_batch_v2, 0)        /* … without failed */                                                \
    DECODER(set_d8, 0)                  /* (pointer, value, count) */                                         \
    DECODER(set_d16, 0)                                                                                       \
    DECODER(set_d32, 0)                                                                                       \
    DECODER(set_d8_async, 0)            /* … and stream */                                                    \
    DECODER(set_d16_async, 0)                                                                                 \
    DECODER(set_d32_async, 0)                                                                                 \
    DECODER(set_d8_v1, 0)                                                                                     \
    DECODER(set_d16_v1, 0)                                                                                    \
    DECODER(set_d32_v1, 0)                                                                                    \
    DECODER(set_2d8, 0)                 /* (pointer, pitch, value, width, height) */                          \
    DECODER(set_2d16, 0)                                                                                      \
    DECODER(set_2d32, 0)                                                                                      \
    DECODER(set_2d8_async, 0)                                                                                 \
    DECODER(set_2d16_async, 0)                                                                                \
    DECODER(set_2d32_async, 0)                                                                                \
    DECODER(set_2d8_v1, 0)                                                                                    \
    DECODER(set_2d16_v1, 0)                                                                                   \
    DECODER(set_2d32_v1, 0)                                                                                   \
    DECODER(launch, 0)                  /* (function, grid, block, shared, stream, …) */                      \
    DECODER(launch_ex, 0)               /* (CUlaunchConfig *, function, …) */                                 \
    DECODER(launch_one, 0)              /* cuLaunch(function) */                                              \
    DECODER(launch_grid, 0)             /* cuLaunchGrid(function, width, height) */                           \
    DECODER(launch_grid_async, 0)       /* … and stream */                                                    \
    DECODER(graph_launch, 0)            /* (exec, stream) */                                                  \
    DECODER(graph_instantiate, CT_ROW_ALWAYS)/* (exec *, graph, …) */                                         \
    DECODER(graph_create, CT_ROW_ALWAYS)/* (graph *, flags) */                                                \
    DECODER(graph_clone, CT_ROW_ALWAYS) /* (graph *, graph) */                                                \
    DECODER(graph_destroy, CT_ROW_ALWAYS)/* (graph) */                                                        \
    DECODER(graph_exec_destroy, CT_ROW_ALWAYS)/* (exec) */                                                    \
    DECODER(graph_node_destroy, CT_ROW_ALWAYS)/* (node) */                                                    \
    DECODER(graph_node_type, CT_ROW_ALWAYS)/* (node, type *) */                                               \
    DECODER(graph_node_enable, CT_ROW_ALWAYS)/* (exec, node, enabled) */                                      \
    DECODER(graph_add_kernel, CT_ROW_ALWAYS)/* (node *, graph, …) */                                          \
    DECODER(graph_add_memcpy, CT_ROW_ALWAYS)/* (node *, graph, …) */                                          \
    DECODER(graph_add_memset, CT_ROW_ALWAYS)/* (node *, graph, …) */                                          \
    DECODER(graph_add_host, CT_ROW_ALWAYS)/* (node *, graph, …) */                                            \
    DECODER(graph_add_child, CT_ROW_ALWAYS)/* (node *, graph, dependencies, count, graph) */                  \
    DECODER(graph_add_empty, CT_ROW_ALWAYS)/* (node *, graph, …) */                                           \
    DECODER(graph_add_event_wait, CT_ROW_ALWAYS)/* (node *, graph, …) */                                      \
    DECODER(graph_add_event_record, CT_ROW_ALWAYS)/* (node *, graph, …) */                                    \
    DECODER(graph_add_semaphores_signal, CT_ROW_ALWAYS)/* (node *, graph, …) */                               \
    DECODER(graph_add_semaphores_wait, CT_ROW_ALWAYS)/* (node *, graph, …) */                                 \
    DECODER(graph_add_mem_alloc, CT_ROW_ALWAYS)/* (node *, graph, …) */                                       \
    DECODER(graph_add_mem_free, CT_ROW_ALWAYS)/* (node *, graph, …) */                                        \
    DECODER(graph_add_batch_mem_op, CT_ROW_ALWAYS)/* (node *, graph, …) */                                    \
    DECODER(graph_add_node, CT_ROW_ALWAYS)/* (node *, graph, dependencies, count, params *) */                \
    DECODER(graph_add_node_v2, CT_ROW_ALWAYS)/* (node *, graph, dependencies, data, count, params *) */       \
    DECODER(capture_begin, CT_ROW_ALWAYS)/* (stream, …) */                                                    \
    DECODER(capture_begin_to_graph, CT_ROW_ALWAYS)/* (stream, graph, …) */                                    \
    DECODER(capture_end, CT_ROW_ALWAYS) /* (stream, graph *) */                                               \
    DECODER(capture_info, CT_ROW_ALWAYS)/* (stream, status *, id *, graph *, …) */                            \
    DECODER(event_record, 0)            /* (event, stream) */                                                 \
    DECODER(event_record_with_flags, 0) /* (event, stream, flags) */                                          \
    DECODER(wait_event, 0)              /* (stream, event, flags) */                                          \
    DECODER(get_function, CT_ROW_ALWAYS)      /* (function *, module, name), (kernel *, library, name) */     \
    DECODER(kernel_function, CT_ROW_ALWAYS)   /* (function *, kernel) */                                      \
    DECODER(enumerate, CT_ROW_ALWAYS)         /* (function or kernel [], count, module or library) */         \
    DECODER(get_name, CT_ROW_ALWAYS)          /* (const char **, function or kernel) */                       \
    DECODER(library_module, CT_ROW_ALWAYS)    /* (module *, library) */                                       \
    DECODER(module_unload, CT_ROW_ALWAYS)     /* (module) */                                                  \
    DECODER(library_unload, CT_ROW_ALWAYS)    /* (library) */                                                 \
    DECODER(context_end, CT_ROW_ALWAYS)       /* (context): what was loaded in it is gone */                  \
    DECODER(device_end, CT_ROW_ALWAYS)        /* (device): the same for its primary context */                \
    DECODER(proc_address, CT_ROW_ALWAYS)      /* (symbol, function *, …) */

/* Those that hook/function/runtime_api.def may name besides: they add to a call what the driver calls inside it do not
 * say of it, and make no launch, copy or allocation of it, since those are the driver calls'. */
#define CT_RUNTIME_DECODERS(DECODER)                                                                          \
    DECODER(no_status, 0)               /* the result is no cudaError_t */                                    \
    DECODER(entry_point, CT_ROW_ALWAYS) /* (symbol, function *, …) */                                         \
    DECODER(bytes_1, 0)                 /* number of bytes in the second argument */                          \
    DECODER(bytes_2, 0)                 /* … the third */                                                     \
    DECODER(bytes_4, 0)                 /* … the fifth */                                                     \
    DECODER(bytes_6, 0)                 /* … the seventh */                                                   \
    DECODER(bytes_3x4, 0)               /* rows of bytes: width in the fourth argument, height in the fifth */\
    DECODER(bytes_4x5, 0)                                                                                     \
    DECODER(bytes_5x6, 0)                                                                                     \
    DECODER(bytes_6x7, 0)                                                                                     \
    DECODER(bytes_pitch, 0)             /* (pointer *, pitch *, width, height) */                             \
    DECODER(bytes_pitched, 0)           /* (cudaPitchedPtr *, cudaExtent) */                                  \
    DECODER(bytes_set_3d, 0)            /* (cudaPitchedPtr, value, cudaExtent) */                             \
    DECODER(bytes_copy_3d, 0)           /* (cudaMemcpy3DParms *) */                                           \
    DECODER(bytes_copy_3d_peer, 0)      /* (cudaMemcpy3DPeerParms *) */                                       \
    DECODER(bytes_batch, 0)             /* (destinations, sources, sizes, count, …) */                        \
    DECODER(stream_and_event, 0)        /* (stream, event, …) */                                              \
    DECODER(event_and_stream, 0)        /* (event, stream, …) */                                              \
    DECODER(two_events, 0)              /* (float *, event, event) */

enum {
    CT_DECODER_FLAGS_none = 0,
#define DECODER(name, flags) CT_DECODER_FLAGS_##name = flags,
    CT_DECODERS(DECODER)
    CT_RUNTIME_DECODERS(DECODER)
#undef DECODER
#define OBJECTS(name, ...)        CT_DECODER_FLAGS_##name = 0,
#define OBJECTS_ALWAYS(name, ...) CT_DECODER_FLAGS_##name = CT_ROW_ALWAYS,
#include "objects.def"
#undef OBJECTS_ALWAYS
#undef OBJECTS
};

#define DECODER(name, flags) ct_decoder ct_decode_##name;
CT_DECODERS(DECODER)
CT_RUNTIME_DECODERS(DECODER)
#undef DECODER
#define OBJECTS(name, ...) ct_decoder ct_decode_##name;
#define OBJECTS_ALWAYS     OBJECTS
#include "objects.def"
#undef OBJECTS_ALWAYS
#undef OBJECTS

#endif
