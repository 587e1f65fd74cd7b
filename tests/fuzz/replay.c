/* Runs a fuzz target on files or on standard input. The program is used to run the corpus and to reproduce
 * crashes. Fuzzers that start a new process for each input also use it. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

int LLVMFuzzerTestOneInput(const uint8_t *input, size_t size);

static int run(FILE *file, const char *name)
{
    enum { BYTES_MAX = 1 << 20 };
    uint8_t *input = malloc(BYTES_MAX);
    if (!input || !file) {
        perror(name);
        return EXIT_FAILURE;
    }
    const size_t size = fread(input, 1, BYTES_MAX, file);
    fclose(file);
    /* Print the file's name first, so that if the target crashes, the output shows which file caused the
     * crash. */
    printf("%s\n", name);
    fflush(stdout);
    LLVMFuzzerTestOneInput(input, size);
    free(input);
    return EXIT_SUCCESS;
}

int main(int argc, char **argv)
{
    int status = EXIT_SUCCESS;
    if (argc == 1)
        return run(stdin, "standard input");
    for (int i = 1; i < argc; i++)
        status |= run(fopen(argv[i], "re"), argv[i]);
    return status;
}
