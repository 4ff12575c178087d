// A run's checkpoints: when one is due, and what becomes of it while training goes on.
#pragma once

#include <cstdint>
#include <exception>
#include <memory>
#include <optional>

#include "lib/checkpoint/saver.h"
#include "lib/core/clock.h"
#include "lib/core/job/worker_env.h"
#include "lib/train/loop/mirroring.h"
#include "lib/train/loop/node_copies.h"
#include "lib/train/loop/reporter.h"
#include "lib/train/rules/cadence.h"
#include "lib/train/run/run.h"

namespace scaletrain::train {

class Saves {
 public:
  Saves(Run& run, Reporter& reporter, const core::WorkerEnv& env = {});

  // Before a step, whether rank 0 asks all ranks for a checkpoint behind it: a person has asked
  // rank 0 (`scaletrain checkpoint now`), or "every": "auto" finds it time. Others never ask.
  bool asks();

  // True if a save is due after `step`. `asked`: rank 0 has asked for one. The seconds are the
  // step's and the step's before it, by rank 0's clock.
  bool due(std::int64_t step, double seconds_before, double seconds, bool asked) const;

  // Begins to write where training stands, on rank 0 or on all ranks, unless that was done. Every
  // rank calls it.
  void save();
  // Called before anything that save() has given on is changed (checkpoint::Saver).
  void await_copies();
  // The checkpoint of this step is written once more: its state has changed.
  void forget() { saved_step_ = -1; }

  // Reports what has become durable. Throws what a write has thrown; where the run goes on without
  // its checkpoint (checkpoint.on_failure), warns of that.
  void look();
  // Waits until all of it is durable, on all ranks, then for the copy in the second place, for
  // `copy_limit_s` at most where training is stopped. Throws what a write has thrown, also where
  // the run has gone on without the newest.
  void finish(std::optional<double> copy_limit_s = std::nullopt);
  // Finishes after training has failed: a failed write is only a warning.
  void finish_after_failure();

 private:
  void report();
  void report(const checkpoint::Saved& saved);

  Run& run_;
  Reporter& reporter_;
  const Cadence every_;
  Mirroring mirroring_;
  const std::shared_ptr<checkpoint::Writers> writers_;  // null: rank 0 writes all
  const std::unique_ptr<NodeCopies> copies_;            // peer checkpoints; null if none
  const std::unique_ptr<checkpoint::Saver> saver_;      // null on ranks that do not write
  std::int64_t saved_step_;                             // whose checkpoint was begun or is there
  bool has_warned_ = false;                             // about a stalled write
  bool has_asked_ = false;                              // since the last one
  core::SteadyTime begun_, looked_;  // the last one; a look for a person's request
  double interval_s_;                // interval in seconds with "auto"
  std::exception_ptr lost_;          // why the newest was not written, where the run has gone on
};

}  // namespace scaletrain::train
