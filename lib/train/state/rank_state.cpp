#include "lib/train/state/rank_state.h"

#include <ATen/core/grad_mode.h>
#include <ATen/ops/full.h>

#include <algorithm>
#include <optional>
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
namespace {

void add_named(const std::string& prefix, const units::Shards& state, units::Shards& all) {
  for (const auto& [name, shard] : state) {
    if (shard.is_here()) all.emplace(prefix + name, shard);
  }
}

// Returns the number of replicas and of context-parallel ranks of a mesh in state.json: {} means
// replicas only; axes missing at its end have size 1.
std::pair<std::int64_t, std::int64_t> replicas_of(const std::vector<std::int64_t>& mesh,
                                                  std::int64_t expert, int ranks) {
  if (mesh.size() < 3) return {ranks / expert, 1};
  return {expert > 1 ? mesh[1] * mesh[2] / expert : mesh[1], mesh.size() > 4 ? mesh[4] : 1};
}

// Returns all of this rank's state, as replica_state() does.
units::Shards own_state(const Run& run) {
  units::Shards result = replica_state(run);
  add_named("exchange/", run.placement->state(), result);
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
  return replicas_of(run.state.mesh, run.state.expert, static_cast<int>(run.state.world_size)) ==
         replicas_of(mesh_numbers(plan), plan.experts(), plan.world_size());
}

void warn_of_lost_state(const Run& run, const std::string& why) {
  core::warn("{}: {}",
             run.replicas->traits().steps_alone
                 ? "all replicas continue with the optimizer state of the first one"
                 : "the error feedback of gradient compression starts from zero",
             why);
}

// True on all ranks of a sharded model if any rank has state of its own.
bool has_rows(const Run& run) {
  const std::optional<recipe::Compress>& compress = run.recipe.compress;
  const bool keeps_errors =
      compress && compress->feeds_back() && run.mesh->copies().world_size() > 1;
  return is_sharded(run) && (run.replicas->traits().local_optimizer || keeps_errors);
}

// Describes `own` of `rank`, this one or the one at its place in another replica: its row of
// tensors [ranks, ...], or if the model is sharded its shards of its replica's row of [replicas,
// ...]. For a file, shards of several slices are merged, which is collective over the ranks of the
// model.
units::Shards rows_of(const Run& run, int rank, units::Shards rows, bool for_file) {
  if (!is_sharded(run)) {
    for (auto& [name, shard] : rows) {
      shard = in_row(units::full_shard(shard.tensor), rank, run.group->world_size());
    }
    return rows;
  }
  set_owners(run, model_shards(run), rows);
  if (for_file && !run.learner.parts.empty()) rows = merge_slices(run.mesh->model(), rows);
  const std::vector<int> replicas = run.mesh->plan().same_place(rank, core::kGradientAxes);
  const auto row = std::ranges::find(replicas, rank) - replicas.begin();
  for (auto& [name, shard] : rows) shard = in_row(std::move(shard), row, std::ssize(replicas));
  return rows;
}

// Adds the part that `rank` writes, or that this rank writes for it.
void add_part(const Run& run, int rank, units::Shards own, checkpoint::Contents& contents) {
  const int ranks = run.mesh->plan().world_size();
  checkpoint::TensorFile& file = contents.files.emplace_back(
      checkpoint::TensorFile{.name = checkpoint::kRanksFile,
                             .kind = checkpoint::TensorFile::Kind::kPerRank,
                             .shards = rows_of(run, rank, std::move(own), /*for_file=*/true),
                             .part = checkpoint::part_name(checkpoint::kRanksFile, rank, ranks)});
  if (rank != run.mesh->rank()) return;  // the bytes of all ranks are counted once
  for (const auto& [name, tensor] : local_tensors(file.shards)) {
    file.bytes_of_all += ranks * static_cast<std::int64_t>(tensor.nbytes());
  }
}

// Adds the rows of rank 0's replica, and those that its ranks received from other replicas.
void add_received_parts(const Run& run, checkpoint::Contents& contents) {
  const std::vector<int> ranks = run.mesh->plan().same_place(run.mesh->rank(), core::kDataAxes);
  const NamedTensors& received = run.replicas->states().tensors;
  for (std::size_t replica = 0; replica < ranks.size(); ++replica) {
    units::Shards rows = replica_state(run);
    std::erase_if(rows, [&](const auto& one) { return !received.contains(one.first); });
    for (auto& [name, shard] : rows) {
      shard.tensor = received.at(name)[static_cast<std::int64_t>(replica)];
    }
    add_part(run, ranks[replica], std::move(rows), contents);
  }
}

// Gathers the state of all ranks, [ranks, ...], in rank 0's CPU memory, one tensor at a time, since
// all of it is many times the model.
NamedTensors gather_rank_state(Run& run) {
  const local_sgd::ReplicaStates& states = run.replicas->states();
  const auto gather = states.empty() ? gather_ranks : gather_of_replicas;
  NamedTensors result;
  for (const auto& one : states.empty() ? local_tensors(own_state(run)) : states.tensors) {
    if (one.first.starts_with("buffers/")) continue;
    for (const auto& [name, all] : gather(*run.group, {one})) result.emplace(name, all.cpu());
  }
  return result;
}

// Restores `own` on all ranks; otherwise returns on some rank why it is left.
std::string read_rows(const Run& run, const units::Shards& own,
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

units::Shards replica_state(const Run& run) {
  const local_sgd::ReplicaTraits& replicas = run.replicas->traits();
  units::Shards result;
  if (!replicas.local_optimizer) return result;
  add_named("optimizer/", run.learner.optimizer->state(), result);
  if (replicas.local_loss_scale) {
    add_named("scaler/", units::full_shards(run.learner.precision->state()), result);
  }
  if (replicas.local_weights) add_named("model/", run.trained(), result);
  return result;
}

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
  const units::Shards own = own_state(run);
  if (own.empty() && !has_rows(run)) return;
  const std::string why = read_rows(run, own, checkpoint);
  if (!why.empty() && run.group->rank() == 0) warn_of_lost_state(run, why);
  run.engine->weights_changed();
}

}  // namespace scaletrain::train
