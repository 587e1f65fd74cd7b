/* A client for the daemon's command socket (collector/loop/command.h). */
#ifndef CT_CLIENT_H
#define CT_CLIENT_H

#include "session_choice.h"

enum { CT_ANSWER_BYTES = 4800 }; /* room for the longest line of an answer: a path and a sentence */

/* Connects to the session's daemon. Like the hook, it tries this user's own daemon first, then the system's.
 * Returns -1 if no daemon serves the session. */
int ct_client_connect(const struct ct_session_choice *choice);
/* Connects only to the user's own daemon. */
int ct_client_connect_own(const struct ct_session_choice *choice);
/* Connects to the socket at that path. Returns -1 if that fails, or if a different user listens there. */
int ct_client_connect_path(const char *path, uint32_t uid);

enum ct_answer {
    CT_ANSWER_NONE, /* the daemon has exited or is stopped: ct_client_why() */
    CT_ANSWER_OK,
    CT_ANSWER_ERROR,   /* the request failed; a sentence gives the reason */
    CT_ANSWER_REFUSED, /* nothing was done; a sentence names the users who have the right */
};
/* Sends a line and reads the answer. `text` gets the part of the answer after the word for its kind. Waits
 * for a busy daemon for `patience_s` seconds (0: without limit). */
enum ct_answer ct_client_ask(int fd, const char *line, char text[CT_ANSWER_BYTES], unsigned patience_s);
/* Returns the daemon's status as lines, which the caller frees. Returns NULL if the status does not arrive
 * completely. Waits for a busy daemon for `patience_s` seconds (0: without limit). */
char *ct_client_status(int fd, unsigned patience_s);
/* Gets the value after a word of the status. Returns false, with an empty value, if there is no such word. */
bool ct_client_status_word(const char *status, const char *word, char *value, size_t bytes);
/* Returns the number after a word of the status, or -1 if there is none. */
long long ct_client_status_number(const char *status, const char *word);
/* Waits until the daemon has closed the connection. After `stop`, the daemon closes it when it exits. */
void ct_client_await_end(int fd);
/* Returns why a daemon did not answer, a phrase to follow "the daemon", valid until the next call. */
const char *ct_client_why(int fd);
/* Returns whether a signal or a debugger has stopped the daemon's process. */
bool ct_client_is_stopped(int fd);

#endif
