#include "lib/train/evaluated_tensors.h"

namespace scaletrain::train {

NamedTensors evaluated_tensors(const Run& run) {
  NamedTensors result = mean_over_ranks(run.mesh->data(), run.learner.buffers());
  result.merge(run.learner.evaluation_weights());
  if (run.has_own_weights()) result.merge(mean_over_ranks(run.mesh->data(), run.trained()));
  return result;
}

}  // namespace scaletrain::train
