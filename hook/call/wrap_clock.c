/* The wrappers of wrap.c for lanes whose clock is CLOCK_MONOTONIC. */
#define CT_HOT_IS_COUNTER(self) false
#define CT_WRAP(name)           ct_wrap_clock_##name
#include "wrap.c"
