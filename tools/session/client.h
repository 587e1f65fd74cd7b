/* The daemon's command socket (collector/loop/command.h). */
#ifndef CT_CLIENT_H
#define CT_CLIENT_H

#include "where.h"

enum { CT_ANSWER_BYTES = 4800 }; /* room for the longest line of an answer: a path and a sentence */

/* A connection to the session's daemon, or -1 when none serves it: this user's own first, then the system's,
 * as the hook looks. */
int ct_client_connect(const struct ct_where *where);
/* To the user's own alone. */
int ct_client_connect_own(const struct ct_where *where);
/* The same by its socket's path; -1, too, when it is not that user who listens there. */
int ct_client_connect_path(const char *path, uint32_t uid);

enum ct_answer {
    CT_ANSWER_NONE, /* the daemon went away, or is stopped: ct_client_why() */
    CT_ANSWER_OK,
    CT_ANSWER_ERROR,   /* it tried; a sentence says what became of it */
    CT_ANSWER_REFUSED, /* it did nothing: a sentence says who may ask that */
};
/* Sends a line and reads one; what that says behind the word for its kind goes to `text`. A daemon that is
 * busy is waited for, `patience_s` seconds, 0 being as long as it takes. */
enum ct_answer ct_client_ask(int fd, const char *line, char text[CT_ANSWER_BYTES], unsigned patience_s);
/* Its status, lines to be freed; NULL when it does not come whole. `patience_s`: after how many seconds one
 * that is busy is not waited for any more, 0 for never. */
char *ct_client_status(int fd, unsigned patience_s);
/* The value behind a word of it; false, and "", where it has none such. */
bool ct_client_status_word(const char *status, const char *word, char *value, size_t bytes);
/* The number behind it; -1 where it has none such. */
long long ct_client_status_number(const char *status, const char *word);
/* Waits until the daemon has let go of the connection: until it is gone, behind `stop`. */
void ct_client_await_end(int fd);
/* Why a daemon did not answer, to go behind "the daemon"; valid until the next call. */
const char *ct_client_why(int fd);
/* Returns whether a signal or a debugger has stopped the daemon's process. */
bool ct_client_is_stopped(int fd);

#endif
