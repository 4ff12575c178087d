// Silent data corruption during a run: compares the data-parallel replicas as the recipe's
// `integrity` says, and stops or goes back to the last checkpoint when they differ. Without that
// section it does nothing.
//
// A checkpoint is saved only after a comparison in which all replicas agreed, so that every
// checkpoint of the run is verified.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "lib/train/integrity/product_check.h"
#include "lib/train/integrity/replica_check.h"
#include "lib/train/loop/reporter.h"
#include "lib/train/loop/saves.h"
#include "lib/train/run/run.h"
#include "lib/train/run/step.h"

namespace scaletrain::train {

class Integrity {
 public:
  // Reports on rank 0 if there is nothing to compare.
  Integrity(Run& run, Reporter& reporter);

  // Counts a step whose result is known: replicas are compared after a loss that is not finite,
  // which a wrong weight may have caused.
  void count(const StepResult& result);
  // True if the replicas are to be compared after step `step` (from 1). `before_use`: the weights
  // are validated or saved next.
  bool is_due(std::int64_t step, bool before_use) const;

  // Call in each step when its last backward is queued; `step` from 0.
  void backward_ended(std::int64_t step);

  // Compares the replicas; no step is queued. Returns true if they differ and the run went back to
  // the last checkpoint, whose step and data follow next. Throws core::DataError if the run ends
  // with the difference. Collective.
  bool went_back(Saves& saves);
  // Compares the replicas before the save of a run that stops; false if they differ and the resumed
  // run repeats the steps since the last checkpoint. Throws as went_back(). Collective.
  bool allows_save();

 private:
  // Compares and reports. Returns what is wrong, on all ranks; "" if nothing is. Throws if the
  // recipe's action is to stop.
  std::string find();
  std::string find_product();
  [[noreturn]] void stop(const std::string& found, const std::string& why) const;

  Run& run_;
  Reporter& reporter_;
  std::optional<ReplicaCheck> replicas_;  // nullopt: nothing to compare
  std::optional<ProductCheck> products_;  // nullopt: off
  bool is_suspicious_ = false;            // a loss was not finite since the last comparison
  bool has_gone_back_ = false;            // and replicas have not agreed since
};

}  // namespace scaletrain::train
