// Watches a rank's running collectives on a separate thread.
//
// All groups of a rank share one watch. Waiting for a collective on a device only queues more work,
// and a thread that waits for the queue notices neither a signal nor the loss of a peer. So a
// separate thread polls each work object. A collective has failed if its work reports an error, if
// it takes longer than the limit, or if it is still running shortly after the launcher has reported
// a lost peer. Then the communicator is aborted, which ends the wait of a thread for its kernels;
// afterwards check() throws. If no thread reaches check(), because its wait cannot be ended, the
// process exits.
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
  // Time that a collective may still take after the launcher has reported a lost peer: the peer may
  // have done its part before.
  static constexpr std::chrono::seconds kLastWordPatience{1};
  // Time for a waiting thread to return after the abort.
  static constexpr std::chrono::seconds kReturnPatience{3};

  struct Options {
    int rank = 0;
    std::chrono::milliseconds limit{0};  // timeout of a collective; 0: its backend has its own
    // True if a caller that has waited for a collective has its result; some works of Gloo never
    // report completion.
    bool on_host = false;
    // Ends the process with the failure.
    std::function<void(const std::exception_ptr&)> leave;
    OnEnter on_enter = nullptr;  // before a collective starts
  };
  CollectiveWatch(Options options, core::Beat beat);

  const char* enter(const char* kind) override;
  void describe(const std::string& group, std::int64_t bytes) override;
  void started(const char* name, c10::intrusive_ptr<c10d::Work> work) override;

  // Bracket an operation without a c10d work, such as connecting; one at a time.
  void begin(const char* kind, const char* name);
  void end();

  // Sets how `owner`'s communicator is aborted, on a separate thread. One failure aborts all
  // communicators: a rank that waits in another group waits for the same lost peer.
  void add_abort(const void* owner, std::function<void()> abort);
  void remove_abort(const void* owner);

  // Checks all running collectives; call it every few milliseconds. Does not throw.
  void look(core::SteadyTime now);

  // Call after waiting for `work`: releases it and all other completed works, so that their tensors
  // belong to the caller again; on a device the work may still be running. Throws the errors of
  // check().
  void settle(const c10d::Work& work);

  // Throws the error of the first failed collective: core::StoppedError or core::OutOfMemoryError.
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
  core::SteadyTime peer_lost_{};  // when the launcher reported it; {}: not yet
  std::exception_ptr failure_;
  core::SteadyTime failed_{};
  bool reported_ = false;  // check() has thrown
  std::vector<std::pair<const void*, std::function<void()>>> aborts_;
  std::jthread aborting_;
};

}  // namespace scaletrain::dist
