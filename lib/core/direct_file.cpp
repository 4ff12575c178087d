#include "lib/core/direct_file.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <condition_variable>
#include <cstdlib>
#include <cstring>
#include <mutex>
#include <new>
#include <system_error>
#include <thread>
#include <utility>

#include "lib/core/disk_faults.h"

namespace scaletrain::core {
namespace {

constexpr std::size_t kDirectUnit = 4096;  // of memory, places and sizes
constexpr std::size_t kBlock = std::size_t{4} << 20;
constexpr std::size_t kBlocks = 3;  // one is filled, one is written, one waits

struct Free {
  void operator()(std::byte* memory) const { std::free(memory); }
};
using Memory = std::unique_ptr<std::byte, Free>;

// False where the file system cannot.
bool set_direct(int fd, bool is_direct) {
  const int flags = ::fcntl(fd, F_GETFL);
  return flags >= 0 && ::fcntl(fd, F_SETFL, is_direct ? flags | O_DIRECT : flags & ~O_DIRECT) == 0;
}

}  // namespace

struct DirectFile::Impl {
  Impl(std::filesystem::path path, Descriptor fd) : path_(std::move(path)), fd_(std::move(fd)) {
    for (Memory& block : blocks_) {
      block.reset(static_cast<std::byte*>(std::aligned_alloc(kDirectUnit, kBlock)));
      if (!block) throw std::bad_alloc();
    }
    try {
      thread_ = std::jthread([this](const std::stop_token& stop) { run(stop); });
    } catch (const std::system_error&) {  // no more threads: the caller writes
    }
  }

  void write(std::span<const std::byte> bytes) {
    while (!bytes.empty()) {
      const std::size_t count = std::min(bytes.size(), kBlock - filled_);
      std::memcpy(blocks_[filling_ % kBlocks].get() + filled_, bytes.data(), count);
      bytes = bytes.subspan(count);
      filled_ += count;
      if (filled_ == kBlock) hand_over();
    }
  }

  // What is left is no whole block: its last bytes go through the cache.
  void sync() {
    wait_until_written(filling_);
    write_out(blocks_[filling_ % kBlocks].get(), std::exchange(filled_, 0));
    throw_fault();
    if (::fsync(fd_.get()) != 0) throw_disk_fault(path_, "sync", errno);
  }

  // The full block is the thread's, and the next one that it has written is filled.
  void hand_over() {
    if (!thread_.joinable()) {
      write_out(blocks_[filling_ % kBlocks].get(), std::exchange(filled_, 0));
      return throw_fault();
    }
    {
      const std::lock_guard lock(mutex_);
      ++filling_;
    }
    changed_.notify_all();
    filled_ = 0;
    if (filling_ >= kBlocks) wait_until_written(filling_ - kBlocks + 1);
    throw_fault();
  }

  void wait_until_written(std::size_t count) {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return written_ >= count || fault_ != 0; });
    lock.unlock();
    throw_fault();
  }

  void throw_fault() {
    const std::lock_guard lock(mutex_);
    if (fault_ != 0) throw_disk_fault(path_, "write", fault_);
  }

  void run(const std::stop_token& stop) {
    std::unique_lock lock(mutex_);
    while (changed_.wait(lock, stop, [this] { return written_ < filling_; }) && fault_ == 0) {
      const std::byte* const block = blocks_[written_ % kBlocks].get();
      lock.unlock();
      write_out(block, kBlock);
      lock.lock();
      ++written_;
      changed_.notify_all();
    }
  }

  // `count` bytes behind those before, past the cache as far as they fill whole pages.
  void write_out(const std::byte* bytes, std::size_t count) {
    for (std::size_t done = 0; done < count;) {
      const std::size_t left = count - done;
      const std::size_t whole = left / kDirectUnit * kDirectUnit;
      if (is_direct_ && whole == 0 && !end_direct()) return;
      const std::size_t now = is_direct_ ? whole : left;
      const ssize_t written = ::pwrite(fd_.get(), bytes + done, now, place_);
      if (written < 0 && errno == EINTR) continue;
      // Pages of this file system are larger, or it only seemed to be able.
      if (written < 0 && is_direct_ && (errno == EINVAL || errno == EOPNOTSUPP)) {
        if (!end_direct()) return;
        continue;
      }
      if (written < 0) return set_fault(errno);
      if (written == 0) return set_fault(EIO);
      // Part of a page cannot be followed by a write past the cache.
      auto progress = static_cast<std::size_t>(written);
      if (is_direct_ && progress < now) {
        progress = progress / kDirectUnit * kDirectUnit;
        if (progress == 0 && !end_direct()) return;
      }
      done += progress;
      place_ += static_cast<off_t>(progress);
    }
  }

  // What follows goes through the cache. False: it cannot.
  bool end_direct() {
    if (set_direct(fd_.get(), false)) {
      is_direct_ = false;
    } else {
      set_fault(errno);
    }
    return !is_direct_;
  }

  void set_fault(int error) {
    const std::lock_guard lock(mutex_);
    fault_ = error;
    changed_.notify_all();
  }

  std::filesystem::path path_;
  Descriptor fd_;
  std::array<Memory, kBlocks> blocks_;
  std::size_t filled_ = 0;  // bytes of the block that is filled

  // Only who writes uses these: the thread, or sync() when the thread has nothing to do.
  bool is_direct_ = true;
  off_t place_ = 0;

  std::mutex mutex_;
  std::condition_variable_any changed_;
  std::size_t filling_ = 0;  // the number of the block that is filled; those before are full
  std::size_t written_ = 0;  // blocks
  int fault_ = 0;            // errno
  std::jthread thread_;
};

bool begin_direct(int fd) { return set_direct(fd, true); }

DirectFile::DirectFile(std::filesystem::path path, Descriptor fd)
    : impl_(std::make_unique<Impl>(std::move(path), std::move(fd))) {}
DirectFile::~DirectFile() = default;
void DirectFile::write(std::span<const std::byte> bytes) { impl_->write(bytes); }
void DirectFile::sync() { impl_->sync(); }

}  // namespace scaletrain::core
