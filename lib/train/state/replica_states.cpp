#include "lib/train/state/replica_states.h"

#include <ATen/core/grad_mode.h>
#include <ATen/ops/stack.h>

#include <utility>

#include "lib/train/model/buffers.h"
#include "lib/train/run/run.h"
#include "lib/train/state/rank_state.h"

namespace scaletrain::train {
namespace {

// Returns the requested states, those for an evaluation first.
std::vector<std::pair<std::string, at::Tensor>> wished_states(const Run& run, Wish wish) {
  std::vector<std::pair<std::string, at::Tensor>> result;
  const auto add = [&](const std::string& prefix, const NamedTensors& tensors) {
    for (const auto& [name, tensor] : tensors) result.emplace_back(prefix + name, tensor.detach());
  };
  add("buffers/", run.learner.buffers());
  if (run.sync->always_differs()) add("model/", run.trained());
  if (wish == Wish::kEvaluation) return result;
  for (auto& [name, tensor] : replica_state(run)) {
    if (!name.starts_with("model/")) result.emplace_back(name, tensor.detach());
  }
  return result;
}

}  // namespace

void share_states(Run& run, Wish wish) {
  const at::NoGradGuard no_grad;
  parallel::Rounds& rounds = *run.sync->rounds();
  run.replicas = {};
  wish = static_cast<Wish>(rounds.agree_on_wish(static_cast<std::int32_t>(wish)));
  if (wish == Wish::kNothing) return;
  std::vector<std::string> names;
  std::vector<at::Tensor> own;
  for (auto& [name, tensor] : wished_states(run, wish)) {
    names.push_back(name);
    own.push_back(tensor);
  }
  if (run.only_trains()) return rounds.give(own);
  std::vector<std::vector<at::Tensor>> given = rounds.take(own);
  run.replicas.there = {0};
  for (std::size_t replica = 1; replica < given.size(); ++replica) {
    if (!given[replica].empty()) {
      run.replicas.there.push_back(static_cast<std::int64_t>(replica));
    }
  }
  for (std::size_t i = 0; i < own.size(); ++i) {
    const at::Tensor first = own[i].cpu();
    std::vector<at::Tensor> rows{first};
    for (std::size_t replica = 1; replica < given.size(); ++replica) {
      const bool is_there = !given[replica].empty();
      rows.push_back(is_there ? std::exchange(given[replica][i], {}) : first);
    }
    run.replicas.tensors.emplace(names[i], at::stack(rows));
  }
}

std::map<std::string, at::Tensor> states_of(const GivenStates& replicas,
                                            const std::string& prefix) {
  std::map<std::string, at::Tensor> result;
  for (const auto& [name, tensor] : replicas.tensors) {
    if (name.starts_with(prefix)) result.emplace(name.substr(prefix.size()), tensor);
  }
  return result;
}

// In fp64, as lib/train/model/buffers.h does.
std::map<std::string, at::Tensor> mean_over_replicas(const GivenStates& replicas,
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
    const at::Tensor& all = replicas.tensors.at(prefix + name);
    at::Tensor sum = all[0].to(at::kDouble, /*non_blocking=*/false, /*copy=*/true);
    for (std::size_t i = 1; i < replicas.there.size(); ++i) {
      sum.add_(all[replicas.there[i]].to(at::kDouble));
    }
    auto count = static_cast<double>(replicas.there.size());
    if (others != nullptr && others->world_size() > 1) {
      sum = sum.to(others->device());
      others->all_reduce_sum(sum, "mean of the buffers").wait();
      count *= others->world_size();
    }
    result.emplace(name, sum.div_(count).to(tensor.options()));
  }
  return result;
}

std::map<std::string, at::Tensor> buffers_of_readers(const Run& run) {
  dist::Group& readers = run.mesh->data();
  NamedTensors own = states_of(run.replicas, "buffers/");
  if (run.replicas.empty() && readers.world_size() > 1) {
    const int replicas = run.mesh->plan().model_copies();
    for (const auto& [name, tensor] : run.learner.buffers()) {
      const std::vector<at::Tensor> same(static_cast<std::size_t>(replicas), tensor);
      own.emplace(name, at::stack(same));
    }
  }
  return gather_of_replicas(readers, own);
}

}  // namespace scaletrain::train
