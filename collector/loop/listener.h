/* Accepts connections on a socket. If no descriptor is left for a connection, closes the connection, instead
 * of being woken for it without end. */
#ifndef CT_LISTENER_H
#define CT_LISTENER_H

#include <uv.h>

struct ct_listener;

/* Listens on the bound and non-blocking socket `fd`, and closes it at the end, also after an error. Calls
 * `on_connection` with each connection's descriptor, which the callee then owns. Returns 0 or a libuv error.
 */
int ct_listener_create(uv_loop_t *loop, int fd, void (*on_connection)(int fd, void *data), void *data,
                       struct ct_listener **result);
/* Makes no further calls of `on_connection`. Must not be called by `on_connection`. */
void ct_listener_destroy(struct ct_listener *listener);

#endif
