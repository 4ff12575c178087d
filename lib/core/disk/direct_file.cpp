#include "lib/core/disk/direct_file.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <condition_variable>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <mutex>
#include <new>
#include <system_error>
#include <thread>
#include <utility>

#include "lib/core/disk/disk_faults.h"
#include "lib/core/disk/huge_pages.h"

namespace scaletrain::core {
namespace {

constexpr std::size_t kDirectUnit = 4096;  // alignment of memory, offsets and sizes
constexpr std::size_t kBlock = std::size_t{4} << 20;
constexpr std::size_t kBlocks = 3;  // one is filled, one is written, one is spare

// False if the file system does not support it.
bool set_direct(int fd, bool is_direct) {
  const int flags = ::fcntl(fd, F_GETFL);
  return flags >= 0 && ::fcntl(fd, F_SETFL, is_direct ? flags | O_DIRECT : flags & ~O_DIRECT) == 0;
}

}  // namespace

struct DirectFile::Impl {
  Impl(std::filesystem::path path, Descriptor fd) : path_(std::move(path)), fd_(std::move(fd)) {
    for (Block& block : blocks_) {
      block.memory.reset(static_cast<std::byte*>(std::aligned_alloc(kHugePage, kBlock)));
      if (!block.memory) throw std::bad_alloc();
      ask_for_huge_pages({block.memory.get(), kBlock});
    }
    try {
      thread_ = std::jthread([this](const std::stop_token& stop) { run(stop); });
    } catch (const std::system_error&) {  // no more threads: the caller writes itself
    }
  }

  void write(std::span<const std::byte> bytes) {
    end_lent();
    while (!bytes.empty()) {
      const std::size_t count = std::min(bytes.size(), kBlock - filled_);
      std::memcpy(blocks_[filling_].memory.get() + filled_, bytes.data(), count);
      bytes = bytes.subspan(count);
      filled_ += count;
      if (filled_ == kBlock) hand_over_block();
    }
  }

  void write_lasting(std::span<const std::byte> bytes) {
    if (!lent_.empty() && lent_.data() + lent_.size() == bytes.data()) {
      lent_ = {lent_.data(), lent_.size() + bytes.size()};
    } else {
      end_lent();
      const bool is_aligned = reinterpret_cast<std::uintptr_t>(bytes.data()) % kDirectUnit == 0 &&
                              filled_ % kDirectUnit == 0;
      if (!is_aligned) return write(bytes);
      if (filled_ > 0) hand_over_block();
      lent_ = bytes;
    }
    while (lent_.size() >= kBlock) hand_over_lent(kBlock);
  }

  // The remaining bytes are no whole block and go through the page cache.
  void sync() {
    end_lent();
    wait_until_written(handed_over_);
    write_out({blocks_[filling_].memory.get(), std::exchange(filled_, 0)});
    throw_fault();
    if (::fsync(fd_.get()) != 0) throw_disk_fault(path_, "sync", errno);
  }

  // Passes the block to the thread and continues with a block that the thread has written.
  void hand_over_block() {
    Block& block = blocks_[filling_];
    hand_over({block.memory.get(), std::exchange(filled_, 0)});
    block.part = handed_over_;
    filling_ = (filling_ + 1) % kBlocks;
    wait_until_written(blocks_[filling_].part);
  }

  void hand_over_lent(std::size_t count) {
    hand_over(lent_.first(count));
    lent_ = lent_.subspan(count);
  }

  // Writes whole pages of lent memory directly and copies the rest.
  void end_lent() {
    if (lent_.empty()) return;
    if (const std::size_t whole = lent_.size() / kDirectUnit * kDirectUnit) hand_over_lent(whole);
    std::copy(lent_.begin(), lent_.end(), blocks_[filling_].memory.get());
    filled_ = std::exchange(lent_, {}).size();
  }

  void hand_over(std::span<const std::byte> part) {
    ++handed_over_;
    if (thread_.joinable()) {
      {
        const std::lock_guard lock(mutex_);
        parts_.push_back(part);
      }
      changed_.notify_all();
    } else {
      write_out(part);
      ++written_;
    }
    throw_fault();
  }

  void wait_until_written(std::size_t parts) {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return written_ >= parts || fault_ != 0; });
    lock.unlock();
    throw_fault();
  }

  void throw_fault() {
    const std::lock_guard lock(mutex_);
    if (fault_ != 0) throw_disk_fault(path_, "write", fault_);
  }

  void run(const std::stop_token& stop) {
    std::unique_lock lock(mutex_);
    while (changed_.wait(lock, stop, [this] { return !parts_.empty(); }) && fault_ == 0) {
      const std::span<const std::byte> part = parts_.front();
      parts_.pop_front();
      lock.unlock();
      write_out(part);
      lock.lock();
      ++written_;
      changed_.notify_all();
    }
  }

  // Appends to the file: whole pages directly, the rest through the page cache.
  void write_out(std::span<const std::byte> bytes) {
    while (!bytes.empty()) {
      const std::size_t whole = bytes.size() / kDirectUnit * kDirectUnit;
      if (is_direct_ && whole == 0 && !end_direct()) return;
      const std::size_t now = is_direct_ ? whole : bytes.size();
      const ssize_t written = ::pwrite(fd_.get(), bytes.data(), now, place_);
      if (written < 0 && errno == EINTR) continue;
      // Pages of this file system are larger, or it only claimed to support direct I/O.
      if (written < 0 && is_direct_ && (errno == EINVAL || errno == EOPNOTSUPP)) {
        if (!end_direct()) return;
        continue;
      }
      if (written < 0) return set_fault(errno);
      if (written == 0) return set_fault(EIO);
      // After a partial page the next write cannot be direct.
      auto progress = static_cast<std::size_t>(written);
      if (is_direct_ && progress < now) {
        progress = progress / kDirectUnit * kDirectUnit;
        if (progress == 0 && !end_direct()) return;
      }
      bytes = bytes.subspan(progress);
      place_ += static_cast<off_t>(progress);
    }
  }

  // Sends later writes through the page cache. False if that is not possible.
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

  struct Free {
    void operator()(std::byte* memory) const { std::free(memory); }
  };

  // Filled by the caller; handed over, it is a part of the file.
  struct Block {
    std::unique_ptr<std::byte, Free> memory;
    std::size_t part = 0;  // number of the part, from 1, when it was last handed over
  };

  std::filesystem::path path_;
  Descriptor fd_;

  // Used by the caller only.
  std::array<Block, kBlocks> blocks_;
  std::size_t filling_ = 0;          // the number of the block that is filled
  std::size_t filled_ = 0;           // bytes in it
  std::span<const std::byte> lent_;  // lent bytes after the block, not handed over yet
  std::size_t handed_over_ = 0;      // number of parts

  // Used by the writer only: the thread, or the caller while the thread is idle.
  bool is_direct_ = true;
  off_t place_ = 0;

  std::mutex mutex_;
  std::condition_variable_any changed_;
  std::deque<std::span<const std::byte>> parts_;  // consecutive parts of the file; pages
  std::size_t written_ = 0;                       // parts
  int fault_ = 0;                                 // errno
  std::jthread thread_;
};

bool begin_direct(int fd) { return set_direct(fd, true); }
bool end_direct(int fd) { return set_direct(fd, false); }

DirectFile::DirectFile(std::filesystem::path path, Descriptor fd)
    : impl_(std::make_unique<Impl>(std::move(path), std::move(fd))) {}
DirectFile::~DirectFile() = default;
void DirectFile::write(std::span<const std::byte> bytes) { impl_->write(bytes); }
void DirectFile::write_lasting(std::span<const std::byte> bytes) { impl_->write_lasting(bytes); }
void DirectFile::sync() { impl_->sync(); }

}  // namespace scaletrain::core
