#include "lib/train/state/evaluated_tensors.h"

#include "lib/train/state/replica_states.h"

namespace scaletrain::train {

NamedTensors evaluated_tensors(const Run& run) {
  const auto mean = [&run](const std::string& prefix, const NamedTensors& own, dist::Group& ranks) {
    if (!run.replicas.empty()) return mean_over_replicas(run.replicas, prefix, own, &ranks);
    return mean_over_ranks(ranks, own);
  };
  NamedTensors result = mean("buffers/", run.learner.buffers(), run.mesh->data());
  result.merge(run.learner.evaluation_weights());
  if (run.has_own_weights()) {
    result.merge(mean("model/", run.trained(), run.mesh->replicas()));
  }
  return result;
}

}  // namespace scaletrain::train
