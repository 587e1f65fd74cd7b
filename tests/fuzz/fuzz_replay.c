/* Fuzzes the replay. If the input's first byte is even, the remaining bytes are a recording or JSON lines. If
 * the first byte is odd, the remaining bytes are frames. Each frame consists of a two-byte number of words,
 * and of the words themselves, which are 8 bytes long. The target adds a correct header and checksums, so
 * that the replay accepts the frames. For any input, the sums in the database must match its rows, and no
 * number may be negative. */
#include "batch.h"
#include "dump.h"
#include "fuzz_store.h"
#include "replay_source.h"
#include "segment.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

enum { BATCHES_MAX = 1000 };

static char recording[96];

static void write_file(FILE *to, const void *data, size_t bytes)
{
    if (bytes > 0 && fwrite(data, bytes, 1, to) != 1)
        fuzz_fail(recording, "cannot be written");
}

static void write_frames(FILE *to, const uint8_t *input, size_t size)
{
    const struct ct_dump_header header = { .magic = CT_DUMP_MAGIC,
                                           .version = CT_DUMP_VERSION,
                                           .record_version = CT_PROTO_VERSION };
    uint16_t words;
    write_file(to, &header, sizeof(header));
    for (size_t at = 0; size - at >= sizeof(words);) {
        memcpy(&words, input + at, sizeof(words));
        at += sizeof(words);
        const size_t bytes = words * 8U < size - at ? words * 8U : (size - at) & ~(size_t)7;
        const struct ct_dump_frame frame = { .magic = CT_DUMP_FRAME_MAGIC,
                                             .bytes = bytes,
                                             .hash = ct_dump_hash(input + at, bytes),
                                             .until_ns = at * 1000 };
        write_file(to, &frame, sizeof(frame));
        write_file(to, input + at, bytes);
        at += bytes;
    }
}

static void store(struct ct_source *source)
{
    struct ct_collection collection = { .sources = source };
    struct ct_report report = { .backlog = true };
    collection.ledger.store = fuzz_store_open();
    for (int i = 0; report.backlog; i++) {
        report = (struct ct_report){ 0 };
        ct_batch_make(&collection, &(struct ct_request){ 0 }, &report);
        if (report.error[0])
            fuzz_fail("a batch failed", report.error);
        if (i == BATCHES_MAX)
            fuzz_fail("no end", "backlog");
    }
    fuzz_store_check();
    ct_ledger_finish(&collection.ledger);
    fuzz_store_close(collection.ledger.store);
}

/* The collector's test points have no effect in this target. */
void ct_test_point(const char *name)
{
    (void)name;
}

int LLVMFuzzerTestOneInput(const uint8_t *input, size_t size);
int LLVMFuzzerTestOneInput(const uint8_t *input, size_t size)
{
    char message[CT_MESSAGE_BYTES];
    struct ct_source *source;
    snprintf(recording, sizeof(recording), "%s/fuzz.rec", fuzz_folder());
    if (size == 0)
        return 0;
    FILE *to = fopen(recording, "we");
    if (!to)
        fuzz_fail(recording, "cannot be made");
    if (input[0] % 2 == 0)
        write_file(to, input + 1, size - 1);
    else
        write_frames(to, input + 1, size - 1);
    if (fclose(to) != 0)
        fuzz_fail(recording, "cannot be written");
    if (ct_replay_files.open(recording, &source, message) == 0) {
        store(source);
        ct_replay_files.close(source);
    }
    unlink(recording);
    return 0;
}
