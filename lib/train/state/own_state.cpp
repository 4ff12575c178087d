#include "lib/train/state/own_state.h"

#include <ATen/core/grad_mode.h>
#include <ATen/ops/empty.h>

#include <string>
#include <vector>

#include "lib/checkpoint/checkpoint.h"
#include "lib/core/error.h"
#include "lib/core/log.h"
#include "lib/train/rules/reproducible.h"
#include "lib/train/run/held.h"
#include "lib/train/state/own_rows.h"

namespace scaletrain::train {

NamedTensors replica_state(const Run& run) {
  const local_sgd::ReplicaTraits& replicas = run.replicas->traits();
  NamedTensors result;
  const auto add = [&result](const std::string& prefix, const NamedTensors& tensors) {
    for (const auto& [name, tensor] : tensors) result.emplace(prefix + name, tensor);
  };
  if (!replicas.local_optimizer) return result;
  add("optimizer/", run.learner.optimizer->state());
  if (replicas.local_loss_scale) add("scaler/", run.learner.precision->state());
  if (replicas.local_weights) add("model/", run.trained());
  return result;
}

namespace {

// Sizes of a mesh in state.json: {} means replicas only; axes missing at its end have size 1.
struct Copies {
  std::int64_t replicas = 1, contexts = 1;
  bool operator==(const Copies&) const = default;
};

Copies copies_of(const std::vector<std::int64_t>& mesh, std::int64_t expert, int ranks) {
  if (mesh.size() < 3) return {.replicas = ranks / expert};
  const std::int64_t replicas = expert > 1 ? mesh[1] * mesh[2] / expert : mesh[1];
  return {.replicas = replicas, .contexts = mesh.size() > 4 ? mesh[4] : 1};
}

NamedTensors own_state(const Run& run) {
  NamedTensors result;
  for (const auto& [name, tensor] : run.placement->own_state()) {
    result.emplace("exchange/" + name, tensor);
  }
  result.merge(replica_state(run));
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

// The state of replicas does not depend on how their ranks shard the model.
bool fits(const Run& run) {
  if (!run.replicas->traits().steps_alone) return is_of_this_mesh(run);
  const core::MeshPlan& plan = run.mesh->plan();
  return copies_of(run.state.mesh, run.state.expert, static_cast<int>(run.state.world_size)) ==
         copies_of(mesh_numbers(plan), plan.experts(), plan.world_size());
}

void warn_of_lost_state(const Run& run, const std::string& why) {
  core::warn("{}: {}",
             run.replicas->traits().steps_alone
                 ? "each replica goes on with the first one's state of the optimizer"
                 : "what the compressed exchange of gradients kept for the next step is zero",
             why);
}

// On rank 0, from the checkpoint; {} where they are not of this job.
NamedTensors read_all(const Run& run, const NamedTensors& own,
                      const std::filesystem::path& checkpoint) {
  const int ranks = run.group->world_size();
  std::string why = "the checkpoint has none";
  if (!fits(run)) {
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
  warn_of_lost_state(run, why);
  return {};
}

// On all ranks alike, also on one that has nothing.
bool has_own_rows(const Run& run) {
  const std::optional<recipe::Compress>& compress = run.recipe.compress;
  const bool keeps_errors =
      compress && compress->feeds_back() && run.mesh->copies().world_size() > 1;
  return is_cut(run) && (run.replicas->traits().local_optimizer || keeps_errors);
}

}  // namespace

// Tensor by tensor: all of them of all ranks are many times the model.
NamedTensors gather_own_state(Run& run) {
  NamedTensors result;
  const local_sgd::ReplicaStates& states = run.replicas->states();
  for (const auto& [name, tensor] : states.tensors) {
    if (name.starts_with("buffers/")) continue;
    for (auto& [same, all] : gather_of_replicas(*run.group, {{name, tensor}})) {
      result.emplace(same, all.cpu());
    }
  }
  if (!states.empty()) return result;
  for (const auto& [name, tensor] : own_state(run)) {
    for (auto& [same, all] : gather_ranks(*run.group, {{name, tensor}})) {
      result.emplace(same, all.cpu());
    }
  }
  return result;
}

void add_own_state(Run& run, checkpoint::Contents& contents) {
  if (has_own_rows(run) && !run.replicas->states().empty()) {
    add_rows_of_replicas(run, contents);
  } else if (has_own_rows(run)) {
    add_own_rows(run, own_state(run), contents);
  } else {
    contents.ranks = gather_own_state(run);
  }
}

void restore_own_state(Run& run, const std::filesystem::path& checkpoint) {
  const at::NoGradGuard no_grad;
  const NamedTensors own = own_state(run);
  if (has_own_rows(run)) {
    const std::string why = read_own_rows(run, own, checkpoint, fits(run));
    if (!why.empty() && run.group->rank() == 0) warn_of_lost_state(run, why);
    return run.engine->weights_changed();
  }
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
