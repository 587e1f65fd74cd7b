/* Says where a trace was recorded: in which session, since which boot, on which machine. */
#ifndef CT_ORIGIN_H
#define CT_ORIGIN_H

enum { CT_ORIGIN_BYTES = 64, CT_ORIGIN_HOST_BYTES = 256 };

struct ct_origin {
    char session[CT_ORIGIN_BYTES];
    char boot_id[CT_ORIGIN_BYTES];
    char host[CT_ORIGIN_HOST_BYTES];
};

/* Here and now; without /proc, all boots are one. 0 or -errno. */
int ct_origin_here(struct ct_origin *origin, const char *session);

#endif
