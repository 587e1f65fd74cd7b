/* A client for the daemon's command socket (collector/loop/command.h). */
#ifndef CT_CLIENT_H
#define CT_CLIENT_H

#include "session_choice.h"

enum {
    CT_ANSWER_BYTES = 4800, /* large enough for the longest answer, a path and a sentence */
    CT_ANSWER_S = 10,       /* limit on waiting for an answer that a daemon gives at once */
};

/* Connects to the session's daemon. Like the hook, tries this user's own daemon first, and then the system
 * daemon. Returns -1 if no daemon serves the session. */
int ct_client_connect(const struct ct_session_choice *choice);
/* Connects only to the user's own daemon. */
int ct_client_connect_own(const struct ct_session_choice *choice);
/* Connects to the socket at `path`. Returns -1 if connecting fails, or if a user other than `uid` is
 * listening. */
int ct_client_connect_path(const char *path, uint32_t uid);

enum ct_answer {
    CT_ANSWER_NONE, /* the daemon has exited, is stopped or does not respond; see ct_client_why() */
    CT_ANSWER_OK,
    CT_ANSWER_ERROR,   /* the request failed, and `text` gives the reason */
    CT_ANSWER_REFUSED, /* permission denied, and `text` names the users who have permission */
};
/* Sends a request line and reads the answer. Stores the answer, without its first word, in `text`. Waits up
 * to `patience_s` seconds for a busy daemon (0: no limit, if the daemon responds within CT_ANSWER_S). */
enum ct_answer ct_client_ask(int fd, const char *line, char text[CT_ANSWER_BYTES], unsigned patience_s);
/* Returns the daemon's status as lines of text, which the caller frees, or NULL if the status is not received
 * completely. Waits up to `patience_s` seconds for a busy daemon. */
char *ct_client_status(int fd, unsigned patience_s);
/* Stores the value that follows a keyword in the status. Returns false and an empty value if the keyword is
 * missing. */
bool ct_client_status_word(const char *status, const char *word, char *value, size_t bytes);
/* Returns the number that follows a keyword in the status, or -1 if the keyword is missing. */
long long ct_client_status_number(const char *status, const char *word);
/* Waits until the daemon closes the connection, which it does when it exits after `stop`. */
void ct_client_await_end(int fd);
/* Returns why the daemon did not answer, as a phrase to follow "the daemon". The phrase is valid until the
 * next call. */
const char *ct_client_why(int fd);
/* Returns whether a signal or a debugger has stopped the daemon's process. */
bool ct_client_is_stopped(int fd);
/* Returns whether the daemon still has the connection, although it has not answered. */
bool ct_client_is_silent(int fd);

#endif
