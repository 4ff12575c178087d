// A delivery on a thread of its own: a tracker that is slow or does not answer delays no other one.
#pragma once

#include <atomic>
#include <condition_variable>
#include <memory>
#include <mutex>
#include <thread>

#include "lib/core/clock.h"
#include "lib/core/descriptor.h"
#include "lib/track/feed/delivery.h"

namespace scaletrain::track {

class Feed {
 public:
  explicit Feed(std::unique_ptr<Delivery> delivery);
  ~Feed();  // waits for a running call of the sink, and drops undelivered items
  Feed(const Feed&) = delete;
  Feed& operator=(const Feed&) = delete;

  // The file is complete: delivers the remaining items, then finishes the sink.
  void end();

  // True if that is done before `until`.
  bool wait_until(core::SteadyTime until) const;

  const Delivery& delivery() const { return *delivery_; }

 private:
  enum class Phase { kFollowing, kEnding, kLeaving };

  void run();
  void enter(Phase phase);
  void wait_and_serve(Phase phase);

  std::unique_ptr<Delivery> delivery_;
  core::Descriptor wake_;  // readable when the phase has changed
  std::atomic<Phase> phase_ = Phase::kFollowing;
  mutable std::mutex mutex_;
  mutable std::condition_variable changed_;
  bool is_done_ = false;
  std::thread thread_;
};

}  // namespace scaletrain::track
