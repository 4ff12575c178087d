#include "app/worker/early_stop.h"

#include <chrono>
#include <utility>

#include "lib/core/signals.h"

namespace scaletrain::app {
namespace {

constexpr std::chrono::milliseconds kLookEvery{20};

}  // namespace

EarlyStop::EarlyStop(std::function<void()> leave)
    : leave_(std::move(leave)), watcher_([this] { watch(); }) {}

EarlyStop::~EarlyStop() {
  {
    const std::lock_guard lock(mutex_);
    over_ = true;
  }
  wake_.notify_all();
  watcher_.join();
}

void EarlyStop::watch() {
  std::unique_lock lock(mutex_);
  while (!over_) {
    if (core::stop_reason() != core::StopReason::kNone) leave_();
    wake_.wait_for(lock, kLookEvery, [this] { return over_; });
  }
}

}  // namespace scaletrain::app
