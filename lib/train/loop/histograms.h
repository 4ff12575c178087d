// Histograms of weights and gradients on request (/log/histograms), in RUN/histograms.jsonl.
//
// Each rank counts the elements that it owns, in any layout; all-reduces over the ranks that hold
// the model with rank 0 merge the counts, and rank 0 writes them.
#pragma once

#include <ATen/core/Tensor.h>

#include <optional>
#include <string>
#include <vector>

#include "lib/core/job/worker_env.h"
#include "lib/dist/group.h"
#include "lib/observe/run_media.h"
#include "lib/train/rules/cadence.h"
#include "lib/train/run/run.h"

namespace scaletrain::train {

// Elements of a tensor that this rank counts.
struct LocalValues {
  std::string name;
  at::Tensor values;
};

// Counts the finite values of all ranks in 64 equal buckets, for each of `names`, which are the
// same on all ranks. A name without values has no histogram. Waits for the device. Collective.
// Throws core::OutOfMemoryError on all ranks if one of them has no memory for a copy of a tensor.
std::vector<observe::HistogramRecord> histograms_of(const std::vector<std::string>& names,
                                                    const std::vector<LocalValues>& local,
                                                    dist::Group& group);

class HistogramWriter {
 public:
  HistogramWriter(const Run& run, const core::WorkerEnv& env);

  // Call with step `step` (from 0) when its gradients are unscaled and not clipped, before the
  // update. Collective over the model's ranks.
  void look(std::int64_t step);

 private:
  void write(std::int64_t step);

  const Run& run_;
  const bool writes_;             // rank 0
  std::optional<Cadence> every_;  // nullopt: no histograms, or rank 0 holds another replica
  observe::RunMedia media_;
};

}  // namespace scaletrain::train
