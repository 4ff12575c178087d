#include "lib/train/state/evaluated_tensors.h"

#include "lib/train/state/replica_states.h"

namespace scaletrain::train {

NamedTensors evaluated_tensors(const Run& run) {
  const auto mean = [&run](const std::string& prefix, const NamedTensors& own, dist::Group& ranks) {
    const local_sgd::ReplicaStates& states = run.replicas->states();
    if (!states.empty()) return mean_over_replicas(states, prefix, own, &ranks);
    return mean_over_ranks(ranks, own);
  };
  NamedTensors result = mean("buffers/", run.learner.buffers(), run.mesh->data());
  result.merge(run.learner.evaluation_weights());
  if (run.replicas->weights_differ()) {
    result.merge(mean("model/", run.trained(), run.mesh->replicas()));
  }
  return result;
}

}  // namespace scaletrain::train
