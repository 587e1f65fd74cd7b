/* Simulates a failing disk with a layer on top of SQLite's VFS. The layer becomes the default VFS in every
 * process that has the variable CUDATRACE_DISK, which names a file that contains a struct disk. A test also
 * maps this file (disk_test.py), in order to switch faults on and off while the process is running.
 *
 * The layer can also simulate a power cut by killing the process at the Nth operation that changes a file. Of
 * the data written since a file's last sync, only random pages survive, and some of these only in part.
 * Whether the creation or deletion of a file survives is random, too, until the folder has been synced. */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <sqlite3.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

enum { PAGE_BYTES = 4096, SECTOR_BYTES = 512, IMAGES_MAX = 16 };

/* Operations on files. Each operation is one bit. */
enum operation { OPEN = 1, READ = 2, WRITE = 4, SYNC = 8, TRUNCATE = 16, MAP_SHM = 32 };

/* Kinds of files. Each kind is one bit. */
enum kind { MAIN = 1, LOG = 2, SHM = 4, JOURNAL = 8 };

struct disk {
    _Atomic uint64_t fault;    /* index in `faults`, 0: none */
    _Atomic uint64_t kinds;    /* kinds of files that the fault affects */
    _Atomic uint64_t left;     /* operations that still succeed; bytes for the first two faults */
    _Atomic uint64_t hits;     /* times that the fault struck */
    _Atomic uint64_t changes;  /* operations that have changed or synced a file */
    _Atomic uint64_t cut_at;   /* number of the change that cuts the power; 0: never, and no contents are
                                * kept */
    _Atomic uint64_t survival; /* how much unsynced data survives: 0 none, 1 all, other values are a seed */
};

/* The faults, in the same order as in FAULTS of disk_test.py. */
static const struct {
    unsigned operations;
    int rc, error;
    bool counts_bytes, writes_half;
} faults[] = {
    { 0, SQLITE_OK, 0, false, false },
    { WRITE, SQLITE_FULL, ENOSPC, true, false },
    { WRITE, SQLITE_FULL, ENOSPC, true, true },
    { WRITE, SQLITE_IOERR_WRITE, EDQUOT, false, false },
    { WRITE, SQLITE_IOERR_WRITE, EIO, false, false },
    { WRITE | TRUNCATE, SQLITE_READONLY, EROFS, false, false },
    { SYNC, SQLITE_IOERR_FSYNC, EIO, false, false },
    { READ, SQLITE_IOERR_READ, EIO, false, false },
    { TRUNCATE, SQLITE_IOERR_TRUNCATE, EIO, false, false },
    { MAP_SHM, SQLITE_IOERR_SHMSIZE, ENOSPC, false, false },
    { OPEN, SQLITE_CANTOPEN, EMFILE, false, false },
    { READ | WRITE | SYNC | TRUNCATE | MAP_SHM, SQLITE_IOERR, EIO, false, false },
};

/* The contents of a file on the disk itself, as opposed to the page cache. */
struct image {
    char path[4096];
    uint8_t **before; /* for each page written since the last sync, its contents at that sync */
    size_t pages;     /* length of `before` */
    uint64_t synced_bytes;
    bool known;     /* the file exists, and has been opened before */
    bool named;     /* its name survives */
    uint8_t *ghost; /* contents of a deleted file, which are restored if its folder was not synced */
    uint64_t ghost_bytes;
};

struct file {
    sqlite3_file base;
    enum kind kind;
    struct image *image; /* NULL if the file may be lost, or if the power is never cut */
    sqlite3_file *real;
};

static struct disk *disk;
static sqlite3_vfs *real_vfs;
static struct image images[IMAGES_MAX];
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER; /* protects `images`, and changes to files */

static void give_up(const char *what)
{
    fprintf(stderr, "fault_vfs: %s\n", what);
    abort();
}

/* ---- faults ---- */

/* Decides whether the fault makes this operation fail. Returns the operation's error, or SQLITE_OK. */
static int strike(unsigned operation, enum kind kind, uint64_t bytes)
{
    const uint64_t fault = atomic_load(&disk->fault);
    if (!(faults[fault].operations & operation) || !(atomic_load(&disk->kinds) & kind))
        return SQLITE_OK;
    const uint64_t cost = faults[fault].counts_bytes ? bytes : 1;
    uint64_t left = atomic_load(&disk->left);
    while (left >= cost) {
        if (atomic_compare_exchange_weak(&disk->left, &left, left - cost))
            return SQLITE_OK;
    }
    atomic_fetch_add(&disk->hits, 1);
    errno = faults[fault].error;
    return faults[fault].rc;
}

/* ---- the state after a power cut ---- */

static uint64_t file_bytes(const char *path)
{
    struct stat status;
    return stat(path, &status) == 0 ? (uint64_t)status.st_size : 0;
}

static struct image *image_of(const char *path)
{
    for (int i = 0; i < IMAGES_MAX; i++) {
        if (strcmp(images[i].path, path) == 0)
            return &images[i];
        if (images[i].path[0] == '\0') {
            snprintf(images[i].path, sizeof(images[i].path), "%s", path);
            return &images[i];
        }
    }
    give_up("too many files");
    return NULL;
}

static void keep_page(struct image *image, sqlite3_file *real, size_t page)
{
    if (page >= image->pages) {
        const size_t pages = page + 256;
        image->before = realloc(image->before, pages * sizeof(*image->before));
        if (!image->before)
            give_up("out of memory");
        memset(image->before + image->pages, 0, (pages - image->pages) * sizeof(*image->before));
        image->pages = pages;
    }
    if (image->before[page])
        return;
    image->before[page] = calloc(1, PAGE_BYTES);
    const int rc = image->before[page] ? real->pMethods->xRead(real, image->before[page], PAGE_BYTES,
                                                               (sqlite3_int64)(page * PAGE_BYTES))
                                       : SQLITE_NOMEM;
    if (rc != SQLITE_OK && rc != SQLITE_IOERR_SHORT_READ)
        give_up("a page cannot be kept");
}

/* Keeps copies of the pages that contain the bytes [from, to), before these bytes change. Reads through
 * SQLite's own descriptor, because closing another descriptor of the file would drop SQLite's locks. */
static void keep(struct image *image, sqlite3_file *real, uint64_t from, uint64_t to)
{
    for (uint64_t page = from / PAGE_BYTES; page * PAGE_BYTES < to; page++)
        keep_page(image, real, page);
}

static void forget(struct image *image)
{
    for (size_t page = 0; page < image->pages; page++) {
        free(image->before[page]);
        image->before[page] = NULL;
    }
}

static void note_synced(struct image *image)
{
    forget(image);
    image->synced_bytes = file_bytes(image->path);
}

/* A sync of the folder syncs the names of all files, because all files are in the same folder. */
static void note_folder_synced(void)
{
    for (int i = 0; i < IMAGES_MAX; i++) {
        images[i].named = true;
        free(images[i].ghost);
        images[i].ghost = NULL;
    }
}

static uint64_t random_next(void)
{
    static uint64_t state;
    if (state == 0)
        state = atomic_load(&disk->survival) * UINT64_C(0x9e3779b97f4a7c15);
    state ^= state << 13, state ^= state >> 7, state ^= state << 17;
    return state >> 11;
}

/* Returns true at random, on average once in `one_in` calls. If all or none of the data survives, always
 * returns the same value. */
static bool survives(uint64_t one_in)
{
    const uint64_t survival = atomic_load(&disk->survival);
    return survival <= 1 ? survival == 1 : random_next() % one_in == 0;
}

static void cut_page(int fd, const uint8_t *before, uint64_t at, uint64_t one_in)
{
    if (survives(one_in))
        return;
    uint64_t torn = atomic_load(&disk->survival) > 1 && random_next() % 4 == 0
                        ? random_next() % (PAGE_BYTES / SECTOR_BYTES) * SECTOR_BYTES
                        : 0;
    if (pwrite(fd, before + torn, PAGE_BYTES - torn, (off_t)(at + torn)) < 0)
        give_up("a page cannot be put back");
}

static void cut_file(struct image *image)
{
    const int fd = open(image->path, O_RDWR | O_CLOEXEC);
    if (fd < 0) {
        if (!image->ghost || survives(2))
            return;
        const int again = open(image->path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
        if (again < 0 || write(again, image->ghost, image->ghost_bytes) != (ssize_t)image->ghost_bytes)
            give_up("a deleted file cannot come back");
        return;
    }
    if (!image->named && !survives(2)) {
        unlink(image->path);
        return;
    }
    const uint64_t one_in = 1 + (atomic_load(&disk->survival) > 1 ? random_next() % 4 : 1);
    const uint64_t now = file_bytes(image->path), then = image->synced_bytes;
    for (size_t page = 0; page < image->pages; page++) {
        if (image->before[page])
            cut_page(fd, image->before[page], page * PAGE_BYTES, one_in);
    }
    uint64_t bytes = survives(2) ? now : then;
    if (now != then && atomic_load(&disk->survival) > 1 && random_next() % 3 == 0)
        bytes = (now < then ? now : then) + random_next() % (now < then ? then - now : now - then);
    if (ftruncate(fd, (off_t)bytes) != 0)
        give_up("a file cannot be cut");
}

/* Overwrites the log's index with random data. The index is shared memory in a file that is never synced, so
 * it may contain anything after a power cut. */
static void spoil_shm(const char *path)
{
    char shm[4200];
    snprintf(shm, sizeof(shm), "%s-shm", path);
    const int fd = open(shm, O_RDWR | O_CLOEXEC);
    for (uint64_t at = 0, end = file_bytes(shm); fd >= 0 && at < end && !survives(2); at += SECTOR_BYTES) {
        const uint64_t noise = random_next();
        if (pwrite(fd, &noise, sizeof(noise), (off_t)at) < 0)
            give_up("the index of the log cannot be written");
    }
}

static void cut_power(void)
{
    for (int i = 0; i < IMAGES_MAX && images[i].path[0]; i++) {
        cut_file(&images[i]);
        spoil_shm(images[i].path);
    }
    kill(getpid(), SIGKILL);
    for (;;)
        pause();
}

static bool is_cut(void)
{
    return atomic_fetch_add(&disk->changes, 1) + 1 == atomic_load(&disk->cut_at);
}

/* ---- a file ---- */

#define REAL(base) (((struct file *)(base))->real)

static int vfs_close(sqlite3_file *base)
{
    return REAL(base)->pMethods->xClose(REAL(base));
}

static int vfs_read(sqlite3_file *base, void *to, int bytes, sqlite3_int64 at)
{
    const int rc = strike(READ, ((struct file *)base)->kind, (uint64_t)bytes);
    return rc ? rc : REAL(base)->pMethods->xRead(REAL(base), to, bytes, at);
}

static int vfs_write(sqlite3_file *base, const void *from, int bytes, sqlite3_int64 at)
{
    struct file *file = (struct file *)base;
    const int failure = strike(WRITE, file->kind, (uint64_t)bytes);
    if (failure && !faults[atomic_load(&disk->fault)].writes_half)
        return failure;
    pthread_mutex_lock(&mutex);
    if (file->image)
        keep(file->image, file->real, (uint64_t)at, (uint64_t)(at + bytes));
    const int rc = file->real->pMethods->xWrite(file->real, from, failure ? bytes / 2 : bytes, at);
    if (is_cut())
        cut_power();
    pthread_mutex_unlock(&mutex);
    if (failure)
        errno = ENOSPC;
    return failure ? failure : rc;
}

static int vfs_truncate(sqlite3_file *base, sqlite3_int64 bytes)
{
    struct file *file = (struct file *)base;
    int rc = strike(TRUNCATE, file->kind, 0);
    if (rc)
        return rc;
    pthread_mutex_lock(&mutex);
    if (file->image)
        keep(file->image, file->real, (uint64_t)bytes, file_bytes(file->image->path));
    rc = file->real->pMethods->xTruncate(file->real, bytes);
    if (is_cut())
        cut_power();
    pthread_mutex_unlock(&mutex);
    return rc;
}

static int vfs_sync(sqlite3_file *base, int flags)
{
    struct file *file = (struct file *)base;
    int rc = strike(SYNC, file->kind, 0);
    if (rc)
        return rc;
    pthread_mutex_lock(&mutex);
    if (is_cut())
        cut_power();
    rc = file->real->pMethods->xSync(file->real, flags);
    if (file->image) {
        note_synced(file->image);
        /* When SQLite first syncs a log or a journal that it has created, it also syncs the folder. */
        if (!file->image->named)
            note_folder_synced();
    }
    pthread_mutex_unlock(&mutex);
    return rc;
}

static int vfs_file_size(sqlite3_file *base, sqlite3_int64 *bytes)
{
    return REAL(base)->pMethods->xFileSize(REAL(base), bytes);
}
static int vfs_lock(sqlite3_file *base, int level)
{
    return REAL(base)->pMethods->xLock(REAL(base), level);
}
static int vfs_unlock(sqlite3_file *base, int level)
{
    return REAL(base)->pMethods->xUnlock(REAL(base), level);
}
static int vfs_check_reserved(sqlite3_file *base, int *reserved)
{
    return REAL(base)->pMethods->xCheckReservedLock(REAL(base), reserved);
}
static int vfs_control(sqlite3_file *base, int what, void *argument)
{
    return REAL(base)->pMethods->xFileControl(REAL(base), what, argument);
}
static int vfs_sector_size(sqlite3_file *base)
{
    return REAL(base)->pMethods->xSectorSize(REAL(base));
}
/* Reports that the disk has no special properties. For example, if the power fails during a write, the old
 * contents of the sector may be lost. */
static int vfs_characteristics(sqlite3_file *base)
{
    (void)base;
    return 0;
}
static int vfs_shm_map(sqlite3_file *base, int region, int bytes, int extend, void volatile **at)
{
    const int rc = extend ? strike(MAP_SHM, SHM, (uint64_t)bytes) : SQLITE_OK;
    return rc ? rc : REAL(base)->pMethods->xShmMap(REAL(base), region, bytes, extend, at);
}
static int vfs_shm_lock(sqlite3_file *base, int offset, int n, int flags)
{
    return REAL(base)->pMethods->xShmLock(REAL(base), offset, n, flags);
}
static void vfs_shm_barrier(sqlite3_file *base)
{
    REAL(base)->pMethods->xShmBarrier(REAL(base));
}
static int vfs_shm_unmap(sqlite3_file *base, int remove)
{
    return REAL(base)->pMethods->xShmUnmap(REAL(base), remove);
}

/* Use version 2 of the interface, so that SQLite does not map files. Writes through a mapping would bypass
 * this layer. */
static const sqlite3_io_methods methods = {
    .iVersion = 2,
    .xClose = vfs_close,
    .xRead = vfs_read,
    .xWrite = vfs_write,
    .xTruncate = vfs_truncate,
    .xSync = vfs_sync,
    .xFileSize = vfs_file_size,
    .xLock = vfs_lock,
    .xUnlock = vfs_unlock,
    .xCheckReservedLock = vfs_check_reserved,
    .xFileControl = vfs_control,
    .xSectorSize = vfs_sector_size,
    .xDeviceCharacteristics = vfs_characteristics,
    .xShmMap = vfs_shm_map,
    .xShmLock = vfs_shm_lock,
    .xShmBarrier = vfs_shm_barrier,
    .xShmUnmap = vfs_shm_unmap,
};

/* ---- the VFS ---- */

static void note_opened(struct file *file, const char *path, bool existed, uint64_t bytes)
{
    file->image = image_of(path);
    free(file->image->ghost);
    file->image->ghost = NULL;
    if (existed && file->image->known)
        return; /* another connection has it open, or it is being reopened */
    file->image->known = true;
    file->image->named = existed;
    forget(file->image);
    file->image->synced_bytes = bytes;
}

static int vfs_open(sqlite3_vfs *vfs, const char *path, sqlite3_file *base, int flags, int *out_flags)
{
    (void)vfs;
    struct file *file = (struct file *)base;
    *file = (struct file){ .real = (sqlite3_file *)(file + 1) };
    file->kind = flags & SQLITE_OPEN_MAIN_DB ? MAIN : flags & SQLITE_OPEN_WAL ? LOG : JOURNAL;
    int rc = strike(OPEN, file->kind, 0);
    if (rc)
        return rc;
    pthread_mutex_lock(&mutex);
    const bool existed = path && access(path, F_OK) == 0;
    const uint64_t bytes = existed ? file_bytes(path) : 0;
    rc = real_vfs->xOpen(real_vfs, path, file->real, flags, out_flags);
    if (file->real->pMethods)
        file->base.pMethods = &methods;
    if (rc == SQLITE_OK && path && atomic_load(&disk->cut_at) &&
        flags & (SQLITE_OPEN_MAIN_DB | SQLITE_OPEN_WAL | SQLITE_OPEN_MAIN_JOURNAL))
        note_opened(file, path, existed, bytes);
    pthread_mutex_unlock(&mutex);
    return rc;
}

static void note_deleted(struct image *image)
{
    const int fd = open(image->path, O_RDONLY | O_CLOEXEC);
    image->ghost = calloc(1, image->synced_bytes + PAGE_BYTES);
    image->ghost_bytes = image->synced_bytes;
    if (fd < 0 || !image->ghost || pread(fd, image->ghost, image->synced_bytes, 0) < 0)
        give_up("a deleted file cannot be kept");
    close(fd);
    for (size_t page = 0; page < image->pages && page * PAGE_BYTES < image->synced_bytes; page++) {
        if (image->before[page])
            memcpy(image->ghost + page * PAGE_BYTES, image->before[page], PAGE_BYTES);
    }
    forget(image);
}

static int vfs_delete(sqlite3_vfs *vfs, const char *path, int sync_folder)
{
    (void)vfs;
    pthread_mutex_lock(&mutex);
    if (atomic_load(&disk->cut_at) && access(path, F_OK) == 0) {
        struct image *image = image_of(path);
        if (image->named && !image->ghost)
            note_deleted(image);
        image->known = image->named = false;
    }
    const int rc = real_vfs->xDelete(real_vfs, path, sync_folder);
    if (rc == SQLITE_OK && sync_folder)
        note_folder_synced();
    if (is_cut())
        cut_power();
    pthread_mutex_unlock(&mutex);
    return rc;
}

static void install(void)
{
    static sqlite3_vfs vfs;
    const char *path = getenv("CUDATRACE_DISK");
    if (!path)
        return;
    const int fd = open(path, O_RDWR | O_CLOEXEC);
    void *map = mmap(NULL, sizeof(*disk), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    real_vfs = sqlite3_vfs_find(NULL);
    if (fd < 0 || map == MAP_FAILED || !real_vfs)
        give_up("no disk");
    close(fd);
    disk = map;
    vfs = *real_vfs;
    vfs.zName = "fault";
    vfs.szOsFile += (int)sizeof(struct file);
    vfs.xOpen = vfs_open;
    vfs.xDelete = vfs_delete;
    sqlite3_vfs_register(&vfs, 1);
}

/* The linker redirects sqlite3_open_v2() to this function (--wrap). The VFS is registered only at this time,
 * because the program may need to configure SQLite before SQLite is initialized. */
int __real_sqlite3_open_v2(const char *path, sqlite3 **connection, int flags, const char *vfs);
int __wrap_sqlite3_open_v2(const char *path, sqlite3 **connection, int flags, const char *vfs);
int __wrap_sqlite3_open_v2(const char *path, sqlite3 **connection, int flags, const char *vfs)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, install);
    return __real_sqlite3_open_v2(path, connection, flags, vfs);
}
