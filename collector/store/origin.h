/* The origin of a trace: its session, boot and machine. */
#ifndef CT_ORIGIN_H
#define CT_ORIGIN_H

enum { CT_ORIGIN_BYTES = 64, CT_ORIGIN_HOST_BYTES = 256 };

struct ct_origin {
    char session[CT_ORIGIN_BYTES];
    char boot_id[CT_ORIGIN_BYTES];
    char host[CT_ORIGIN_HOST_BYTES];
};

/* Fills in the origin of a trace that is recorded on this machine. If /proc is missing, boot_id is empty, and
 * boots cannot be distinguished. Returns 0 or -errno. */
int ct_origin_here(struct ct_origin *origin, const char *session);

#endif
