#include "file_sources.h"

#include "replay_source.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

const struct ct_file_source *const ct_file_sources[] = {
    &ct_replay_files,
    NULL,
};

/* Checks, before any file is read, that the database does not exist yet and can be created. */
static int check_database(const char *database, char *message)
{
    struct stat status;
    if (lstat(database, &status) == 0 && !(S_ISREG(status.st_mode) && status.st_size == 0)) {
        snprintf(
            message, CT_MESSAGE_BYTES,
            "'%s' already exists, and files are stored only in a new database: name another file with --db",
            database);
        return -1;
    }
    const char *name = strrchr(database, '/');
    char folder[4096];
    snprintf(folder, sizeof(folder), "%.*s", name ? (int)(name - database + 1) : 1, name ? database : ".");
    if (lstat(database, &status) == 0 || (errno == ENOENT && access(folder, W_OK | X_OK) == 0))
        return 0;
    snprintf(message, CT_MESSAGE_BYTES, "cannot create database '%s': %s", database, strerror(errno));
    return -1;
}

/* Refuses a source that begins with the same calls as an earlier source. The newest source is first in the
 * list. */
static int refuse_twin(const struct ct_file_source *kind, char *const *paths, size_t count,
                       const struct ct_source *source, char *message)
{
    const struct ct_source *earlier = source->next;
    for (size_t i = count; earlier; earlier = earlier->next) {
        i--;
        if (kind->is_same(source, earlier))
            return ct_message(message,
                              "'%s' begins with the same calls as '%s': specify only one of the two files",
                              paths[count], paths[i]);
    }
    return 0;
}

static int open_all(const struct ct_file_source *kind, char *const *paths, size_t count,
                    struct ct_source **sources, char *message)
{
    for (size_t i = 0; i < count; i++) {
        struct ct_source *source;
        if (kind->open(paths[i], &source, message) != 0)
            return -1;
        const struct ct_source *last = *sources;
        source->next = *sources;
        *sources = source;
        if (last && strcmp(kind->origin(source)->boot_id, kind->origin(last)->boot_id) != 0) {
            snprintf(message, CT_MESSAGE_BYTES,
                     "'%s' was recorded on another machine, or after another boot, than '%s': store each "
                     "file in a database of its own",
                     paths[i], paths[i - 1]);
            return -1;
        }
        if (refuse_twin(kind, paths, i, source, message) != 0)
            return -1;
    }
    return 0;
}

/* Makes batches until the sources have run out of calls. */
static int store_all(struct ct_collection *collection, char *message)
{
    struct ct_report report = { .backlog = true };
    while (report.backlog) {
        report = (struct ct_report){ .rows_total = report.rows_total };
        ct_batch_make(collection, &(struct ct_request){ 0 }, &report);
        if (report.error[0]) {
            snprintf(message, CT_MESSAGE_BYTES, "%s", report.error);
            return -1;
        }
        if (report.go_on)
            ct_batch_go_on(collection, &report);
    }
    return 0;
}

/* Reports everything in the file that could not be stored. Returns whether there was anything. */
static bool report_problems(const struct ct_file_source *kind, const struct ct_source *source,
                            void (*say)(const char *sentence))
{
    char message[CT_MESSAGE_BYTES];
    size_t count = 0;
    while (kind->problem(source, count, message)) {
        say(message);
        count++;
    }
    return count > 0;
}

int ct_file_sources_store(const struct ct_file_source *kind, char *const *paths, size_t count,
                          const char *database, const struct ct_bounds *bounds,
                          void (*say)(const char *sentence))
{
    struct ct_collection collection = { .bounds = *bounds };
    char message[CT_MESSAGE_BYTES] = "";
    int error = check_database(database, message);
    if (!error)
        error = open_all(kind, paths, count, &collection.sources, message);
    if (!error)
        error =
            ct_store_open_of(database, kind->origin(collection.sources), &collection.ledger.store, message);
    if (!error)
        error = store_all(&collection, message);
    const bool is_stored = !error;
    for (struct ct_source *s = collection.sources, *next; s; s = next) {
        next = s->next;
        if (is_stored && report_problems(kind, s, say))
            error = -1;
        kind->close(s);
    }
    ct_ledger_finish(&collection.ledger);
    ct_store_close(collection.ledger.store);
    if (!is_stored && message[0])
        say(message);
    return error ? EXIT_FAILURE : EXIT_SUCCESS;
}
