// Evaluates the task's measures over a complete set, from sums of all ranks and the scores of all
// samples: each sample counts once.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "lib/core/process/signals.h"
#include "lib/data/loader/bad_sample.h"
#include "lib/recipe/catalog/task.h"
#include "lib/task/task.h"
#include "lib/train/run/run.h"

namespace scaletrain::train {

struct EvalResult {
  std::vector<recipe::Measured> measures;    // known measures, in the task's order
  std::int64_t count = 0;                    // targets of all data-parallel ranks
  std::int64_t skipped = 0;                  // targets of bad samples
  std::vector<data::BadSample> bad_samples;  // bad samples of this rank, if it counts samples
  // Stop reason agreed by all ranks; the other fields are invalid if it is set.
  core::StopReason stop = core::StopReason::kNone;
};

// Called with each batch whose samples this rank counts, and the model's output.
using Watcher = std::function<void(const data::Batch& batch, const task::Example& example,
                                   const at::Tensor& output)>;

// Runs the model in evaluation mode, with the tensors of lib/train/state/evaluation_weights.h, over
// all of `split`, and restores model and buffers for training. Ranks may have different numbers of
// batches: only sums, and scores if the task has any, are communicated. A stop request of any rank
// interrupts it on all. Collective.
EvalResult evaluate(Run& run, task::Split split, const Watcher& watcher = {});

// Throws core::DataError if every sample of `split` was skipped.
void require_samples(const EvalResult& result, const std::string& split);

}  // namespace scaletrain::train
