/* Measures the cost of an ioctl on the driver's device, by rounds of ioctls on the file nvidiactl in the
 * folder $CUDATRACE_DEVICES. Prints `ready`. For each line read from standard input, the program runs a
 * round, and prints the nanoseconds per call in the round's median batch. The line `other` starts a round of
 * another system call, getppid(). Several processes, which are bare or run under strace, the hook or a probe,
 * take turns running a round. */
#include "batches.h"
#include "clock.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

enum { BATCHES = 40, CALLS = 25 };

/* The request RM_CONTROL with its 32-byte struct (NVOS54), which contains the command
 * NV2080_CTRL_CMD_GPU_GET_INFO_V2. */
#define RM_CONTROL _IOC(_IOC_READ | _IOC_WRITE, 'F', 0x2a, 32)
enum { COMMAND_WORD = 2, COMMAND = 0x20800102 };

int main(void)
{
    char path[4096];
    const char *folder = getenv("CUDATRACE_DEVICES");
    snprintf(path, sizeof(path), "%s/nvidiactl", folder ? folder : "/dev");
    const int fd = open(path, O_RDWR | O_CLOEXEC | O_NOCTTY);
    if (fd < 0) {
        perror(path);
        return EXIT_FAILURE;
    }
    stay_on_processor();
    puts("ready");
    fflush(stdout);
    char line[16];
    while (fgets(line, sizeof(line), stdin)) {
        const int is_other = strcmp(line, "other\n") == 0;
        uint64_t batch_ns[BATCHES];
        uint32_t control[8] = { [COMMAND_WORD] = COMMAND };
        for (int b = 0; b < BATCHES; b++) {
            const uint64_t start_ns = ct_monotonic_ns();
            for (int i = 0; i < CALLS && is_other; i++)
                getppid();
            for (int i = 0; i < CALLS && !is_other; i++)
                ioctl(fd, RM_CONTROL, control);
            batch_ns[b] = ct_monotonic_ns() - start_ns;
        }
        qsort(batch_ns, BATCHES, sizeof(batch_ns[0]), by_value);
        printf("%.1f\n", (double)batch_ns[BATCHES / 2] / CALLS);
        fflush(stdout);
    }
    return EXIT_SUCCESS;
}
