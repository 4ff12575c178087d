#include "lib/train/run/state_shards.h"

#include <set>
#include <utility>
#include <vector>

namespace scaletrain::train {
namespace {

using units::Shard;
using units::Shards;

// True if this rank owns tensors that all ranks of its sharding group hold.
bool owns_unsharded(const Run& run) { return !is_sharded(run) || run.mesh->model().rank() == 0; }

// Describes a parameter that the parallel strategy shards.
Shard shard_of(const units::NamedParameter& part) {
  Shard shard{.tensor = part.tensor.detach(), .shape = part.shape, .owned = part.counts};
  if (!part.pieces.empty()) {
    shard.slices = part.pieces;
  } else if (part.tensor.numel() > 0) {
    shard.slices = {format::range_piece(part.shape, part.begin, part.begin + part.tensor.numel())};
  }
  return shard;
}

// True if this is the first rank of its sharding group among those that have all unsharded tensors
// of their pipeline stage.
bool is_first_copy(const dist::Mesh& mesh) {
  if (mesh.plan().experts() > 1) return mesh.experts().rank() == 0;
  return mesh.coordinate(core::Axis::kShard) == 0;
}

// Sets the owner of a parameter that only pipeline stages and tensor parallelism divide.
void place_in_stage(const Run& run, const std::string& name, Shard& shard) {
  const bool is_cut = run.learner.parts.contains(name);
  if (!run.pipeline && !is_cut) return;
  shard.owned = is_first_copy(*run.mesh) && (is_cut || run.learner.counts_whole) &&
                (!run.pipeline || run.pipeline->counts(name));
  if (run.pipeline && !run.pipeline->has(name)) shard.slices.clear();
}

}  // namespace

bool is_sharded(const Run& run) {
  using core::Axis;
  if (run.mesh->size(Axis::kShard) > 1 || run.mesh->size(Axis::kPipe) > 1) return true;
  if (run.replicas->traits().steps_alone && run.mesh->size(Axis::kTensor) > 1) return true;
  return run.placement && !run.placement->parts().empty();
}

checkpoint::ReadBy read_by(const Run& run) {
  return is_sharded(run) ? checkpoint::ReadBy::kEachRank : checkpoint::ReadBy::kRank0;
}

Shards model_shards(const Run& run) {
  Shards result = run.learner.shards();
  for (auto& [name, shard] : result) shard.owned = owns_unsharded(run);
  for (const auto& item : run.learner.model->named_parameters()) {
    place_in_stage(run, item.key(), result.at(item.key()));
  }
  for (const units::NamedParameter& part : run.placement->parts()) {
    result[part.name] = shard_of(part);
  }
  return result;
}

NamedTensors held_tensors(const Run& run) { return local_tensors(model_shards(run)); }

Shard state_shard(const Run& run, const Shards& model, const std::string& name,
                  const at::Tensor& tensor, bool is_whole) {
  // The whole name if it has no '/'.
  const auto found = model.find(name.substr(name.find('/') + 1));
  if (found == model.end()) return units::full_shard(tensor, owns_unsharded(run));
  const Shard& parameter = found->second;
  if (is_whole || tensor.numel() != parameter.count()) {
    return units::full_shard(tensor, parameter.owned);
  }
  Shard shard = parameter;
  shard.tensor = tensor;
  return shard;
}

Shards state_shards(const Run& run, const Shards& model, const NamedTensors& state) {
  Shards result;
  for (const auto& [name, tensor] : state) {
    result.emplace(name, state_shard(run, model, name, tensor));
  }
  return result;
}

Shards optimizer_shards(const Run& run, const Shards& model, bool outer) {
  NamedTensors state = run.learner.optimizer->state();
  if (outer) state.merge(run.replicas->state());
  const std::set<std::string> whole = run.learner.optimizer->whole_state();
  Shards result;
  for (const auto& [name, tensor] : state) {
    result.emplace(name, state_shard(run, model, name, tensor, whole.contains(name)));
  }
  // State that only other ranks hold.
  for (const std::string& name : whole) result.try_emplace(name);
  for (const auto& [name, shard] : model) {
    if (!shard.is_here()) result.try_emplace(name);
  }
  return result;
}

void attribute_state(const Run& run, units::MemoryMeter& meter) {
  meter.attribute(values(held_tensors(run)), units::MemoryKind::kParameters);
  meter.attribute(run.engine->gradients(), units::MemoryKind::kGradients);
  meter.attribute(values(NamedTensors(run.learner.optimizer->state())),
                  units::MemoryKind::kOptimizer);
}

std::int64_t bytes_of_state(const Run& run) {
  std::int64_t bytes = 0;
  const auto add = [&bytes](const Shards& shards) {
    for (const auto& [name, shard] : shards) {
      if (!shard.tensor.defined()) continue;  // optimizer state of other ranks
      bytes +=
          format::element_count(shard.shape) * static_cast<std::int64_t>(shard.tensor.itemsize());
    }
  };
  const Shards model = model_shards(run);
  add(model);
  add(optimizer_shards(run, model, /*outer=*/false));
  for (const auto& mean : run.means) add(state_shards(run, model, mean->tensors()));
  return bytes;
}

}  // namespace scaletrain::train
