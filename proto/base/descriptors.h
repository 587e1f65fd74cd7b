/* How many file descriptors a daemon needs. */
#ifndef CT_DESCRIPTORS_H
#define CT_DESCRIPTORS_H

/* The lowest limit on open files (`ulimit -n`) with which a daemon starts. A daemon keeps up to 24
 * descriptors open, including a recording and the socket of a service manager. The others are for a
 * connection, the segment of a process, and files that are read briefly. */
enum { CT_DAEMON_DESCRIPTORS_MIN = 32 };

#endif
