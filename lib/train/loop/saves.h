// Checkpoints of a run: decides when one is due, and saves asynchronously.
#pragma once

#include <cstdint>
#include <exception>
#include <filesystem>
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

  // Call before a step: true if rank 0 requests a checkpoint after it, because the user asked
  // (`scaletrain checkpoint now`) or "every": "auto" is due. Always false on other ranks.
  bool asks();

  // True if a save is due after `step`. `asked`: rank 0 has requested one. `seconds_before` and
  // `seconds`: rank 0's clock before and at this step.
  bool due(std::int64_t step, double seconds_before, double seconds, bool asked) const;

  // Starts an asynchronous save of the current step, unless that step was saved. Collective.
  void save();
  // Call before modifying tensors of a pending save (checkpoint::Saver).
  void await_copies();
  // Makes the next save() write this step again, because its state has changed.
  void forget() { saved_step_ = -1; }

  // Reports saves that have become durable. Throws the error of a failed write, or warns if the run
  // continues without it (checkpoint.on_failure).
  void look();
  // Waits until every save is durable on all ranks, then for the remote copy (checkpoint.mirror),
  // at most `copy_limit_s` seconds if it is set. Throws the error of a failed write, even if the
  // run has gone on after it.
  void finish(std::optional<double> copy_limit_s = std::nullopt);
  // Waits until the saves so far are durable, and returns the newest checkpoint in the run's
  // folder, equal on all ranks; nullopt if there is none or it is damaged. Collective.
  std::optional<std::filesystem::path> wait_for_newest();
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
  std::int64_t saved_step_;          // newest step whose checkpoint was begun or exists
  bool has_warned_ = false;          // about a stalled write
  bool has_asked_ = false;           // since the last one
  core::SteadyTime begun_, looked_;  // time of the last save; of the last look for a user's request
  double interval_s_;                // interval in seconds with "auto"
  std::exception_ptr lost_;  // error of the newest save, if the run has continued without it
};

}  // namespace scaletrain::train
