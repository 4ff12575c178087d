#include "lib/train/state/rank_state.h"

#include <ATen/core/grad_mode.h>
#include <ATen/ops/full.h>

#include <algorithm>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "lib/checkpoint/shard_reader.h"
#include "lib/core/error.h"
#include "lib/core/log.h"
#include "lib/format/checkpoint/stored_tensors.h"
#include "lib/train/rules/reproducible.h"
#include "lib/train/run/state_shards.h"
#include "lib/train/state/reshard.h"

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

// Returns this rank's state as PREFIX/NAME or PREFIX/KIND/NAME.
NamedTensors own_state(const Run& run) {
  NamedTensors result;
  for (const auto& [name, tensor] : run.placement->own_state()) {
    result.emplace("exchange/" + name, tensor);
  }
  result.merge(replica_state(run));
  return result;
}

// Compares with the mesh in state.json, where {} stands for replicas alone.
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

// True on all ranks of a sharded model if any rank has state of its own.
bool has_rows(const Run& run) {
  const std::optional<recipe::Compress>& compress = run.recipe.compress;
  const bool keeps_errors =
      compress && compress->feeds_back() && run.mesh->copies().world_size() > 1;
  return is_sharded(run) && (run.replicas->traits().local_optimizer || keeps_errors);
}

// Describes the state `own` of `rank`, which is this rank or the one at its position in another
// replica: its row of tensors [ranks, ...]; for a sharded model, its shards of its replica's row of
// [replicas, ...]. For a file, shards with several slices are merged, which is collective over the
// model's ranks.
units::Shards rows_of(const Run& run, int rank, const NamedTensors& own, bool for_file) {
  units::Shards rows;
  if (!is_sharded(run)) {
    for (const auto& [name, tensor] : own) {
      rows.emplace(name, in_row(units::full_shard(tensor), rank, run.group->world_size()));
    }
    return rows;
  }
  const units::Shards model = model_shards(run);
  const std::set<std::string> whole = run.learner.optimizer->whole_state();
  for (const auto& [name, tensor] : own) {
    const std::string inner = name.substr(name.find('/') + 1);
    rows.emplace(name, state_shard(run, model, inner, tensor, whole.contains(inner)));
  }
  if (for_file && !run.learner.parts.empty()) rows = merge_slices(run.mesh->model(), rows);
  const std::vector<int> replicas = run.mesh->plan().same_place(rank, core::kGradientAxes);
  const auto row = std::ranges::find(replicas, rank) - replicas.begin();
  for (auto& [name, shard] : rows) shard = in_row(std::move(shard), row, std::ssize(replicas));
  return rows;
}

// Adds the part that `rank` writes; this rank may write it for another one.
void add_part(const Run& run, int rank, const NamedTensors& own, checkpoint::Contents& contents) {
  const int ranks = run.mesh->plan().world_size();
  checkpoint::TensorFile& file = contents.files.emplace_back(
      checkpoint::TensorFile{.name = checkpoint::kRanksFile,
                             .kind = checkpoint::TensorFile::Kind::kPerRank,
                             .shards = rows_of(run, rank, own, /*for_file=*/true),
                             .part = checkpoint::part_name(checkpoint::kRanksFile, rank, ranks)});
  if (rank != run.mesh->rank()) return;  // the bytes of all ranks are counted once
  for (const auto& [name, shard] : file.shards) {
    if (shard.is_here())
      file.bytes_of_all += ranks * static_cast<std::int64_t>(shard.tensor.nbytes());
  }
}

// Adds the rows of rank 0's replica, and those that its ranks received from other replicas.
void add_received_parts(const Run& run, checkpoint::Contents& contents) {
  const std::vector<int> ranks = run.mesh->plan().same_place(run.mesh->rank(), core::kDataAxes);
  for (std::size_t replica = 0; replica < ranks.size(); ++replica) {
    NamedTensors own;
    for (const auto& [name, all] : run.replicas->states().tensors) {
      if (name.starts_with("buffers/")) continue;
      own.emplace(name, all[static_cast<std::int64_t>(replica)]);
    }
    add_part(run, ranks[replica], own, contents);
  }
}

// Gathers the state of all ranks, [ranks, ...], in rank 0's CPU memory, one tensor at a time, since
// all of it is many times the model.
NamedTensors gather_rank_state(Run& run) {
  NamedTensors result;
  const auto add = [&](NamedTensors gathered) {
    for (auto& [name, all] : gathered) result.emplace(name, all.cpu());
  };
  const local_sgd::ReplicaStates& states = run.replicas->states();
  for (const auto& [name, tensor] : states.tensors) {
    if (!name.starts_with("buffers/")) add(gather_of_replicas(*run.group, {{name, tensor}}));
  }
  if (!states.empty()) return result;
  for (const auto& [name, tensor] : own_state(run)) {
    add(gather_ranks(*run.group, {{name, tensor}}));
  }
  return result;
}

// Restores `own` on all ranks; otherwise returns on some rank why it is left.
std::string read_rows(const Run& run, const NamedTensors& own,
                      const std::filesystem::path& checkpoint) {
  const auto file = [&] {
    const std::filesystem::path path = checkpoint / checkpoint::kRanksFile;
    if (format::has_tensors(path)) return path;
    throw core::CheckpointError(path.string(), "the checkpoint has none", "use another one");
  };
  dist::Group& group = *run.group;
  std::string why = fits(run) ? "" : "the checkpoint is of another mesh";
  std::optional<checkpoint::GroupReader> reader;
  try {
    if (why.empty()) {
      reader.emplace(group, read_by(run), file, rows_of(run, group.rank(), own, /*for_file=*/false),
                     checkpoint::ReadOptions{.allows_others = is_sharded(run)});
    }
  } catch (const core::CheckpointError& error) {
    why = error.found();
  }
  const at::Tensor failed =
      at::full({}, why.empty() ? 0.0 : 1.0, at::TensorOptions(at::kDouble).device(group.device()));
  group.all_reduce_max(failed, "state of each rank").wait();
  if (group.to_host(failed).item<double>() != 0) {
    return why.empty() ? "it does not fit on another rank" : why;
  }
  reader->read();
  return "";
}

}  // namespace

void add_rank_state(Run& run, checkpoint::Contents& contents) {
  if (has_rows(run) && !run.replicas->states().empty()) return add_received_parts(run, contents);
  if (has_rows(run)) return add_part(run, run.mesh->rank(), own_state(run), contents);
  const NamedTensors all = gather_rank_state(run);
  if (all.empty()) return;
  contents.file(checkpoint::kRanksFile, checkpoint::TensorFile::Kind::kPerRank).shards =
      units::full_shards(all);
}

void restore_rank_state(Run& run, const std::filesystem::path& checkpoint) {
  const at::NoGradGuard no_grad;
  const NamedTensors own = own_state(run);
  if (own.empty() && !has_rows(run)) return;
  const std::string why = read_rows(run, own, checkpoint);
  if (!why.empty() && run.group->rank() == 0) warn_of_lost_state(run, why);
  run.engine->weights_changed();
}

}  // namespace scaletrain::train
