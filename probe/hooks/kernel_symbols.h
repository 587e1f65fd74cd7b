/* The functions of the kernel and of its modules, and whether the kernel permits kprobes on them. */
#ifndef CT_PROBE_KERNEL_SYMBOLS_H
#define CT_PROBE_KERNEL_SYMBOLS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct ct_kernel_symbol {
    const char *name;   /* with the compiler's suffixes */
    size_t length;      /* of the name without these suffixes */
    const char *module; /* NULL: the kernel */
    uint64_t address;   /* 0 without CAP_SYSLOG */
};

/* Calls `take` for each function, in the kernel's order, until `take` returns false. Leaves out symbols that
 * the compiler generates for its own use. Returns 0 or -errno: -ENOMEM if `take` has returned false. */
int ct_kernel_symbols_each(bool (*take)(const struct ct_kernel_symbol *symbol, void *data), void *data);

/* A sorted list of names. */
struct ct_kernel_names {
    char **name;
    size_t count, room;
    int error; /* why the list could not be read, as -errno; 0: it was read */
};

/* Lists from the kernel, which show where it does not permit kprobes. */
struct ct_kernel_bars {
    struct ct_kernel_names forbidden; /* kprobes would harm the kernel there */
    struct ct_kernel_names traceable; /* functions with a call for ftrace at the entry */
};

/* Reads the lists, which requires root. The caller must free them even if a list could not be read. */
void ct_kernel_bars_read(struct ct_kernel_bars *bars);
void ct_kernel_bars_free(struct ct_kernel_bars *bars);
/* Returns the reason why the kernel does not permit a kprobe on the function, or NULL if it does. */
const char *ct_kernel_bars_why(const struct ct_kernel_bars *bars, const char *symbol);
bool ct_kernel_names_have(const struct ct_kernel_names *names, const char *name);

/* Returns whether the kernel supports kprobes as perf events (CONFIG_KPROBE_EVENTS). */
bool ct_kernel_has_kprobes(void);

#endif
