/* Tests how kernel names are shortened, with real names and with strings that are not names. */
#include "kernel_name.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void check(const char *demangled, const char *wanted)
{
    size_t length;
    const char *name = ct_kernel_name_short(demangled, &length);
    if (length == strlen(wanted) && memcmp(name, wanted, length) == 0)
        return;
    fprintf(stderr, "'%s': got '%.*s', expected '%s'\n", demangled, (int)length, name, wanted);
    exit(EXIT_FAILURE);
}

int main(void)
{
    check("alpha", "alpha");
    check("beta(float*, int)", "beta");
    check("gamma::delta<float>()", "delta");
    check("void at::native::vectorized_elementwise_kernel<4, at::native::CUDAFunctor_add<float>, "
          "std::array<char*, 3ul> >(int, at::native::CUDAFunctor_add<float>, std::array<char*, 3ul>)",
          "vectorized_elementwise_kernel");
    check("void at::native::(anonymous namespace)::softmax<float, (int)32, true>(float*)", "softmax");
    check("void cutlass::Kernel2<cutlass_80_tensorop_s1688gemm<(3 > 2), 1> >(Params)", "Kernel2");
    check("void cub::Policy<float>::run<int>(int)", "run");
    check("void f<at::native::copy(at::Tensor&)::{lambda()#1}::operator()() const::{lambda(float)#1}>(int)",
          "f");
    check("ncclDevKernel_AllReduce_Sum_f32_RING_LL(ncclDevKernelArgsStorage<4096ul>)",
          "ncclDevKernel_AllReduce_Sum_f32_RING_LL");
    check("", "");
    check("(", "(");
    check("<<<", "<<<");
    check("a::", "a::");
    check("void f<(", "f");
    return 0;
}
