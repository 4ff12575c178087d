// Preloaded into a run by tests: a wall clock that jumps and a disk that syncs slowly, cannot be
// read or fails.
//
// FAULTY_CLOCK names a file with the seconds that the wall clock is wrong by, read each time;
// FAULTY_FSYNC names a file: while it is there, every fsync takes two seconds.
// FAULTY_READ is the end of a path that cannot be opened for reading (EIO).
// FAULTY_SAVE is "CALL ERRNO PART TIMES": the first TIMES calls of open (to write), write, fsync,
// fallocate, mkdir, rename, link, symlink, unlink or statvfs on a path with that PART fail with that
// number, in each process.
// FAULTY_SLOW is a part of paths on which each write takes ten seconds.
// FAULTY_WRITE: of what is written at once at most 8,192 bytes are, and every third time none
// (EINTR).
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

static int fails(const char* call, const char* path) {
  static int failed;
  const char* const asked = getenv("FAULTY_SAVE");
  char name[16], part[64];
  int number, times;
  if (!asked || sscanf(asked, "%15s %d %63s %d", name, &number, part, &times) != 4) return 0;
  if (strcmp(name, call) != 0 || !strstr(path, part)) return 0;
  if (__atomic_fetch_add(&failed, 1, __ATOMIC_SEQ_CST) >= times) return 0;
  errno = number;
  return 1;
}

static int fails_on(const char* call, int fd) {
  char link[64], path[4096] = {0};
  snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
  return readlink(link, path, sizeof path - 1) > 0 && fails(call, path);
}

static void delay_on(int fd) {
  const char* const part = getenv("FAULTY_SLOW");
  char link[64], path[4096] = {0};
  if (!part) return;
  snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
  if (readlink(link, path, sizeof path - 1) > 0 && strstr(path, part)) sleep(10);
}

int open(const char* path, int flags, ...) {
  static int (*real)(const char*, int, ...);
  const char* const end = getenv("FAULTY_READ");
  const size_t length = strlen(path);
  if (!real) *(void**)&real = dlsym(RTLD_NEXT, "open");
  if (end && (flags & O_ACCMODE) == O_RDONLY && length >= strlen(end) &&
      strcmp(path + length - strlen(end), end) == 0) {
    errno = EIO;
    return -1;
  }
  if ((flags & O_ACCMODE) != O_RDONLY && fails("open", path)) return -1;
  va_list rest;
  va_start(rest, flags);
  const mode_t mode = flags & (O_CREAT | O_TMPFILE) ? va_arg(rest, mode_t) : 0;
  va_end(rest);
  return real(path, flags, mode);
}

static long clock_error(void) {
  const char* const path = getenv("FAULTY_CLOCK");
  char text[32] = {0};
  const int fd = path ? open(path, O_RDONLY | O_CLOEXEC) : -1;
  if (fd < 0) return 0;
  if (read(fd, text, sizeof text - 1) < 0) text[0] = 0;
  close(fd);
  return atol(text);
}

int clock_gettime(clockid_t clock, struct timespec* time) {
  static int (*real)(clockid_t, struct timespec*);
  if (!real) *(void**)&real = dlsym(RTLD_NEXT, "clock_gettime");
  const int result = real(clock, time);
  if (clock == CLOCK_REALTIME) time->tv_sec += clock_error();
  return result;
}

int gettimeofday(struct timeval* restrict time, void* restrict zone) {
  struct timespec now;
  (void)zone;
  clock_gettime(CLOCK_REALTIME, &now);
  time->tv_sec = now.tv_sec;
  time->tv_usec = now.tv_nsec / 1000;
  return 0;
}

int fsync(int fd) {
  static int (*real)(int);
  const char* const path = getenv("FAULTY_FSYNC");
  if (!real) *(void**)&real = dlsym(RTLD_NEXT, "fsync");
  if (path && access(path, F_OK) == 0) sleep(2);
  return fails_on("fsync", fd) ? -1 : real(fd);
}

int fallocate(int fd, int mode, off_t offset, off_t length) {
  static int (*real)(int, int, off_t, off_t);
  if (!real) *(void**)&real = dlsym(RTLD_NEXT, "fallocate");
  return fails_on("fallocate", fd) ? -1 : real(fd, mode, offset, length);
}

int mkdir(const char* path, mode_t mode) {
  static int (*real)(const char*, mode_t);
  if (!real) *(void**)&real = dlsym(RTLD_NEXT, "mkdir");
  return fails("mkdir", path) ? -1 : real(path, mode);
}

int rename(const char* from, const char* to) {
  static int (*real)(const char*, const char*);
  if (!real) *(void**)&real = dlsym(RTLD_NEXT, "rename");
  return fails("rename", from) ? -1 : real(from, to);
}

int link(const char* from, const char* to) {
  static int (*real)(const char*, const char*);
  if (!real) *(void**)&real = dlsym(RTLD_NEXT, "link");
  return fails("link", to) ? -1 : real(from, to);
}

int symlink(const char* target, const char* path) {
  static int (*real)(const char*, const char*);
  if (!real) *(void**)&real = dlsym(RTLD_NEXT, "symlink");
  return fails("symlink", path) ? -1 : real(target, path);
}

// As std::filesystem removes files: relative to a folder that is open.
int unlinkat(int folder, const char* path, int flags) {
  static int (*real)(int, const char*, int);
  char link[64], whole[4096] = {0};
  if (!real) *(void**)&real = dlsym(RTLD_NEXT, "unlinkat");
  snprintf(link, sizeof link, "/proc/self/fd/%d", folder);
  if (folder < 0 || readlink(link, whole, sizeof whole - 1) < 0) whole[0] = 0;
  strncat(whole, "/", sizeof whole - strlen(whole) - 1);
  strncat(whole, path, sizeof whole - strlen(whole) - 1);
  return fails("unlink", whole) ? -1 : real(folder, path, flags);
}

int statvfs(const char* restrict path, struct statvfs* restrict status) {
  static int (*real)(const char*, struct statvfs*);
  if (!real) *(void**)&real = dlsym(RTLD_NEXT, "statvfs");
  return fails("statvfs", path) ? -1 : real(path, status);
}

// How much of `bytes` is written; -1: none, EINTR.
static ssize_t shortened(size_t bytes) {
  static int calls;
  const size_t most = 8192;
  if (!getenv("FAULTY_WRITE") || bytes <= most) return (ssize_t)bytes;
  if (__atomic_add_fetch(&calls, 1, __ATOMIC_SEQ_CST) % 3 == 0) {
    errno = EINTR;
    return -1;
  }
  return (ssize_t)most;
}

ssize_t write(int fd, const void* bytes, size_t count) {
  static ssize_t (*real)(int, const void*, size_t);
  if (!real) *(void**)&real = dlsym(RTLD_NEXT, "write");
  delay_on(fd);
  if (fails_on("write", fd)) return -1;
  const ssize_t some = shortened(count);
  return some < 0 ? some : real(fd, bytes, (size_t)some);
}

ssize_t pwrite(int fd, const void* bytes, size_t count, off_t offset) {
  static ssize_t (*real)(int, const void*, size_t, off_t);
  if (!real) *(void**)&real = dlsym(RTLD_NEXT, "pwrite");
  delay_on(fd);
  const ssize_t some = shortened(count);
  return some < 0 ? some : real(fd, bytes, (size_t)some, offset);
}

ssize_t pwrite64(int fd, const void* bytes, size_t count, off_t offset) {
  return pwrite(fd, bytes, count, offset);
}
