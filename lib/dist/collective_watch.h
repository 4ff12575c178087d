// Watches a rank's collectives that are under way, beside the thread that trains.
//
// All groups of a rank share one watch. On a device, waiting for a collective only queues more
// work, and a thread that waits for the queue hears neither a signal nor that a peer is gone. So a
// thread of its own asks each work whether it is complete. A collective has failed when its work
// says so, when it has taken longer than the limit, or when it is still under way a moment after
// the launcher has reported that a peer is gone. Then the communicator is aborted, which ends the
// wait of a thread that waits for its kernels; from then on check() throws. Where no thread comes
// to check(), because its wait cannot be ended, the process leaves.
#pragma once

#include <c10/util/intrusive_ptr.h>

#include <chrono>
#include <exception>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <torch/csrc/distributed/c10d/Work.hpp>
#include <utility>
#include <vector>

#include "lib/core/clock.h"
#include "lib/core/process/beat.h"
#include "lib/dist/collective_fault.h"
#include "lib/dist/watched.h"

namespace scaletrain::dist {

class CollectiveWatch : public CollectiveListener {
 public:
  // How long after the launcher's word a collective may still complete: a peer that is gone may
  // have done its part before.
  static constexpr std::chrono::seconds kLastWordPatience{1};
  // How long a thread that waits has to come back after the abort.
  static constexpr std::chrono::seconds kReturnPatience{3};

  struct Options {
    int rank = 0;
    std::chrono::milliseconds limit{0};  // timeout of a collective; 0: its backend has its own
    // Who has waited for a collective has its result. Some works of Gloo never say that themselves.
    bool on_host = false;
    // Ends the process with the failure.
    std::function<void(const std::exception_ptr&)> leave;
    OnEnter on_enter = nullptr;  // before a collective starts
  };
  CollectiveWatch(Options options, core::Beat beat);

  const char* enter(const char* kind) override;
  void started(const char* name, c10::intrusive_ptr<c10d::Work> work) override;

  // Bracket an operation without a c10d work, such as connecting; one at a time.
  void begin(const char* kind, const char* name);
  void end();

  // How `owner`'s communicator is aborted, once there is one; from a thread of its own. One failure
  // aborts them all: a rank that waits in another group waits for the same lost peer.
  void add_abort(const void* owner, std::function<void()> abort);
  void remove_abort(const void* owner);

  // To be called every few milliseconds. Does not throw.
  void look(core::SteadyTime now);

  // Who asked for `work` has waited for it: lets go of it and of what else is complete, so that
  // their tensors are the caller's again at once; on a device it may still be under way. Throws
  // what check() does.
  void settle(const c10d::Work& work);

  // Throws what the first collective failed with: core::StoppedError or core::OutOfMemoryError.
  void check();

 private:
  struct UnderWay {
    std::string name;
    core::SteadyTime begun;
    c10::intrusive_ptr<c10d::Work> work;  // null: begin()
  };
  template <class IsOver>
  std::vector<UnderWay> take(const IsOver& is_over);
  std::exception_ptr find_failure(core::SteadyTime now);
  std::exception_ptr failure_of(const UnderWay& one, core::SteadyTime now) const;

  Options options_;
  core::Beat beat_;
  std::mutex mutex_;
  std::vector<UnderWay> under_way_;
  core::SteadyTime peer_lost_{};  // when the launcher's word was heard; {}: not yet
  std::exception_ptr failure_;
  core::SteadyTime failed_{};
  bool reported_ = false;  // check() has thrown
  std::vector<std::pair<const void*, std::function<void()>>> aborts_;
  std::jthread aborting_;
};

}  // namespace scaletrain::dist
