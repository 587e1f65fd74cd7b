/* Fuzzes the replay. The first byte of the input is even: the rest is a recording, or JSON lines; odd: it is
 * frames, each of which is two bytes that say how many words of eight bytes it has, and those, which get a
 * header and checksums here, so that what is behind them is read. Whatever it says, the database must hold:
 * sums and rows agree, and no number is negative. */
#include "batch.h"
#include "dump.h"
#include "replay_source.h"
#include "segment.h"
#include "session_names.h"

#include <fcntl.h>
#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { BATCHES_MAX = 1000 };

static char folder[80], template[96], database[96], recording[96];

static void fail(const char *what, const char *more)
{
    fprintf(stderr, "replay: %s: %s\n", what, more);
    abort();
}

/* Each counts what must not be. */
static const char *const wrong[] = {
    "SELECT count(*) FROM totals WHERE calls <> stored + lost + skipped",
    "SELECT (SELECT ifnull(sum(stored), 0) FROM totals) - (SELECT count(*) FROM call)",
    "SELECT count(*) FROM call WHERE end_ns <= 0 OR duration_ns < 0 OR duration_ns > end_ns OR bytes < 0",
    ("SELECT count(*) FROM totals WHERE min(calls, stored, lost, skipped, total_ns, bytes, failed) < 0 OR "
     "typeof(calls) <> 'integer' OR typeof(total_ns) <> 'integer' OR typeof(bytes) <> 'integer'"),
    "SELECT count(*) FROM losses WHERE min(calls, first_ns, last_ns) < 0",
    "SELECT count(*) FROM open_call WHERE start_ns < 0",
    "SELECT count(*) FROM launch LEFT JOIN call ON end_ns = call_id WHERE end_ns IS NULL",
};

static void check_database(void)
{
    sqlite3 *reader;
    if (sqlite3_open_v2(database, &reader, SQLITE_OPEN_READONLY, NULL) != SQLITE_OK)
        fail(database, "cannot be read");
    for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
        sqlite3_stmt *statement = NULL;
        if (sqlite3_prepare_v2(reader, wrong[i], -1, &statement, NULL) != SQLITE_OK ||
            sqlite3_step(statement) != SQLITE_ROW || sqlite3_column_int64(statement, 0) != 0)
            fail("not 0", wrong[i]);
        sqlite3_finalize(statement);
    }
    sqlite3_close(reader);
}

static void write_file(FILE *to, const void *data, size_t bytes)
{
    if (bytes > 0 && fwrite(data, bytes, 1, to) != 1)
        fail(recording, "cannot be written");
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

static void clean_up(void)
{
    unlink(template);
    unlink(database);
    unlink(recording);
    rmdir(folder);
}

static void initialise(void)
{
    char message[CT_MESSAGE_BYTES];
    struct ct_store *store;
    const char *const parent = getenv("TMPDIR");
    snprintf(folder, sizeof(folder), "%s/ct-fuzz.XXXXXX",
             parent && strlen(parent) < 60 ? parent : CT_SHM_DIR);
    if (!mkdtemp(folder))
        fail(folder, "cannot be made");
    atexit(clean_up);
    snprintf(template, sizeof(template), "%s/template.db", folder);
    snprintf(database, sizeof(database), "%s/fuzz.db", folder);
    snprintf(recording, sizeof(recording), "%s/fuzz.rec", folder);
    if (ct_store_open_of(template, &(struct ct_origin){ "fuzz", "", "" }, &store, message) != 0)
        fail("the database", message);
    ct_store_close(store);
}

static void store(struct ct_source *source, const struct ct_origin *origin)
{
    char message[CT_MESSAGE_BYTES];
    struct ct_collection collection = { .sources = source };
    struct ct_report report = { .backlog = true };
    if (ct_store_open_of(database, origin, &collection.ledger.store, message) != 0)
        fail("the database", message);
    for (int i = 0; report.backlog; i++) {
        report = (struct ct_report){ 0 };
        ct_batch_make(&collection, &(struct ct_request){ 0 }, &report);
        if (report.error[0])
            fail("a batch failed", report.error);
        if (i == BATCHES_MAX)
            fail("no end", "backlog");
    }
    ct_ledger_finish(&collection.ledger);
    ct_store_close(collection.ledger.store);
}

/* Nothing happens at test points. */
void ct_test_point(const char *name)
{
    (void)name;
}

int LLVMFuzzerTestOneInput(const uint8_t *input, size_t size);
int LLVMFuzzerTestOneInput(const uint8_t *input, size_t size)
{
    char message[CT_MESSAGE_BYTES], copy[256];
    struct ct_source *source;
    if (!folder[0])
        initialise();
    FILE *to = fopen(recording, "we");
    if (!to || size == 0)
        return to ? fclose(to) : 0;
    if (input[0] % 2 == 0)
        write_file(to, input + 1, size - 1);
    else
        write_frames(to, input + 1, size - 1);
    if (fclose(to) != 0)
        fail(recording, "cannot be written");
    snprintf(copy, sizeof(copy), "cp %s %s", template, database);
    if (ct_replay_files.open(recording, &source, message) != 0)
        return 0;
    if (system(copy) != 0)
        fail(copy, "failed");
    store(source, &(struct ct_origin){ "fuzz", "", "" });
    ct_replay_files.close(source);
    check_database();
    return 0;
}
