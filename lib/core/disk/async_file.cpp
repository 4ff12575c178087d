#include "lib/core/disk/async_file.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <map>
#include <utility>

#include "lib/core/disk/async_queue.h"
#include "lib/core/disk/direct_file.h"
#include "lib/core/disk/disk_faults.h"
#include "lib/core/error.h"

namespace scaletrain::core {
namespace {

// Bytes of one request; several run at the same time.
constexpr std::size_t kPart = std::size_t{4} << 20;
constexpr std::size_t kUnderWay = 64;

}  // namespace

class AsyncFile::Impl {
 public:
  Impl(std::filesystem::path path, Descriptor fd, Way way)
      : path_(std::move(path)), fd_(std::move(fd)), is_direct_(begin_direct(fd_.get())) {
    if (way != Way::kThread) queue_ = make_ring_queue(fd_.get(), kUnderWay);
    has_ring_ = queue_ != nullptr;
    if (!has_ring_ && way == Way::kRing) throw_disk_fault(path_, "use io_uring on it", errno);
    if (!has_ring_) queue_ = make_thread_queue(fd_.get());
  }

  ~Impl() {
    while (under_way_ > 0) finish_one();
  }

  std::uint64_t begin(bool writes, std::int64_t place, std::byte* memory, std::size_t bytes) {
    const std::uint64_t number = ++last_;
    Range& range = ranges_[number];
    range.writes = writes;
    range.parts = (bytes + kPart - 1) / kPart;
    for (std::size_t from = 0; from < bytes; from += kPart) {
      if (under_way_ == kUnderWay) finish_one();
      auto part = std::make_unique<AsyncPart>();
      *part = {.writes = writes,
               .memory = memory + from,
               .bytes = std::min(kPart, bytes - from),
               .place = place + static_cast<std::int64_t>(from),
               .range = number};
      ++under_way_;
      queue_->begin(*part.release(), is_direct_);
    }
    return number;
  }

  void wait(std::uint64_t number) {
    const auto found = ranges_.find(number);
    if (found == ranges_.end()) return;
    while (found->second.parts > 0) finish_one();
    const Range range = found->second;
    ranges_.erase(found);
    if (range.ends_at >= 0) {
      throw StorageError(path_.string(), fmt::format("ends at byte {}", range.ends_at),
                         "another program truncated it: give this job its own folder");
    }
    if (range.error != 0) throw_disk_fault(path_, range.writes ? "write" : "read", range.error);
  }

  bool has_ring() const { return has_ring_; }

 private:
  struct Range {
    bool writes = false;
    std::size_t parts = 0;  // requests that are running
    int error = 0;
    std::int64_t ends_at = -1;  // end of the file, if it is before the end of the range
  };

  // Waits for a part; an incomplete part is continued.
  void finish_one() {
    const AsyncQueue::Done done = queue_->wait();
    std::unique_ptr<AsyncPart> part(done.part);
    Range& range = ranges_.at(part->range);
    if (goes_on(*part, done.result, range)) {
      queue_->begin(*part.release(), is_direct_);
      return;
    }
    --range.parts;
    --under_way_;
  }

  // `result`: bytes, or an errno below zero.
  bool goes_on(AsyncPart& part, std::int64_t result, Range& range) {
    if (result == -EINTR || result == -EAGAIN) return true;
    // Pages of this file system are larger, or it only claimed to support direct I/O.
    if (result == -EINVAL || result == -EOPNOTSUPP) {
      if (std::exchange(is_direct_, false) && end_direct(fd_.get())) return true;
    }
    if (result < 0) {
      range.error = static_cast<int>(-result);
      return false;
    }
    if (result == 0) {
      if (part.writes) range.error = EIO;
      if (!part.writes) range.ends_at = part.place;
      return false;
    }
    auto done = static_cast<std::size_t>(result);
    // Direct I/O cannot continue after a part of a page.
    if (is_direct_ && done < part.bytes) done = done / kAsyncUnit * kAsyncUnit;
    if (done == 0 && std::exchange(is_direct_, false) && !end_direct(fd_.get())) {
      range.error = errno;
      return false;
    }
    part.memory += done;
    part.place += static_cast<std::int64_t>(done);
    part.bytes -= done;
    return part.bytes > 0;
  }

  std::filesystem::path path_;
  Descriptor fd_;
  bool is_direct_;
  bool has_ring_ = false;
  std::unique_ptr<AsyncQueue> queue_;
  std::map<std::uint64_t, Range> ranges_;  // ranges that nobody has waited for yet
  std::uint64_t last_ = 0;
  std::size_t under_way_ = 0;  // parts
};

AsyncFile::AsyncFile(std::filesystem::path path, Descriptor fd, Way way)
    : impl_(std::make_unique<Impl>(std::move(path), std::move(fd), way)) {}
AsyncFile::~AsyncFile() = default;

std::uint64_t AsyncFile::read(std::int64_t place, std::span<std::byte> memory) {
  return impl_->begin(/*writes=*/false, place, memory.data(), memory.size());
}

std::uint64_t AsyncFile::write(std::int64_t place, std::span<const std::byte> memory) {
  // The memory is only read.
  return impl_->begin(/*writes=*/true, place, const_cast<std::byte*>(memory.data()), memory.size());
}

void AsyncFile::wait(std::uint64_t number) { impl_->wait(number); }
bool AsyncFile::has_ring() const { return impl_->has_ring(); }

}  // namespace scaletrain::core
