/* device_code.h: defines CUDA C++ for the host's compiler. nvrtc.c prepends this file to each program's
 * source. A launch runs its threads one after another, so they cannot cooperate. Shared memory is rejected by
 * the compiler, and barriers and inline PTX are rejected by the linker. */
#pragma GCC diagnostic ignored "-Wunused-function"

#define __global__
#define __device__
#define __host__
#define __forceinline__ inline
#define __shared__      the simulated device has no shared memory
#define asm(...) simcuda_has_no_inline_ptx()
#define warpSize 32

typedef decltype(sizeof 0) size_t;
typedef __PTRDIFF_TYPE__ ptrdiff_t;
struct uint3 {
    unsigned x, y, z;
};
static thread_local uint3 threadIdx, blockIdx, blockDim, gridDim;

void simcuda_has_no_inline_ptx();
void __syncthreads();
unsigned __byte_perm(unsigned, unsigned, unsigned);

template <class To, class From> static To simcuda_bits(From from)
{
    static_assert(sizeof(To) == sizeof(From), "of the same size");
    To to;
    __builtin_memcpy(&to, &from, sizeof to);
    return to;
}
#define __int_as_float(x)       simcuda_bits<float>((int)(x))
#define __float_as_int(x)       simcuda_bits<int>((float)(x))
#define __longlong_as_double(x) simcuda_bits<double>((long long)(x))
#define __double_as_longlong(x) simcuda_bits<long long>((double)(x))

template <class T, class V> static T atomicAdd(T *at, V value)
{
    const T old = *at;
    *at = old + value;
    return old;
}
template <class T, class V> static T atomicExch(T *at, V value)
{
    const T old = *at;
    *at = value;
    return old;
}
template <class T, class C, class V> static T atomicCAS(T *at, C compare, V value)
{
    const T old = *at;
    if (old == (T)compare)
        *at = value;
    return old;
}

/* ---- the description of a kernel, which compiled.h declares */

template <size_t... I> struct simcuda_numbers {
};
template <size_t N, size_t... I> struct simcuda_count : simcuda_count<N - 1, N - 1, I...> {
};
template <size_t... I> struct simcuda_count<0, I...> {
    typedef simcuda_numbers<I...> type;
};

template <class F> struct simcuda_kernel;
template <class... P> struct simcuda_kernel<void(P...)> {
    size_t param_count;
    size_t param_bytes[48];
    void (*run)(void *const *, const unsigned *, const unsigned *);

    template <void (*kernel)(P...), size_t... I> static void call(void *const *params, simcuda_numbers<I...>)
    {
        kernel(*(P *)params[I]...);
    }

    template <void (*kernel)(P...)>
    static void launch(void *const *params, const unsigned *grid, const unsigned *block)
    {
        gridDim = { grid[0], grid[1], grid[2] };
        blockDim = { block[0], block[1], block[2] };
        for (blockIdx.z = 0; blockIdx.z < grid[2]; blockIdx.z++)
            for (blockIdx.y = 0; blockIdx.y < grid[1]; blockIdx.y++)
                for (blockIdx.x = 0; blockIdx.x < grid[0]; blockIdx.x++)
                    for (threadIdx.z = 0; threadIdx.z < block[2]; threadIdx.z++)
                        for (threadIdx.y = 0; threadIdx.y < block[1]; threadIdx.y++)
                            for (threadIdx.x = 0; threadIdx.x < block[0]; threadIdx.x++)
                                call<kernel>(params, typename simcuda_count<sizeof...(P)>::type());
    }

    template <void (*kernel)(P...)> static constexpr simcuda_kernel of()
    {
        static_assert(sizeof...(P) > 0 && sizeof...(P) <= 48, "parameters");
        return { sizeof...(P), { sizeof(P)... }, launch<kernel> };
    }
};

#define SIMCUDA_KERNEL(name)                                                                                 \
    extern "C" __attribute__((visibility("default"))) const simcuda_kernel<decltype(name)>                   \
        simcuda_kernel_##name = simcuda_kernel<decltype(name)>::of<name>();
