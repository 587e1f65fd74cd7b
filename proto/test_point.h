/* Test points are named places where a test can kill or stop the process. Ordinary builds contain none. For
 * tests/faults, the hook and the daemon are compiled with CT_TEST_POINTS. The ct_test_points section contains
 * the names, so that a test can try all of them.
 *
 * A test point's name consists of the file and the event that has just happened or is about to happen, as in
 * "thread.taken". Environment variables select the actions (tests/faults/test_point.c). */
#ifndef CT_PROTO_TEST_POINT_H
#define CT_PROTO_TEST_POINT_H

#ifdef CT_TEST_POINTS
#pragma GCC visibility push(hidden)
void ct_test_point(const char *name);
#pragma GCC visibility pop
#define CT_TEST_POINT(name)                                                                                  \
    do {                                                                                                     \
        static const char here[] __attribute__((section("ct_test_points"), used, aligned(1))) = name;        \
        ct_test_point(here);                                                                                 \
    } while (0)
#else
#define CT_TEST_POINT(name) ((void)0)
#endif

#endif
