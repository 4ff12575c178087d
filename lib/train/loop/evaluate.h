// The task's measures over a whole set, from sums of all ranks and the scores of all samples: each
// sample counts once.
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
  std::int64_t count = 0;                    // targets of all data coordinates
  std::int64_t skipped = 0;                  // targets of bad samples
  std::vector<data::BadSample> bad_samples;  // this rank's, where it counts samples
  // The strongest reason that cut it short on any rank; then the rest means nothing.
  core::StopReason stop = core::StopReason::kNone;
};

// Sees each batch of this rank whose samples it counts, and what the model gave of it.
using Watcher = std::function<void(const data::Batch& batch, const task::Example& example,
                                   const at::Tensor& output)>;

// Runs the model in evaluation mode, with the tensors of lib/train/state/evaluation_weights.h, over
// all of `split` from its start, and leaves model and buffers as they were for training. Ranks may
// have different numbers of batches: only the sums, and scores where the task has some, are
// exchanged. A stop that any rank was asked for cuts it short on all. Every rank calls it.
EvalResult evaluate(Run& run, task::Split split, const Watcher& watcher = {});

// Throws core::DataError where every sample of `split` was skipped: nothing was measured.
void require_samples(const EvalResult& result, const std::string& split);

}  // namespace scaletrain::train
