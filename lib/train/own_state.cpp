#include "lib/train/own_state.h"

#include <ATen/core/grad_mode.h>
#include <ATen/ops/empty.h>

#include <string>
#include <vector>

#include "lib/checkpoint/checkpoint.h"
#include "lib/core/error.h"
#include "lib/core/log.h"
#include "lib/train/reproducible.h"

namespace scaletrain::train {

NamedTensors replica_state(const Run& run) {
  NamedTensors result;
  for (const auto& [name, tensor] : run.learner.optimizer->state()) {
    result.emplace("optimizer/" + name, tensor);
  }
  if (run.goes_apart) {
    for (const auto& [name, tensor] : run.learner.precision->state()) {
      result.emplace("scaler/" + name, tensor);
    }
  }
  if (!run.sync->always_differs()) return result;
  for (const auto& [name, tensor] : run.trained()) result.emplace("model/" + name, tensor);
  return result;
}

namespace {

NamedTensors own_state(Run& run) {
  NamedTensors result;
  for (const auto& [name, tensor] : run.placement->own_state()) {
    result.emplace("exchange/" + name, tensor);
  }
  // A resume gives all replicas of async rank 0's.
  const bool has_replicas = run.sync && run.mesh->data().world_size() > 1;
  if (has_replicas && run.recipe.sync.name != "async") result.merge(replica_state(run));
  return result;
}

std::vector<std::int64_t> shape_of_all(const at::Tensor& own, int ranks) {
  std::vector<std::int64_t> shape{ranks};
  shape.insert(shape.end(), own.sizes().begin(), own.sizes().end());
  return shape;
}

// As state.json has it, where {} stands for replicas alone.
bool is_of_this_mesh(const Run& run) {
  const int ranks = run.group->world_size();
  const std::vector<std::int64_t> replicas{1, ranks, 1, 1};
  const std::vector<std::int64_t> was =
      run.state.mesh == replicas ? std::vector<std::int64_t>() : run.state.mesh;
  return run.state.world_size == ranks && was == mesh_numbers(run.mesh->plan());
}

// On rank 0, from the checkpoint; {} where they are not of this job.
NamedTensors read_all(const Run& run, const NamedTensors& own,
                      const std::filesystem::path& checkpoint) {
  const int ranks = run.group->world_size();
  std::string why = "the checkpoint has none";
  if (!is_of_this_mesh(run)) {
    why = "the checkpoint is of another mesh";
  } else {
    NamedTensors all;
    for (const auto& [name, tensor] : own) {
      all.emplace(name, at::empty(shape_of_all(tensor, ranks), tensor.options().device(at::kCPU)));
    }
    try {
      if (checkpoint::load_ranks(checkpoint, all)) return all;
    } catch (const core::CheckpointError& error) {
      why = error.found();
    }
  }
  core::warn("{}: {}",
             run.sync ? "each replica goes on with the first one's state of the optimizer"
                      : "what the compressed exchange of gradients kept for the next step is zero",
             why);
  return {};
}

}  // namespace

// Tensor by tensor: all of them of all ranks are many times the model.
NamedTensors gather_own_state(Run& run) {
  NamedTensors result;
  for (const auto& [name, tensor] : run.replicas.tensors) {
    if (!name.starts_with("buffers/")) result.emplace(name, tensor);
  }
  for (const auto& [name, tensor] : own_state(run)) {
    for (auto& [same, all] : gather_ranks(*run.group, {{name, tensor}})) {
      result.emplace(same, all.cpu());
    }
  }
  return result;
}

void restore_own_state(Run& run, const std::filesystem::path& checkpoint) {
  const at::NoGradGuard no_grad;
  const NamedTensors own = own_state(run);
  if (own.empty()) return;
  dist::Group& group = *run.group;
  NamedTensors all;
  if (group.rank() == 0) all = read_all(run, own, checkpoint);
  const bool is_there =
      group.broadcast_text(all.empty() ? "no" : "yes", 0, "state of each rank") == "yes";
  if (!is_there) return;
  for (const auto& [name, tensor] : own) {
    const at::Tensor message =
        group.rank() == 0 ? all.at(name).to(group.device())
                          : at::empty(shape_of_all(tensor, group.world_size()), tensor.options());
    group.broadcast(message, 0, "state of each rank").wait();
    tensor.copy_(message[group.rank()]);
  }
}

}  // namespace scaletrain::train
