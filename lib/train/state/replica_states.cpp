#include "lib/train/state/replica_states.h"

#include <ATen/core/grad_mode.h>
#include <ATen/ops/stack.h>

#include <utility>

#include "lib/train/model/buffers.h"
#include "lib/train/run/run.h"
#include "lib/train/state/rank_state.h"

namespace scaletrain::train {

std::vector<std::pair<std::string, at::Tensor>> local_states(const Run& run,
                                                             local_sgd::StateRequest request) {
  std::vector<std::pair<std::string, at::Tensor>> result;
  const auto add = [&result](const std::string& prefix, const NamedTensors& tensors) {
    for (const auto& [name, tensor] : tensors) result.emplace_back(prefix + name, tensor.detach());
  };
  add("buffers/", run.learner.buffers());
  if (run.replicas->traits().local_weights) add("model/", local_tensors(run.trained()));
  if (request == local_sgd::StateRequest::kEvaluation) return result;
  for (const auto& [name, shard] : replica_state(run)) {
    if (!name.starts_with("model/")) result.emplace_back(name, shard.tensor.detach());
  }
  return result;
}

std::map<std::string, at::Tensor> states_of(const local_sgd::ReplicaStates& states,
                                            const std::string& prefix) {
  std::map<std::string, at::Tensor> result;
  for (const auto& [name, tensor] : states.tensors) {
    if (name.starts_with(prefix)) result.emplace(name.substr(prefix.size()), tensor);
  }
  return result;
}

// In fp64, as lib/train/model/buffers.h does.
std::map<std::string, at::Tensor> mean_over_replicas(const local_sgd::ReplicaStates& states,
                                                     const std::string& prefix,
                                                     const std::map<std::string, at::Tensor>& own,
                                                     dist::Group* others) {
  const at::NoGradGuard no_grad;
  std::map<std::string, at::Tensor> result;
  for (const auto& [name, tensor] : own) {
    if (!tensor.is_floating_point()) {
      result.emplace(name, tensor.clone());
      continue;
    }
    const at::Tensor& all = states.tensors.at(prefix + name);
    at::Tensor sum = all[0].to(at::kDouble, /*non_blocking=*/false, /*copy=*/true);
    for (std::size_t i = 1; i < states.present.size(); ++i) {
      sum.add_(all[states.present[i]].to(at::kDouble));
    }
    auto count = static_cast<double>(states.present.size());
    if (others != nullptr && others->world_size() > 1) {
      sum = sum.to(others->device());
      others->all_reduce_sum(sum, "mean of the buffers").wait();
      count *= others->world_size();
    }
    result.emplace(name, sum.div_(count).to(tensor.options()));
  }
  return result;
}

// The plan keeps the job's data-parallel size when the mesh is split into replicas.
std::map<std::string, at::Tensor> buffers_of_data_ranks(const Run& run) {
  dist::Group& ranks = run.mesh->data();
  const NamedTensors buffers = run.learner.buffers();
  NamedTensors all = states_of(run.replicas->states(), "buffers/");
  if (!all.empty()) return gather_of_replicas(ranks, all);
  const int replicas = run.mesh->plan().readers() / ranks.world_size();
  if (ranks.world_size() == 1 || replicas == 1) return gather_ranks(ranks, buffers);
  for (const auto& [name, tensor] : buffers) {
    all.emplace(name,
                at::stack(std::vector<at::Tensor>(static_cast<std::size_t>(replicas), tensor)));
  }
  return gather_of_replicas(ranks, all);
}

}  // namespace scaletrain::train
