/* The hook's settings, from the last visit (proto/visit.h) or, without a visit, from environment
 * variables. */
#ifndef CT_SETTING_H
#define CT_SETTING_H

struct ct_visit;

/* Returns a variable's value, or NULL if it is not set. Variables that are not part of a visit are always
 * read from the environment. */
const char *ct_setting(const char *variable);
/* Returns the path of libcudatrace-gpu.so as given by a visit, or NULL. */
const char *ct_setting_gpu_library(void);
/* Adopts a visit's settings. No other thread may call ct_setting() during this call. */
void ct_setting_take(const struct ct_visit *visit);

#endif
