// io_uring without liburing: io_uring_setup(2), io_uring_enter(2), and two rings in memory shared
// with the kernel, whose heads and tails are accessed as in io_uring(7).
#include <linux/io_uring.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <bit>
#include <cerrno>
#include <deque>
#include <utility>

#include "lib/core/descriptor.h"
#include "lib/core/disk/async_queue.h"

namespace scaletrain::core {
namespace {

// Memory shared with the kernel.
class Mapping {
 public:
  Mapping() = default;
  Mapping(int fd, std::size_t bytes, off_t what) : bytes_(bytes) {
    void* const found =
        ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_POPULATE, fd, what);
    if (found != MAP_FAILED) begin_ = static_cast<std::byte*>(found);
  }
  Mapping(Mapping&& other) noexcept
      : begin_(std::exchange(other.begin_, nullptr)), bytes_(other.bytes_) {}
  Mapping& operator=(Mapping&& other) noexcept {
    std::swap(begin_, other.begin_);
    std::swap(bytes_, other.bytes_);
    return *this;
  }
  ~Mapping() {
    if (begin_ != nullptr) ::munmap(begin_, bytes_);
  }

  explicit operator bool() const { return begin_ != nullptr; }
  template <class T>
  T* at(std::size_t offset) const {
    return reinterpret_cast<T*>(begin_ + offset);
  }

 private:
  std::byte* begin_ = nullptr;
  std::size_t bytes_ = 0;
};

class RingQueue : public AsyncQueue {
 public:
  // Takes over the ring; has_room() is false if its memory is not available.
  RingQueue(Descriptor ring, const io_uring_params& params, int fd)
      : ring_(std::move(ring)), fd_(fd) {
    const std::size_t sent_bytes = params.sq_off.array + params.sq_entries * sizeof(unsigned);
    const std::size_t done_bytes = params.cq_off.cqes + params.cq_entries * sizeof(io_uring_cqe);
    rings_ = Mapping(ring_.get(), std::max(sent_bytes, done_bytes), IORING_OFF_SQ_RING);
    entries_ = Mapping(ring_.get(), params.sq_entries * sizeof(io_uring_sqe), IORING_OFF_SQES);
    if (!has_room()) return;
    sent_tail_ = rings_.at<unsigned>(params.sq_off.tail);
    sent_mask_ = *rings_.at<unsigned>(params.sq_off.ring_mask);
    sent_ = rings_.at<unsigned>(params.sq_off.array);
    done_head_ = rings_.at<unsigned>(params.cq_off.head);
    done_tail_ = rings_.at<unsigned>(params.cq_off.tail);
    done_mask_ = *rings_.at<unsigned>(params.cq_off.ring_mask);
    done_ = rings_.at<io_uring_cqe>(params.cq_off.cqes);
  }

  bool has_room() const { return rings_ && entries_; }

  // Requests through the page cache are passed to the kernel's threads, since they would block
  // here.
  void begin(AsyncPart& part, bool is_direct) override {
    const unsigned tail = *sent_tail_;
    const unsigned place = tail & sent_mask_;
    io_uring_sqe& entry = entries_.at<io_uring_sqe>(0)[place];
    entry = {};
    entry.opcode = part.writes ? IORING_OP_WRITE : IORING_OP_READ;
    entry.flags = is_direct ? 0 : IOSQE_ASYNC;
    entry.fd = fd_;
    entry.off = static_cast<std::uint64_t>(part.place);
    entry.addr = reinterpret_cast<std::uintptr_t>(part.memory);
    entry.len = static_cast<std::uint32_t>(part.bytes);
    entry.user_data = reinterpret_cast<std::uintptr_t>(&part);
    sent_[place] = place;
    std::atomic_ref(*sent_tail_).store(tail + 1, std::memory_order_release);
    for (;;) {
      const long taken = enter(1, 0, 0);
      if (taken == 1) return;
      if (taken < 0 && (errno == EINTR || errno == EAGAIN || errno == EBUSY)) continue;
      // The kernel reads entries only up to the tail.
      std::atomic_ref(*sent_tail_).store(tail, std::memory_order_release);
      refused_.push_back({&part, taken < 0 ? -errno : -EIO});
      return;
    }
  }

  Done wait() override {
    if (!refused_.empty()) {
      const Done done = refused_.front();
      refused_.pop_front();
      return done;
    }
    const unsigned head = *done_head_;
    while (head == std::atomic_ref(*done_tail_).load(std::memory_order_acquire)) {
      enter(0, 1, IORING_ENTER_GETEVENTS);  // may return early, with EINTR
    }
    const io_uring_cqe& entry = done_[head & done_mask_];
    const Done done{std::bit_cast<AsyncPart*>(static_cast<std::uintptr_t>(entry.user_data)),
                    entry.res};
    std::atomic_ref(*done_head_).store(head + 1, std::memory_order_release);
    return done;
  }

 private:
  long enter(unsigned sent, unsigned done, unsigned flags) const {
    return ::syscall(__NR_io_uring_enter, ring_.get(), sent, done, flags, nullptr, 0);
  }

  Descriptor ring_;
  int fd_;
  Mapping rings_, entries_;
  // In `rings_`: entry numbers for the kernel, and completed ones from it.
  unsigned *sent_tail_ = nullptr, *sent_ = nullptr, *done_head_ = nullptr, *done_tail_ = nullptr;
  unsigned sent_mask_ = 0, done_mask_ = 0;
  io_uring_cqe* done_ = nullptr;
  std::deque<Done> refused_;
};

}  // namespace

std::unique_ptr<AsyncQueue> make_ring_queue(int fd, std::size_t most) {
  io_uring_params params = {};
  Descriptor ring(
      static_cast<int>(::syscall(__NR_io_uring_setup, static_cast<unsigned>(most), &params)));
  if (!ring) return nullptr;
  // One mapping for both rings, and reads and writes without iovec: Linux 5.6.
  constexpr unsigned kNeeded =
      IORING_FEAT_SINGLE_MMAP | IORING_FEAT_NODROP | IORING_FEAT_RW_CUR_POS;
  if ((params.features & kNeeded) != kNeeded) {
    errno = ENOSYS;
    return nullptr;
  }
  auto queue = std::make_unique<RingQueue>(std::move(ring), params, fd);
  if (!queue->has_room()) return nullptr;
  return queue;
}

}  // namespace scaletrain::core
