// Copies a run's checkpoints to a second place beside training, which never waits for it.
//
// One thread copies the newest checkpoint that it was given; those that came while it was at
// another are left out, all but the newest. A copy that fails is tried again, later and later.
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
#include "lib/format/retention.h"
#include "lib/mirror/place.h"

namespace scaletrain::mirror {

// A checkpoint whose copy is durable.
struct Copied {
  std::int64_t step = 0;
  std::int64_t bytes = 0;   // 0: it was there already
  double seconds = 0;       // from when it was given to the mirror
  std::int64_t behind = 0;  // checkpoints that came meanwhile
};

class Mirror {
 public:
  Mirror(std::unique_ptr<Place> place, format::Retention retention,
         std::chrono::milliseconds first_wait = std::chrono::seconds(1));
  ~Mirror();  // gives up what is under way, as far as the place can

  // A checkpoint that has become durable; takes the place of one that waits.
  void add(std::filesystem::path checkpoint, std::int64_t step);

  // The next copy that has become durable, each once; nullopt: none has. Throws what a copy has
  // thrown, each once: core::CheckpointError of the local checkpoint, which is not tried again; any
  // other of the place, where the newest is tried again.
  std::optional<Copied> next();

  // Waits until the newest is copied, or has failed once more, calling `beat` again and again.
  // False: it was not done within `limit`, or nothing at all had moved for `still`.
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
    std::exception_ptr error;  // in place of it
  };
  void run();  // the thread's
  // nullopt: it is gone, and nothing is lost by that.
  std::optional<Outcome> copy(const Wanted& wanted);
  void count(const Outcome& outcome, const Wanted& wanted);  // under the lock

  std::unique_ptr<Place> place_;
  format::Retention retention_;
  std::chrono::milliseconds first_wait_;
  std::atomic<core::SteadyTime> moved_ = core::now();
  std::mutex mutex_;
  std::condition_variable changed_;
  std::optional<Wanted> wanted_;
  bool is_copying_ = false;
  bool hurries_ = false;       // finish() waits: no more waits between tries
  int failures_ = 0;           // in a row
  core::SteadyTime next_try_;  // after them
  std::int64_t behind_ = 0;    // that came while one was copied
  std::deque<Outcome> outcomes_;
  bool ends_ = false;
  std::thread thread_;  // last: uses all of it
};

}  // namespace scaletrain::mirror
