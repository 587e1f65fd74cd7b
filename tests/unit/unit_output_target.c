/* unit_output_target.c: in a folder that all users can write to, neither links nor files of another user are
 * opened for output, not even if they appear after the file was looked for, and links of root and of this
 * user are followed. Needs root to make files of others. */
#include "output_target.h"
#include "own_path.h"

#include "../ensure.h"

#include <fcntl.h>
#include <unistd.h>

enum { OTHER = 65534, SKIPPED = 77 };

static char folder[] = "/tmp/output-target-XXXXXX";

static const char *in_folder(const char *name)
{
    static char paths[8][PATH_MAX];
    static int next;
    char *path = paths[next++ % 8];
    snprintf(path, PATH_MAX, "%s/%s", folder, name);
    return path;
}

static void make_link(const char *target, const char *name, uid_t owner)
{
    EXPECT(0, symlink(target, in_folder(name)));
    EXPECT(0, lchown(in_folder(name), owner, owner));
}

static void make_file(const char *name, uid_t owner)
{
    EXPECT(0, close(open(in_folder(name), O_WRONLY | O_CREAT | O_EXCL, 0666)));
    EXPECT(0, chown(in_folder(name), owner, owner));
}

static int opened(const char *name, const char **why)
{
    return ct_output_target_open(in_folder(name), O_WRONLY | O_CREAT | O_APPEND, 0600, why);
}

static void check_refused(const char *name, const char *wanted)
{
    const char *why;
    EXPECT(-EACCES, opened(name, &why));
    ENSURE(why != NULL && strstr(why, wanted) != NULL && strstr(why, "remove it") != NULL);
}

static void check_opened(const char *name)
{
    const char *why;
    const int fd = opened(name, &why);
    ENSURE(fd >= 0 && why == NULL);
    close(fd);
}

/* Another user creates or replaces the file after it has been looked for. */
static void check_exchanged(const char *name)
{
    const char *why;
    struct ct_output_target target;
    EXPECT(0, ct_output_target_find(in_folder(name), &target, &why));
    if (target.exists)
        EXPECT(0, rename(in_folder(name), in_folder("away")));
    make_file(name, OTHER);
    EXPECT(-ESTALE, ct_output_target_open_found(&target, O_WRONLY | O_CREAT, 0600));
    EXPECT(0, unlink(in_folder(name)));
    ct_output_target_leave(&target);
}

static void check_resolved(const char *name, const char *wanted)
{
    char path[PATH_MAX], refused[PATH_MAX];
    snprintf(path, sizeof(path), "%s", in_folder(name));
    const char *why = ct_own_path_resolve(path, sizeof(path));
    ENSURE((why == NULL) == (wanted != NULL));
    ENSURE(strcmp(path, in_folder(wanted ? wanted : name)) == 0);
    snprintf(refused, sizeof(refused), "is a link of user %d in a directory writable by all", OTHER);
    ENSURE(why == NULL || strstr(why, refused) != NULL);
}

int main(void)
{
    if (geteuid() != 0)
        return SKIPPED;
    ENSURE(mkdtemp(folder) != NULL);
    EXPECT(0, chmod(folder, 01777));
    EXPECT(0, mkdir(in_folder("real"), 0755));
    make_link("real", "others", OTHER);
    make_link("real", "own", 0);
    make_link("others", "chain", 0);
    make_link("real/new", "planted", OTHER);
    make_link("real/own-new", "mine", 0);
    make_file("theirs", OTHER);
    make_file("roots", 0);
    EXPECT(0, mkfifo(in_folder("fifo"), 0666));
    EXPECT(0, chown(in_folder("fifo"), OTHER, OTHER));

    check_refused("others/new", "others' is a link of user 65534");
    check_refused("chain/new", "others' is a link of user 65534");
    check_refused("planted", "planted' is a link of user 65534");
    check_refused("theirs", "theirs' is a file of user 65534");
    check_refused("fifo", "fifo' is a FIFO of user 65534");
    ENSURE(access(in_folder("real/new"), F_OK) != 0);
    check_opened("own/made");
    check_opened("mine");
    check_opened("roots");
    check_exchanged("new");
    check_exchanged("roots");
    EXPECT(0, rename(in_folder("away"), in_folder("roots")));

    check_resolved("others/trace", NULL);
    check_resolved("chain/trace", NULL);
    check_resolved("own/trace", "real/trace");
    check_resolved("missing/trace", "missing/trace");
    check_resolved("planted", "planted"); /* only the folder is resolved */

    /* A link of root's may have been given a second name by another user. */
    EXPECT(0, link(in_folder("own"), in_folder("second")));
    check_refused("second/new", "second' is a link of user 0");
    EXPECT(0, unlink(in_folder("second")));

    /* In a folder of its own, a user's links are followed. */
    EXPECT(0, chown(folder, OTHER, OTHER));
    check_opened("others/new");

    static const char *const names[] = { "others", "own",  "chain",    "planted",      "mine",     "theirs",
                                         "roots",  "fifo", "real/new", "real/own-new", "real/made" };
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
        EXPECT(0, unlink(in_folder(names[i])));
    EXPECT(0, rmdir(in_folder("real")) | rmdir(folder));
    return 0;
}
