#include "lib/dist/shm/arena.h"

#include <c10/util/Exception.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <linux/futex.h>
#include <sched.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <charconv>
#include <climits>
#include <filesystem>
#include <new>

#include "lib/core/error.h"
#include "lib/core/process/cores.h"

namespace scaletrain::dist {

// A number that only grows, and wraps around.
struct alignas(64) ShmArena::Counter {
  std::atomic<std::uint32_t> value;
  std::atomic<std::uint32_t> sleepers;

  bool reached(std::uint32_t target) const {
    return static_cast<std::int32_t>(value.load(std::memory_order_acquire) - target) >= 0;
  }
};

struct ShmArena::Line {
  Counter published, done;  // rounds
};

struct ShmArena::Page {
  std::uint64_t token;
  ArenaShape shape;
  std::atomic<std::uint32_t> lost;  // kGone or kGaveUp, and the rank; 0: none
};

namespace {

constexpr const char* kLabel = "scaletrain-exchange";
constexpr std::size_t kPageBytes = 4096;
constexpr int kSpins = 2000;  // some tens of microseconds: a peer of as much work is there soon
constexpr int kYields = 2;
constexpr std::chrono::milliseconds kSlice{50};  // interval of checks that a peer lives

// Flags that a rank reports to all others.
constexpr std::uint32_t kGone = 1U << 30U, kGaveUp = 1U << 31U;

std::string text_of_lost(std::uint32_t lost) {
  const bool gone = (lost & kGone) != 0;
  return fmt::format("rank {} of the group {}", lost & ~(kGone | kGaveUp),
                     gone ? "is gone" : "has given up");
}

std::size_t round_up(std::size_t bytes, std::size_t to) { return (bytes + to - 1) / to * to; }

[[noreturn]] void throw_no_memory(const char* what, int error) {
  throw core::Error(core::ExitCode::kMemory, "shared memory",
                    fmt::format("{}: {}", what, core::errno_text(error)));
}

[[noreturn]] void throw_lost_rank(const std::string& text) {
  throw c10::DistNetworkError({__func__, "arena.cpp", __LINE__}, text);
}

void relax() {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  asm volatile("yield");
#endif
}

std::uint64_t random_token() {
  std::uint64_t token = 0;
  if (::getrandom(&token, sizeof token, 0) != sizeof token) throw_no_memory("getrandom", errno);
  return token;
}

struct flock lock_of(int rank) {
  struct flock lock {};
  lock.l_type = F_WRLCK;
  lock.l_whence = SEEK_SET;
  lock.l_start = rank;
  lock.l_len = 1;
  return lock;
}

}  // namespace

ShmArena::ShmArena(const ArenaShape& shape)
    : shape_(shape), rank_(0), fd_(::memfd_create(kLabel, MFD_CLOEXEC)), token_(random_token()) {
  if (!fd_) throw_no_memory("memfd_create", errno);
  map(/*create=*/true);
  new (&page()) Page{.token = token_, .shape = shape_, .lost = 0};
  for (int rank = 0; rank < shape_.ranks; ++rank) new (&line(rank)) Line{};
}

// The address is a path and a number that the file begins with.
ShmArena::ShmArena(const std::string& address, int rank) : rank_(rank) {
  const std::size_t space = address.find(' ');
  const std::string path = address.substr(0, space);
  if (space != std::string::npos) {
    std::from_chars(address.data() + space + 1, address.data() + address.size(), token_);
  }
  std::error_code failed;
  const std::string file = std::filesystem::read_symlink(path, failed);
  if (failed) throw_no_memory("opening it by /proc", failed.value());
  if (file.find(kLabel) == std::string::npos) throw_no_memory("the other rank's file", ENXIO);
  fd_ = core::Descriptor(::open(path.c_str(), O_RDWR | O_CLOEXEC));
  if (!fd_) throw_no_memory("opening it by /proc", errno);
  Page found{};
  if (::pread(fd_.get(), &found, sizeof found, 0) != sizeof found || found.token != token_) {
    throw_no_memory("the other rank's file", ENXIO);
  }
  shape_ = found.shape;
  map(/*create=*/false);
}

void ShmArena::map(bool create) {
  stride_ = round_up(kHeadBytes + shape_.slot_bytes, kPageBytes);
  bytes_ =
      round_up(kPageBytes + sizeof(Line) * static_cast<std::size_t>(shape_.ranks), kPageBytes) +
      stride_ * static_cast<std::size_t>(shape_.ranks) * static_cast<std::size_t>(shape_.slots);
  if (create) {
    // Now, since a page that is not there later ends the process.
    if (const int error = ::posix_fallocate(fd_.get(), 0, static_cast<off_t>(bytes_)); error != 0) {
      throw_no_memory(fmt::format("{} bytes", bytes_).c_str(), error);
    }
  }
  struct flock lock = lock_of(rank_);
  if (::fcntl(fd_.get(), F_OFD_SETLK, &lock) != 0) throw_no_memory("lock", errno);
  void* const mapped =
      ::mmap(nullptr, bytes_, PROT_READ | PROT_WRITE, MAP_SHARED, fd_.get(), /*offset=*/0);
  if (mapped == MAP_FAILED) throw_no_memory("mmap", errno);
  base_ = static_cast<std::byte*>(mapped);
  spins_ = shape_.ranks <= core::usable_cores() ? kSpins : 0;
}

ShmArena::~ShmArena() {
  if (base_ != nullptr) ::munmap(base_, bytes_);
}

std::string ShmArena::address() const {
  return fmt::format("/proc/{}/fd/{} {}", ::getpid(), fd_.get(), token_);
}

ShmArena::Page& ShmArena::page() const { return *reinterpret_cast<Page*>(base_); }

ShmArena::Line& ShmArena::line(int rank) const {
  return reinterpret_cast<Line*>(base_ + kPageBytes)[rank];
}

std::byte* ShmArena::head(int rank, std::uint32_t round) const {
  const std::size_t first = bytes_ - stride_ * static_cast<std::size_t>(shape_.ranks) *
                                         static_cast<std::size_t>(shape_.slots);
  const std::size_t number =
      static_cast<std::size_t>(rank) * static_cast<std::size_t>(shape_.slots) +
      round % static_cast<std::uint32_t>(shape_.slots);
  return base_ + first + stride_ * number;
}

void ShmArena::await_free(std::uint32_t round, const Patience& patience) {
  const std::uint32_t target = round + 1 - static_cast<std::uint32_t>(shape_.slots);
  for (int rank = 0; rank < shape_.ranks; ++rank) {
    if (rank != rank_) wait_until(line(rank).done, target, rank, patience);
  }
}

void ShmArena::await(int rank, std::uint32_t round, const Patience& patience) {
  wait_until(line(rank).published, round + 1, rank, patience);
}

namespace {

template <class Counter>
void raise_to(Counter& counter, std::uint32_t value) {
  counter.value.store(value, std::memory_order_seq_cst);
  if (counter.sleepers.load(std::memory_order_seq_cst) == 0) return;
  ::syscall(SYS_futex, &counter.value, FUTEX_WAKE, INT_MAX, nullptr, nullptr, 0);
}

}  // namespace

void ShmArena::publish(std::uint32_t round) { raise_to(line(rank_).published, round + 1); }

void ShmArena::done(std::uint32_t round) { raise_to(line(rank_).done, round + 1); }

void ShmArena::wait_until(Counter& counter, std::uint32_t target, int rank,
                          const Patience& patience) {
  for (int i = 0; i < spins_; ++i) {
    if (counter.reached(target)) return;
    relax();
  }
  for (int i = 0; i < kYields; ++i) {
    if (counter.reached(target)) return;
    ::sched_yield();
  }
  const timespec slice{.tv_sec = 0, .tv_nsec = std::chrono::nanoseconds(kSlice).count()};
  while (!counter.reached(target)) {
    counter.sleepers.fetch_add(1, std::memory_order_seq_cst);
    const std::uint32_t seen = counter.value.load(std::memory_order_seq_cst);
    long woken = 0;
    if (static_cast<std::int32_t>(seen - target) < 0) {
      woken = ::syscall(SYS_futex, &counter.value, FUTEX_WAIT, seen, &slice, nullptr, 0);
    }
    const bool slept_long = woken != 0 && errno == ETIMEDOUT;
    counter.sleepers.fetch_sub(1, std::memory_order_seq_cst);
    if (!slept_long || counter.reached(target)) continue;
    check_peer(counter, target, rank, patience);
  }
}

// The peer may itself wait for a third rank, and then reports what it finds.
void ShmArena::check_peer(const Counter& counter, std::uint32_t target, int rank,
                          const Patience& patience) {
  if (const std::uint32_t lost = page().lost.load(); lost != 0) throw_lost_rank(text_of_lost(lost));
  if (patience.stopped->load()) {
    give_up();
    throw_lost_rank("this rank has ended the exchange");
  }
  // Work that a rank finished before it left still counts.
  if (!is_here(rank) && !counter.reached(target)) {
    report_lost(kGone + static_cast<std::uint32_t>(rank));
    throw_lost_rank(fmt::format("rank {} of the group is gone", rank));
  }
  if (core::now() < patience.deadline) return;
  give_up();
  throw_lost_rank(fmt::format("rank {} of the group did not come in time", rank));
}

bool ShmArena::is_here(int rank) const {
  struct flock lock = lock_of(rank);
  return ::fcntl(fd_.get(), F_OFD_GETLK, &lock) != 0 || lock.l_type != F_UNLCK;
}

void ShmArena::give_up() { report_lost(kGaveUp + static_cast<std::uint32_t>(rank_)); }

void ShmArena::report_lost(std::uint32_t lost) {
  std::uint32_t none = 0;
  page().lost.compare_exchange_strong(none, lost);  // the first report stays
}

}  // namespace scaletrain::dist
