// A stop that is asked for before training begins: there is nothing to save, and LibTorch waits for
// the other ranks without looking at anything else.
#pragma once

#include <condition_variable>
#include <functional>
#include <mutex>
#include <thread>

namespace scaletrain::app {

class EarlyStop {
 public:
  // Calls `leave`, which must not return, once this process is asked to stop (lib/core/signals.h),
  // on a thread of its own.
  explicit EarlyStop(std::function<void()> leave);
  ~EarlyStop();  // from now on others look
  EarlyStop(const EarlyStop&) = delete;
  EarlyStop& operator=(const EarlyStop&) = delete;

 private:
  void watch();

  std::function<void()> leave_;
  std::mutex mutex_;
  std::condition_variable wake_;
  bool over_ = false;
  std::thread watcher_;
};

}  // namespace scaletrain::app
