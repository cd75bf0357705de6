/* A disk that fails: the n-th call that changes something below $FAULT_ROOT is refused, done by
 * half, or is the last one before the power goes.
 *
 * Loaded with LD_PRELOAD. Counts write, pwrite, writev, copy_file_range, sendfile, open (of a new
 * file), mkdir, rename, unlink, ftruncate, fsync and fdatasync; what is not below the root, and
 * what children do, is left alone. With FAULT_AT=0 it only counts, and writes the number of calls
 * to $FAULT_COUNT at the end.
 *
 * FAULT_KIND:
 *   enospc, eio  the call fails with this error, and so does every later write (enospc) or none
 *   short        a write takes half of its bytes (others: eio)
 *   crash        the power goes before the call: bytes that no fsync made durable are lost, and so
 *                are new names and renames whose folder was not synced
 *   torn         as crash, but half of the bytes that were not durable are there
 *   kill         the process dies, the system lives: nothing is lost
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

enum { FILES = 65536 };

/* A file that was written to: how much of it is durable. */
struct file {
    char *path;
    off_t durable;
};
/* A name that is not durable: a new file, or a rename with what it replaced. */
struct name {
    char *path, *from, *replaced;
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct file files[FILES];
static struct name names[FILES];
static int file_count, name_count;
static long calls, fail_at;
static char root[PATH_MAX], kind[16], count_file[PATH_MAX];
static int full;

#define REAL(name) ((__typeof__(&name))real(#name))
static void *real(const char *symbol) { return dlsym(RTLD_NEXT, symbol); }

__attribute__((constructor)) static void begin(void) {
    const char *value = getenv("FAULT_ROOT");
    snprintf(root, sizeof root, "%s", value ? value : "");
    snprintf(kind, sizeof kind, "%s", (value = getenv("FAULT_KIND")) ? value : "");
    snprintf(count_file, sizeof count_file, "%s", (value = getenv("FAULT_COUNT")) ? value : "");
    fail_at = (value = getenv("FAULT_AT")) ? atol(value) : 0;
    unsetenv("LD_PRELOAD");
}

static void remove_copies(void);

__attribute__((destructor)) static void end(void) {
    remove_copies();
    FILE *out = count_file[0] ? fopen(count_file, "w") : NULL;
    if (out) {
        fprintf(out, "%ld\n", calls);
        fclose(out);
    }
}

static int inside(const char *path) {
    size_t length = strlen(root);
    return length && !strncmp(path, root, length) && path[length] == '/';
}

static int path_of(int fd, char *path) {
    char link[64];
    snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
    ssize_t length = readlink(link, path, PATH_MAX - 1);
    if (length < 0) return 0;
    path[length] = 0;
    return inside(path);
}

static int path_at(int folder, const char *path, char *whole) {
    char base[PATH_MAX];
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
        snprintf(whole, PATH_MAX, "%.*s/%s", (int)length, base, path);
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

static void note_name(const char *path, const char *from, char *replaced) {
    if (name_count < FILES)
        names[name_count++] = (struct name){strdup(path), from ? strdup(from) : NULL, replaced};
}

/* What the disk has when the power comes back. */
static void lose(int torn) {
    for (int i = 0; i < file_count; i++) {
        struct stat about;
        if (stat(files[i].path, &about) || about.st_size <= files[i].durable) continue;
        off_t kept = files[i].durable;
        if (torn) kept += (about.st_size - kept) / 2;
        if (REAL(truncate)(files[i].path, kept)) perror("truncate");
    }
    for (int i = name_count - 1; i >= 0; i--) {
        if (!names[i].from) {
            REAL(unlink)(names[i].path);
            continue;
        }
        REAL(rename)(names[i].path, names[i].from);
        if (names[i].replaced) REAL(rename)(names[i].replaced, names[i].path);
    }
}

static void remove_copies(void) {
    for (int i = 0; i < name_count; i++)
        if (names[i].replaced) REAL(unlink)(names[i].replaced);
}

/* Counts a call, under the lock. 0: go on; else the error, or -1 for half of a write. */
static int fault(int writes) {
    calls++;
    if (full && writes) return ENOSPC;
    if (calls != fail_at) return 0;
    if (!strcmp(kind, "enospc")) {
        full = 1;
        return ENOSPC;
    }
    if (!strcmp(kind, "short") && writes) return -1;
    if (!strcmp(kind, "eio") || !strcmp(kind, "short")) return EIO;
    if (strcmp(kind, "kill")) lose(!strcmp(kind, "torn"));
    else remove_copies();
    kill(getpid(), SIGKILL);
    for (;;) pause();
}

static off_t size_of(int fd) {
    struct stat about;
    return fstat(fd, &about) ? 0 : about.st_size;
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

/* A synced folder makes the names in it durable, a synced file its bytes. */
static int synced(int fd, int (*sync)(int)) {
    char path[PATH_MAX];
    if (!path_of(fd, path) && strcmp(path, root)) return sync(fd);
    pthread_mutex_lock(&lock);
    int error = fault(0);
    pthread_mutex_unlock(&lock);
    if (error) return errno = EIO, -1;
    int result = sync(fd);
    struct stat about;
    pthread_mutex_lock(&lock);
    if (!result && !fstat(fd, &about) && S_ISDIR(about.st_mode)) {
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

static int renamed(const char *from, const char *to, const char *old, const char *new) {
    char copy[PATH_MAX];
    pthread_mutex_lock(&lock);
    int error = fault(0);
    if (error) {
        pthread_mutex_unlock(&lock);
        return errno = EIO, -1;
    }
    snprintf(copy, sizeof copy, "%.*s.replaced-%ld", PATH_MAX / 2, new, calls);
    int saved = !link(new, copy);
    int result = REAL(rename)(from, to);
    if (!result) {
        note_name(new, old, saved ? strdup(copy) : NULL);
        struct file *file = file_at(old), *gone = file_at(new);
        if (gone) gone->path = strdup("");
        if (file) file->path = strdup(new);
    } else if (saved) {
        REAL(unlink)(copy);
    }
    pthread_mutex_unlock(&lock);
    return result;
}

int rename(const char *from, const char *to) {
    char old[PATH_MAX], new[PATH_MAX];
    int within = path_at(AT_FDCWD, from, old) | path_at(AT_FDCWD, to, new);
    return within ? renamed(from, to, old, new) : REAL(rename)(from, to);
}

int renameat(int a, const char *from, int b, const char *to) {
    char old[PATH_MAX], new[PATH_MAX];
    int within = path_at(a, from, old) | path_at(b, to, new);
    return within ? renamed(old, new, old, new) : REAL(renameat)(a, from, b, to);
}

int unlink(const char *path) {
    char whole[PATH_MAX];
    if (!path_at(AT_FDCWD, path, whole)) return REAL(unlink)(path);
    pthread_mutex_lock(&lock);
    int error = fault(0);
    if (!error)
        for (int i = 0; i < name_count; i++)
            if (!strcmp(names[i].path, whole) && !names[i].from) names[i--] = names[--name_count];
    pthread_mutex_unlock(&lock);
    return error ? (errno = EIO, -1) : REAL(unlink)(path);
}

int mkdir(const char *path, mode_t mode) {
    char whole[PATH_MAX];
    if (!path_at(AT_FDCWD, path, whole)) return REAL(mkdir)(path, mode);
    pthread_mutex_lock(&lock);
    int error = fault(1);
    pthread_mutex_unlock(&lock);
    return error > 0 ? (errno = error, -1) : REAL(mkdir)(path, mode);
}

static int opened(int folder, const char *path, int flags, mode_t mode) {
    char whole[PATH_MAX];
    __typeof__(&openat64) open_it = REAL(openat64);
    int changes = flags & (O_CREAT | O_TRUNC);
    if (!changes || !path_at(folder, path, whole)) return open_it(folder, path, flags, mode);
    struct stat about;
    int is_new = stat(whole, &about);
    pthread_mutex_lock(&lock);
    int error = is_new ? fault(1) : 0;
    pthread_mutex_unlock(&lock);
    if (error > 0) return errno = error, -1;
    int fd = open_it(folder, path, flags, mode);
    pthread_mutex_lock(&lock);
    if (fd >= 0 && is_new) {
        note_file(whole, 0);
        note_name(whole, NULL, NULL);
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
