// Preloaded into a run by tests: a wall clock that jumps and a disk that syncs slowly or
// cannot be read.
//
// FAULTY_CLOCK names a file with the seconds that the wall clock is wrong by, read each time;
// FAULTY_FSYNC names a file: while it is there, every fsync takes two seconds.
// FAULTY_READ is the end of a path that cannot be opened for reading (EIO).
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

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
  return real(fd);
}
