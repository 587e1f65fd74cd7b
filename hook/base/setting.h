/* The settings of the hook: the last visit's (proto/visit.h), or else variables of the environment. */
#ifndef CT_SETTING_H
#define CT_SETTING_H

struct ct_visit;

/* The value of the variable; NULL if it is not set. Variables that a visit does not have are always the
 * environment's. */
const char *ct_setting(const char *variable);
/* Takes the settings of a visit. No other thread may call ct_setting() then. */
void ct_setting_take(const struct ct_visit *visit);

#endif
