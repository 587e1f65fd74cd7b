/* Tests the names of the files that belong to a session. A name that the code writes must be parsed
 * correctly, and no other name must be accepted. */
#include "session_names.h"
#include "unrecorded_report.h"

#include <stdio.h>
#include <stdlib.h>

static int failures;

static void ensure(bool fine, const char *what, const char *name)
{
    if (fine)
        return;
    fprintf(stderr, "%s: %s\n", what, name);
    failures++;
}

static void check(const char *path, struct ct_session_file wanted)
{
    struct ct_session_file file;
    const char *name = strrchr(path, '/') + 1;
    ensure(ct_session_file_parse(name, &file), "is one of ours", name);
    ensure(strcmp(file.name, name) == 0 && file.kind == wanted.kind && file.uid == wanted.uid &&
               strcmp(file.session, wanted.session) == 0 && file.pid == wanted.pid &&
               file.created_ns == wanted.created_ns && file.system == wanted.system,
           "says something else", name);
}

static const char *const strangers[] = {
    "",
    "cudatrace",
    "cudatrace.",
    "cudatrace.0",
    "cudatrace.0.",
    "cudatrace..x",
    "cudatrace.-1.x",
    "cudatrace.+1.x",
    "cudatrace.01.x",
    "cudatrace.4294967296.x",
    "cudatrace.18446744073709551616.x",
    "xcudatrace.0.x",
    "cudatrace.0.x.",
    "cudatrace.0.x y",
    "cudatrace.0.x.sock2",
    "cudatrace.0.x.sock.1",
    "cudatrace.0.x.system",
    "cudatrace.0.x.system.",
    "cudatrace.0.x.system.sock",
    "cudatrace.0.x.12",
    "cudatrace.0.x.12.",
    "cudatrace.0.x.12.1g",
    "cudatrace.0.x.12.1A",
    "cudatrace.0.x.12.01",
    "cudatrace.0.x.12.1.2",
    "cudatrace.0.x.12.10000000000000000",
    "cudatrace.0.x.0.1",
    "cudatrace.0.x.012.1",
    "cudatrace.0.x.-1.1",
    "cudatrace.0.x.2147483648.1",
    "cudatrace.0.x.18446744073709551617.1",
    "cudatrace.0.1234567890123456789012345678901234567890123456789",
};

/* Both ends of the pair belong to this process's user. */
static void check_daemons(void)
{
    int ends[2];
    const uint32_t own = ct_real_euid();
    char mapped[64], unmapped[64];
    snprintf(mapped, sizeof(mapped), "%10u %10u %10u\n", own, 70000U, 1U);
    snprintf(unmapped, sizeof(unmapped), "%10u %10u %10u\n", own + 1, 70000U, 1U);
    ensure(socketpair(AF_UNIX, SOCK_SEQPACKET, 0, ends) == 0, "a pair", "socketpair()");
    const struct {
        const char *map;
        uint32_t receiver;
        bool is_daemon;
    } peers[] = {
        { "         0          0 4294967295\n", own, true },
        { "         0          0 4294967295\n", own + 1, own == 0 },
        { mapped, 70000, true },
        { mapped, 70001, false }, /* not even if it is root in the namespace */
        { unmapped, own, true },
        { "", own, true },
    };
    for (size_t i = 0; i < sizeof(peers) / sizeof(peers[0]); i++)
        ensure(ct_unrecorded_is_daemon(ends[0], peers[i].map, peers[i].receiver) == peers[i].is_daemon,
               "the peer", peers[i].map);
    ensure(!ct_unrecorded_is_daemon(-1, "", own), "the peer", "of nothing");
    close(ends[0]);
    close(ends[1]);
}

int main(void)
{
    static const char *const sessions[] = { "default", "a",
                                            "x-1_y",   "sock",
                                            "system",  "bell",
                                            "probe",   "123456789012345678901234567890123456789012345678" };
    static const uint32_t uids[] = { 0, 1000, UINT32_MAX };
    static const uint64_t times[] = { 0, 10, UINT64_MAX };
    char path[CT_NAME_BYTES];
    for (size_t i = 0; i < sizeof(sessions) / sizeof(sessions[0]); i++) {
        for (size_t k = 0; k < 3; k++) {
            struct ct_session_file wanted = { .uid = uids[k] };
            strcpy(wanted.session, sessions[i]);
            ct_session_control_path(path, CT_SHM_DIR, uids[k], sessions[i]);
            wanted.kind = CT_FILE_CONTROL;
            check(path, wanted);
            ct_session_socket_path(path, CT_SHM_DIR, uids[k], sessions[i]);
            wanted.kind = CT_FILE_SOCKET;
            check(path, wanted);
            ct_session_bell_path(path, CT_SHM_DIR, uids[k], sessions[i]);
            wanted.kind = CT_FILE_BELL;
            check(path, wanted);
            ct_session_probe_path(path, CT_SHM_DIR, uids[k], sessions[i]);
            wanted.kind = CT_FILE_PROBE;
            check(path, wanted);
            wanted.kind = CT_FILE_SEGMENT;
            for (int system = 0; system < 2; system++) {
                wanted.system = system;
                wanted.pid = system ? 1 : INT32_MAX;
                wanted.created_ns = times[k];
                ct_session_segment_path(path, CT_SHM_DIR, uids[k], sessions[i], system, wanted.pid, times[k]);
                check(path, wanted);
            }
        }
    }
    struct ct_session_file file;
    for (size_t i = 0; i < sizeof(strangers) / sizeof(strangers[0]); i++)
        ensure(!ct_session_file_parse(strangers[i], &file), "is none of ours", strangers[i]);
    char longest[2 * CT_NAME_BYTES];
    memset(longest, 'x', sizeof(longest));
    longest[sizeof(longest) - 1] = '\0';
    memcpy(longest, "cudatrace.0.", 12);
    ensure(!ct_session_file_parse(longest, &file), "is none of ours", "a name that is too long");
    static const struct {
        const char *map;
        uint32_t uid;
        bool is_shared;
    } users[] = {
        { "         0          0 4294967295\n", 65534, false }, /* the first namespace */
        { "         0          0 4294967295\n", 0, false },
        { "         0       1000          1\n", 0, false },
        { "         0       1000          1\n", 65534, true },
        { "     65534       1000          1\n", 65534, true }, /* unshare --map-user=65534 */
        { "", 65534, true },
        { "", 1000, false }, /* no /proc */
    };
    for (size_t i = 0; i < sizeof(users) / sizeof(users[0]); i++)
        ensure(ct_session_uid_is_shared(users[i].map, users[i].uid) == users[i].is_shared, "the map",
               users[i].map);
    check_daemons();
    return failures ? EXIT_FAILURE : EXIT_SUCCESS;
}
