#include <unistd.h>

#include <cerrno>
#include <condition_variable>
#include <deque>
#include <mutex>
#include <system_error>
#include <thread>

#include "lib/core/disk/async_queue.h"

namespace scaletrain::core {
namespace {

class ThreadQueue : public AsyncQueue {
 public:
  explicit ThreadQueue(int fd) : fd_(fd) {
    try {
      thread_ = std::jthread([this](const std::stop_token& stop) { run(stop); });
    } catch (const std::system_error&) {
    }
  }

  void begin(AsyncPart& part, bool /*is_direct*/) override {
    const bool has_thread = thread_.joinable();
    const Done done = has_thread ? Done{} : take(part);
    {
      const std::lock_guard lock(mutex_);
      if (has_thread) parts_.push_back(&part);
      if (!has_thread) done_.push_back(done);
    }
    changed_.notify_all();
  }

  Done wait() override {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [this] { return !done_.empty(); });
    const Done done = done_.front();
    done_.pop_front();
    return done;
  }

 private:
  void run(const std::stop_token& stop) {
    std::unique_lock lock(mutex_);
    while (changed_.wait(lock, stop, [this] { return !parts_.empty(); })) {
      AsyncPart& part = *parts_.front();
      parts_.pop_front();
      lock.unlock();
      const Done done = take(part);
      lock.lock();
      done_.push_back(done);
      changed_.notify_all();
    }
  }

  Done take(AsyncPart& part) const {
    const ssize_t result = part.writes ? ::pwrite(fd_, part.memory, part.bytes, part.place)
                                       : ::pread(fd_, part.memory, part.bytes, part.place);
    return {&part, result < 0 ? -errno : result};
  }

  int fd_;
  std::mutex mutex_;
  std::condition_variable_any changed_;
  std::deque<AsyncPart*> parts_;
  std::deque<Done> done_;
  std::jthread thread_;  // last member, so that it is joined first
};

}  // namespace

std::unique_ptr<AsyncQueue> make_thread_queue(int fd) { return std::make_unique<ThreadQueue>(fd); }

}  // namespace scaletrain::core
