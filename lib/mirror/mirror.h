// Remote checkpoint copies: copies a run's checkpoints to a second place during training.
//
// One thread copies the newest checkpoint; of those added during a copy only the newest is copied
// next. A failed copy is retried with growing delays.
#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <exception>
#include <filesystem>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <thread>

#include "lib/core/clock.h"
#include "lib/format/checkpoint/retention.h"
#include "lib/mirror/place.h"

namespace scaletrain::mirror {

// A checkpoint whose copy is durable.
struct Copied {
  std::int64_t step = 0;
  std::int64_t bytes = 0;   // 0: the copy existed already
  double seconds = 0;       // since it was added to the mirror
  std::int64_t behind = 0;  // checkpoints added during the copy
};

class Mirror {
 public:
  Mirror(std::unique_ptr<Place> place, format::Retention retention,
         std::chrono::milliseconds first_wait = std::chrono::seconds(1));
  ~Mirror();  // cancels a copy under way, if the place supports that

  // Adds a checkpoint that has become durable; replaces one that still waits.
  void add(std::filesystem::path checkpoint, std::int64_t step);

  // Returns the next copy that has become durable, each once; nullopt: none. Throws the errors of
  // failed copies, each once: core::CheckpointError if the local checkpoint is damaged, which is
  // not retried; other errors concern the place, and the newest checkpoint is retried.
  std::optional<Copied> next();

  // Waits until the newest checkpoint is copied, or one more try has failed, calling `beat`
  // repeatedly. False: not done within `limit`, or no progress for `still`.
  bool finish(const std::function<void()>& beat, std::chrono::duration<double> limit,
              std::chrono::duration<double> still);

 private:
  struct Wanted {
    std::filesystem::path checkpoint;
    std::int64_t step = 0;
    core::SteadyTime since;
  };
  struct Outcome {
    Copied copied;
    std::exception_ptr error;  // set if the copy failed
  };
  void run();  // body of the thread
  // Returns nullopt if the checkpoint was removed meanwhile, as a newer one follows.
  std::optional<Outcome> copy(const Wanted& wanted);
  void count(const Outcome& outcome, const Wanted& wanted);  // call with mutex_ locked

  std::unique_ptr<Place> place_;
  format::Retention retention_;
  std::chrono::milliseconds first_wait_;
  std::atomic<core::SteadyTime> moved_ = core::now();
  std::mutex mutex_;
  std::condition_variable changed_;
  std::optional<Wanted> wanted_;
  bool is_copying_ = false;
  bool hurries_ = false;       // finish() waits: no delay between tries
  int failures_ = 0;           // consecutive failed copies
  core::SteadyTime next_try_;  // after a failed copy
  std::int64_t behind_ = 0;    // checkpoints added during the copy
  std::deque<Outcome> outcomes_;
  bool ends_ = false;
  std::thread thread_;  // last member: the thread uses all others
};

}  // namespace scaletrain::mirror
