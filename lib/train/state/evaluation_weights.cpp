#include "lib/train/state/evaluation_weights.h"

#include <c10/core/GradMode.h>

#include <string>

#include "lib/core/error.h"
#include "lib/train/run/state_shards.h"
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
    result.merge(mean("model/", local_tensors(run.trained()), run.mesh->replicas()));
  }
  return result;
}

MeanInPlace::MeanInPlace(Run& run, const optim::Mean& mean)
    : run_(run), own_(values(local_tensors(model_shards(run)))) {
  const at::NoGradGuard no_grad;
  for (const auto& [name, tensor] : local_tensors(model_shards(run))) {
    tensor.copy_(mean.state().at(name).tensor);
  }
  run_.engine->weights_changed();
}

MeanInPlace::~MeanInPlace() {
  own_.put_back();
  try {
    run_.engine->weights_changed();
  } catch (const core::StoppedError&) {  // a peer is gone, which the next collective reports too
  }
}

}  // namespace scaletrain::train
