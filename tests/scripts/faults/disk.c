/* A disk that fails: the n-th call that changes something below $FAULT_ROOT, or reads from there,
 * is refused, done by half, or is the last one before the power goes.
 *
 * Loaded with LD_PRELOAD. What is not below the root, and what children do, is left alone. There
 * are two counters:
 *   changes  write, pwrite, writev, copy_file_range, sendfile, open of a new file, mkdir, rename,
 *            renameat, renameat2, link, linkat, unlink, unlinkat, rmdir, ftruncate, fallocate,
 *            chmod, fchmod, flock, fsync, fdatasync, close of what was written to
 *   reads    read, readv, pread, open of what is there, opendir, readdir, stat in all its forms
 * With FAULT_AT=0 it only counts, and writes both numbers to $FAULT_COUNT at the end.
 *
 * FAULT_KIND, of a change:
 *   enospc, eio  the call fails with this error, and so does every later write (enospc) or none
 *   short        a write takes half of its bytes (others: eio)
 *   crash        the power goes before the call: bytes that no fsync made durable are lost, and so
 *                are names made, given and taken away in folders that were not synced
 *   torn         as crash, but half of the bytes that were not durable are there, and every other
 *                one of those names
 *   kill         the process dies, the system lives: nothing is lost
 * of a read:
 *   badread      the call fails with EIO, the next one of the same kind does not
 *   denied       what opens or asks about a file fails with EACCES (others: EIO)
 *   few          a read gives half of the bytes that it could (others: go well)
 *
 * Not here: mmap, whose faults are signals, and getrandom. What is closed is closed, whatever the
 * call says, as on Linux.
 */
#define _GNU_SOURCE
#include <dirent.h>
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <limits.h>
#include <pthread.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

enum { FILES = 65536 };

/* A file that was written to: how much of it is durable. */
struct file {
    char *path;
    off_t durable;
};
/* A name that is not durable: made, given (`from` another, in the place of `replaced`) or taken
 * away (then `replaced` is what had it, or, if it was a folder, there is none). */
struct name {
    enum { MADE, GIVEN, TAKEN } what;
    char *path, *from, *replaced;
};

enum counter { CHANGES, READS };

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct file files[FILES];
static struct name names[FILES];
static int file_count, name_count;
static long calls[2], copies, fail_at;
static enum counter counted;
static char root[PATH_MAX], kind[16], count_file[PATH_MAX];
static int full, child;

#define REAL(name) ((__typeof__(&name))real(#name))
static void *real(const char *symbol) { return dlsym(RTLD_NEXT, symbol); }
#define IS(word) (!strcmp(kind, word))

static void in_child(void) { child = 1; }

__attribute__((constructor)) static void begin(void) {
    const char *value = getenv("FAULT_ROOT");
    snprintf(root, sizeof root, "%s", value ? value : "");
    snprintf(kind, sizeof kind, "%s", (value = getenv("FAULT_KIND")) ? value : "");
    snprintf(count_file, sizeof count_file, "%s", (value = getenv("FAULT_COUNT")) ? value : "");
    fail_at = (value = getenv("FAULT_AT")) ? atol(value) : 0;
    counted = IS("badread") || IS("denied") || IS("few") ? READS : CHANGES;
    unsetenv("LD_PRELOAD");
    pthread_atfork(NULL, NULL, in_child);
}

static void remove_copies(void);

__attribute__((destructor)) static void end(void) {
    remove_copies();
    FILE *out = count_file[0] ? fopen(count_file, "w") : NULL;
    if (out) {
        fprintf(out, "%ld %ld\n", calls[CHANGES], calls[READS]);
        fclose(out);
    }
}

static int below(const char *folder, const char *path) {
    size_t length = strlen(folder);
    return length && !strncmp(path, folder, length) && path[length] == '/';
}

static int inside(const char *path) { return !child && below(root, path); }

static int path_of(int fd, char *path) {
    char link[64];
    if (child || !root[0]) return 0;
    snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
    ssize_t length = readlink(link, path, PATH_MAX - 1);
    if (length < 0) return 0;
    path[length] = 0;
    return inside(path);
}

static int path_at(int folder, const char *path, char *whole) {
    char base[PATH_MAX];
    if (child || !root[0] || !path) return 0;
    if (path[0] == '/') {
        snprintf(whole, PATH_MAX, "%s", path);
    } else if (folder == AT_FDCWD) {
        if (!getcwd(base, sizeof base)) return 0;
        snprintf(whole, PATH_MAX, "%.*s/%s", PATH_MAX / 2, base, path);
    } else {
        char link[64];
        snprintf(link, sizeof link, "/proc/self/fd/%d", folder);
        ssize_t length = readlink(link, base, PATH_MAX - 1);
        if (length < 0) return 0;
        snprintf(whole, PATH_MAX, path[0] ? "%.*s/%s" : "%.*s", (int)length, base, path);
    }
    return inside(whole);
}

static struct file *file_at(const char *path) {
    for (int i = 0; i < file_count; i++)
        if (!strcmp(files[i].path, path)) return &files[i];
    return NULL;
}

/* Before a file is written to: what it has now is durable. */
static void note_file(const char *path, off_t durable) {
    if (!file_at(path) && file_count < FILES)
        files[file_count++] = (struct file){strdup(path), durable};
}

static void note_name(int what, const char *path, const char *from, char *replaced) {
    if (name_count < FILES)
        names[name_count++] = (struct name){what, strdup(path), from ? strdup(from) : NULL, replaced};
}

/* Another name for what is about to lose this one; beside the root, where nobody looks. */
static char *copy_of(const char *path) {
    char copy[PATH_MAX];
    snprintf(copy, sizeof copy, "%.*s.replaced-%ld", PATH_MAX / 2, root, ++copies);
    return REAL(link)(path, copy) ? NULL : strdup(copy);
}

static int gone(const char *path, const struct stat *about, int flag, struct FTW *at) {
    (void)about, (void)at;
    return flag == FTW_DP ? REAL(rmdir)(path) : REAL(unlink)(path);
}

/* What the disk has when the power comes back. */
static void lose(int torn) {
    child = 1; /* What follows is not of the program. */
    for (int i = 0; i < file_count; i++) {
        struct stat about;
        if (stat(files[i].path, &about) || about.st_size <= files[i].durable) continue;
        off_t kept = files[i].durable;
        if (torn) kept += (about.st_size - kept) / 2;
        if (REAL(truncate)(files[i].path, kept)) perror("truncate");
    }
    for (int i = name_count - 1; i >= 0; i--) {
        struct name *name = &names[i];
        if (torn && i % 2) continue;
        if (name->what == MADE) {
            nftw(name->path, gone, 16, FTW_DEPTH | FTW_PHYS);
        } else if (name->what == GIVEN) {
            REAL(rename)(name->path, name->from);
            if (name->replaced) REAL(rename)(name->replaced, name->path);
        } else if (name->replaced) {
            REAL(rename)(name->replaced, name->path);
        } else {
            REAL(mkdir)(name->path, 0755);
        }
    }
    remove_copies();
}

static void remove_copies(void) {
    for (int i = 0; i < name_count; i++)
        if (names[i].replaced) REAL(unlink)(names[i].replaced);
}

/* Counts a change, under the lock. 0: go on; else the error, or -1 for half of a write. */
static int fault(int writes) {
    calls[CHANGES]++;
    if (full && writes) return ENOSPC;
    if (counted != CHANGES || calls[CHANGES] != fail_at) return 0;
    if (IS("enospc")) {
        full = 1;
        return ENOSPC;
    }
    if (IS("short") && writes) return -1;
    if (IS("eio") || IS("short")) return EIO;
    if (IS("kill")) remove_copies();
    else lose(IS("torn"));
    kill(getpid(), SIGKILL);
    for (;;) pause();
}

static int changes(int writes) {
    pthread_mutex_lock(&lock);
    int error = fault(writes);
    pthread_mutex_unlock(&lock);
    return error < 0 ? EIO : error;
}

/* Counts a read: as above. */
static int reads(int opens) {
    pthread_mutex_lock(&lock);
    long at = ++calls[READS];
    pthread_mutex_unlock(&lock);
    if (counted != READS || at != fail_at) return 0;
    if (IS("few")) return -1;
    return opens && IS("denied") ? EACCES : EIO;
}

static off_t size_of(int fd) {
    struct stat about;
    return REAL(fstat)(fd, &about) ? 0 : about.st_size;
}

#define GUARDED(fd, writes, half, call)                      \
    char path[PATH_MAX];                                     \
    if (!path_of(fd, path)) return call;                     \
    pthread_mutex_lock(&lock);                               \
    int error = fault(writes);                               \
    note_file(path, size_of(fd));                            \
    pthread_mutex_unlock(&lock);                             \
    if (error > 0) return errno = error, -1;                 \
    if (error < 0) { half; }                                 \
    return call;

ssize_t write(int fd, const void *bytes, size_t count) {
    GUARDED(fd, 1, count = count > 1 ? count / 2 : count, REAL(write)(fd, bytes, count))
}

ssize_t pwrite64(int fd, const void *bytes, size_t count, off64_t at) {
    GUARDED(fd, 1, count = count > 1 ? count / 2 : count, REAL(pwrite64)(fd, bytes, count, at))
}

ssize_t writev(int fd, const struct iovec *parts, int count) {
    GUARDED(fd, 1, count = count > 1 ? count / 2 : count, REAL(writev)(fd, parts, count))
}

ssize_t copy_file_range(int in, off64_t *from, int fd, off64_t *to, size_t count, unsigned flags) {
    GUARDED(fd, 1, count = count > 1 ? count / 2 : count,
            REAL(copy_file_range)(in, from, fd, to, count, flags))
}

ssize_t sendfile64(int fd, int in, off64_t *from, size_t count);
ssize_t sendfile64(int fd, int in, off64_t *from, size_t count) {
    GUARDED(fd, 1, count = count > 1 ? count / 2 : count,
            REAL(sendfile64)(fd, in, from, count))
}

int ftruncate64(int fd, off64_t length) {
    GUARDED(fd, 0, (void)0, REAL(ftruncate64)(fd, length))
}

int fallocate64(int fd, int mode, off64_t at, off64_t length) {
    GUARDED(fd, 1, (void)0, REAL(fallocate64)(fd, mode, at, length))
}

int posix_fallocate64(int fd, off64_t at, off64_t length) {
    char path[PATH_MAX];
    int error = path_of(fd, path) ? changes(1) : 0;
    return error ? error : REAL(posix_fallocate64)(fd, at, length);
}

int fchmod(int fd, mode_t mode) {
    char path[PATH_MAX];
    int error = path_of(fd, path) ? changes(0) : 0;
    return error ? (errno = error, -1) : REAL(fchmod)(fd, mode);
}

int chmod(const char *path, mode_t mode) {
    char whole[PATH_MAX];
    int error = path_at(AT_FDCWD, path, whole) ? changes(0) : 0;
    return error ? (errno = error, -1) : REAL(chmod)(path, mode);
}

/* A lock that is taken, not one that is let go. */
int flock(int fd, int what) {
    char path[PATH_MAX];
    int error = !(what & LOCK_UN) && path_of(fd, path) ? changes(0) : 0;
    return error ? (errno = error == EIO ? ENOLCK : error, -1) : REAL(flock)(fd, what);
}

int close(int fd) {
    char path[PATH_MAX];
    int error = 0;
    if (path_of(fd, path)) {
        pthread_mutex_lock(&lock);
        if (file_at(path)) error = fault(0);
        pthread_mutex_unlock(&lock);
    }
    int result = REAL(close)(fd);
    return error ? (errno = error < 0 ? EIO : error, -1) : result;
}

/* A synced folder makes the names in it durable, a synced file its bytes. */
static int synced(int fd, int (*sync)(int)) {
    char path[PATH_MAX];
    if (!path_of(fd, path) && (child || strcmp(path, root))) return sync(fd);
    int error = changes(0);
    if (error) return errno = error, -1;
    int result = sync(fd);
    struct stat about;
    pthread_mutex_lock(&lock);
    if (!result && !REAL(fstat)(fd, &about) && S_ISDIR(about.st_mode)) {
        int kept = 0;
        for (int i = 0; i < name_count; i++) {
            char *slash = strrchr(names[i].path, '/');
            size_t length = (size_t)(slash - names[i].path);
            if (strlen(path) == length && !strncmp(path, names[i].path, length)) {
                if (names[i].replaced) REAL(unlink)(names[i].replaced);
            } else {
                names[kept++] = names[i];
            }
        }
        name_count = kept;
    } else if (!result) {
        struct file *file = file_at(path);
        if (file) file->durable = about.st_size;
    }
    pthread_mutex_unlock(&lock);
    return result;
}

int fsync(int fd) { return synced(fd, REAL(fsync)); }
int fdatasync(int fd) { return synced(fd, REAL(fdatasync)); }

static char *moved(char *path, const char *old, const char *new) {
    char whole[PATH_MAX];
    if (strcmp(path, old) && !below(old, path)) return path;
    snprintf(whole, sizeof whole, "%.*s%s", PATH_MAX / 2, new, path + strlen(old));
    return strdup(whole);
}

static int renamed(int a, const char *from, int b, const char *to, unsigned flags) {
    char old[PATH_MAX] = "", new[PATH_MAX] = "";
    if (!(path_at(a, from, old) | path_at(b, to, new)))
        return REAL(renameat2)(a, from, b, to, flags);
    pthread_mutex_lock(&lock);
    int error = fault(0);
    if (error) {
        pthread_mutex_unlock(&lock);
        return errno = error < 0 ? EIO : error, -1;
    }
    char *replaced = flags ? NULL : copy_of(new);
    int result = REAL(renameat2)(a, from, b, to, flags);
    int why = errno;
    if (!result) {
        struct file *over = file_at(new);
        if (over) over->path = strdup("");
        for (int i = 0; i < file_count; i++) files[i].path = moved(files[i].path, old, new);
        /* What was made in a folder is lost where the folder is when it comes to that. */
        for (int i = 0; i < name_count; i++)
            if (below(old, names[i].path)) names[i].path = moved(names[i].path, old, new);
        note_name(GIVEN, new, old, replaced);
    } else if (replaced) {
        REAL(unlink)(replaced);
    }
    pthread_mutex_unlock(&lock);
    return errno = why, result;
}

int rename(const char *from, const char *to) { return renamed(AT_FDCWD, from, AT_FDCWD, to, 0); }
int renameat(int a, const char *from, int b, const char *to) { return renamed(a, from, b, to, 0); }
int renameat2(int a, const char *from, int b, const char *to, unsigned flags) {
    return renamed(a, from, b, to, flags);
}

int linkat(int a, const char *from, int b, const char *to, int flags) {
    char old[PATH_MAX], new[PATH_MAX];
    if (!path_at(b, to, new)) return REAL(linkat)(a, from, b, to, flags);
    int error = changes(1);
    if (error) return errno = error, -1;
    int result = REAL(linkat)(a, from, b, to, flags);
    pthread_mutex_lock(&lock);
    if (!result) {
        struct file *file = path_at(a, from, old) ? file_at(old) : NULL;
        if (file) note_file(new, file->durable);
        note_name(MADE, new, NULL, NULL);
    }
    pthread_mutex_unlock(&lock);
    return result;
}

int link(const char *from, const char *to) { return linkat(AT_FDCWD, from, AT_FDCWD, to, 0); }

static int removed(int folder, const char *path, int flags) {
    char whole[PATH_MAX];
    if (!path_at(folder, path, whole)) return REAL(unlinkat)(folder, path, flags);
    pthread_mutex_lock(&lock);
    int error = fault(0);
    if (error) {
        pthread_mutex_unlock(&lock);
        return errno = error < 0 ? EIO : error, -1;
    }
    int is_folder = flags & AT_REMOVEDIR;
    char *copy = is_folder ? NULL : copy_of(whole);
    int result = REAL(unlinkat)(folder, path, flags);
    int why = errno, was_durable = 1;
    if (!result)
        for (int i = 0; i < name_count; i++)
            if (!strcmp(names[i].path, whole) && names[i].what == MADE) {
                memmove(&names[i], &names[i + 1], sizeof names[0] * (size_t)(name_count - i - 1));
                name_count--, i--, was_durable = 0;
            }
    if (!result && was_durable && (is_folder || copy)) note_name(TAKEN, whole, NULL, copy);
    else if (copy) REAL(unlink)(copy);
    pthread_mutex_unlock(&lock);
    return errno = why, result;
}

int unlink(const char *path) { return removed(AT_FDCWD, path, 0); }
int rmdir(const char *path) { return removed(AT_FDCWD, path, AT_REMOVEDIR); }
int unlinkat(int folder, const char *path, int flags) { return removed(folder, path, flags); }

int mkdirat(int folder, const char *path, mode_t mode) {
    char whole[PATH_MAX];
    struct stat about;
    /* One that is there is made by nobody. */
    if (!path_at(folder, path, whole) || !REAL(lstat)(whole, &about))
        return REAL(mkdirat)(folder, path, mode);
    int error = changes(1);
    if (error) return errno = error, -1;
    int result = REAL(mkdirat)(folder, path, mode);
    pthread_mutex_lock(&lock);
    if (!result) note_name(MADE, whole, NULL, NULL);
    pthread_mutex_unlock(&lock);
    return result;
}

int mkdir(const char *path, mode_t mode) { return mkdirat(AT_FDCWD, path, mode); }

static int opened(int folder, const char *path, int flags, mode_t mode) {
    char whole[PATH_MAX];
    __typeof__(&openat64) open_it = REAL(openat64);
    if (!path_at(folder, path, whole)) return open_it(folder, path, flags, mode);
    struct stat about;
    int is_there = !REAL(stat)(whole, &about), makes = !is_there && flags & O_CREAT;
    int is_nameless = (flags & O_TMPFILE) == O_TMPFILE;
    int error = makes || is_nameless ? changes(1) : reads(1);
    if (error > 0) return errno = error, -1;
    int fd = open_it(folder, path, flags, mode);
    pthread_mutex_lock(&lock);
    if (fd >= 0 && makes) {
        note_file(whole, 0);
        note_name(MADE, whole, NULL, NULL);
    }
    pthread_mutex_unlock(&lock);
    return fd;
}

#define MODE                               \
    mode_t mode = 0;                       \
    if (flags & (O_CREAT | O_TMPFILE)) {   \
        va_list rest;                      \
        va_start(rest, flags);             \
        mode = va_arg(rest, mode_t);       \
        va_end(rest);                      \
    }

int open64(const char *path, int flags, ...) {
    MODE return opened(AT_FDCWD, path, flags, mode);
}

int open(const char *path, int flags, ...) {
    MODE return opened(AT_FDCWD, path, flags, mode);
}

int openat64(int folder, const char *path, int flags, ...) {
    MODE return opened(folder, path, flags, mode);
}

/* Reads. */

#define READ(fd, half, call)                             \
    char path[PATH_MAX];                                 \
    int error = path_of(fd, path) ? reads(0) : 0;        \
    if (error > 0) return errno = error, -1;             \
    if (error < 0) { half; }                             \
    return call;

ssize_t read(int fd, void *bytes, size_t count) {
    READ(fd, count = count > 1 ? count / 2 : count, REAL(read)(fd, bytes, count))
}

ssize_t readv(int fd, const struct iovec *parts, int count) {
    READ(fd, count = count > 1 ? count / 2 : count, REAL(readv)(fd, parts, count))
}

ssize_t pread64(int fd, void *bytes, size_t count, off64_t at) {
    READ(fd, count = count > 1 ? count / 2 : count, REAL(pread64)(fd, bytes, count, at))
}

DIR *opendir(const char *path) {
    char whole[PATH_MAX];
    int error = path_at(AT_FDCWD, path, whole) ? reads(1) : 0;
    return error > 0 ? (errno = error, NULL) : REAL(opendir)(path);
}

struct dirent64 *readdir64(DIR *folder) {
    char path[PATH_MAX];
    int error = path_of(dirfd(folder), path) ? reads(0) : 0;
    return error > 0 ? (errno = error, NULL) : REAL(readdir64)(folder);
}

int statx(int folder, const char *path, int flags, unsigned mask, struct statx *about) {
    char whole[PATH_MAX];
    int error = path_at(folder, path, whole) ? reads(1) : 0;
    return error > 0 ? (errno = error, -1) : REAL(statx)(folder, path, flags, mask, about);
}

int fstatat64(int folder, const char *path, struct stat64 *about, int flags) {
    char whole[PATH_MAX];
    int error = path_at(folder, path, whole) ? reads(1) : 0;
    return error > 0 ? (errno = error, -1) : REAL(fstatat64)(folder, path, about, flags);
}

int stat64(const char *path, struct stat64 *about) { return fstatat64(AT_FDCWD, path, about, 0); }
int lstat64(const char *path, struct stat64 *about) {
    return fstatat64(AT_FDCWD, path, about, AT_SYMLINK_NOFOLLOW);
}

int fstat64(int fd, struct stat64 *about) {
    READ(fd, (void)0, REAL(fstat64)(fd, about))
}
