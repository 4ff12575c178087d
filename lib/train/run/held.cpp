#include "lib/train/run/held.h"

namespace scaletrain::train {
namespace {

std::vector<format::Piece> pieces_of(const units::NamedParameter& part) {
  if (!part.pieces.empty() || part.tensor.numel() == 0) return part.pieces;
  return {format::range_piece(part.shape, part.begin, part.begin + part.tensor.numel())};
}

// True if this is the first rank of its sharding group among those that have all unsharded tensors
// of their pipeline stage.
bool is_first_copy(const dist::Mesh& mesh) {
  if (mesh.plan().experts() > 1) return mesh.experts().rank() == 0;
  return mesh.coordinate(core::Axis::kShard) == 0;
}

// Returns this rank's slice of a parameter that its placement does not shard.
checkpoint::Part part_of_stage(const Run& run, const std::string& name, const at::Tensor& tensor) {
  const auto cut = run.learner.parts.find(name);
  const bool is_cut = cut != run.learner.parts.end();
  checkpoint::Part part{.shape = is_cut ? cut->second.shape : tensor.sizes().vec(),
                        .pieces = {},
                        .writes = is_first_copy(*run.mesh) &&
                                  (is_cut || run.learner.counts_whole) &&
                                  (!run.pipeline || run.pipeline->counts(name))};
  if (tensor.numel() == 0 || (run.pipeline && !run.pipeline->has(name))) return part;
  part.pieces =
      is_cut ? cut->second.pieces() : std::vector<format::Piece>{format::whole_piece(part.shape)};
  return part;
}

}  // namespace

NamedTensors held_tensors(const Run& run) {
  NamedTensors result = run.learner.tensors();
  if (run.pipeline) {
    for (const auto& item : run.learner.model->named_parameters()) {
      if (!run.pipeline->has(item.key())) result.erase(item.key());
    }
  }
  for (const units::NamedParameter& part : run.placement->parts()) {
    if (part.tensor.numel() > 0) {
      result.at(part.name) = part.tensor.detach();
    } else {
      result.erase(part.name);
    }
  }
  return result;
}

bool is_cut(const Run& run) {
  using core::Axis;
  if (run.mesh->size(Axis::kShard) > 1 || run.mesh->size(Axis::kPipe) > 1) return true;
  if (run.replicas->traits().steps_alone && run.mesh->size(Axis::kTensor) > 1) return true;
  return run.placement && !run.placement->parts().empty();
}

const units::TensorParts& gathered_parts(const Run& run) {
  static const units::TensorParts none;
  return is_cut(run) ? none : run.learner.parts;
}

std::optional<checkpoint::Cut> cut_of(const Run& run) {
  if (!is_cut(run)) return std::nullopt;
  const dist::Group& model = run.mesh->model();
  checkpoint::Cut cut{.parts = {},
                      .place = model.rank(),
                      .places = model.world_size(),
                      .writes = run.mesh->plan().writes(run.mesh->rank())};
  for (const units::NamedParameter& part : run.placement->parts()) {
    cut.parts[part.name] = {.shape = part.shape, .pieces = pieces_of(part), .writes = part.counts};
  }
  for (const auto& item : run.learner.model->named_parameters()) {
    const bool all_have_it = !run.pipeline && !run.learner.parts.contains(item.key());
    if (all_have_it || cut.parts.contains(item.key())) continue;
    cut.parts[item.key()] = part_of_stage(run, item.key(), item.value());
  }
  if (!run.learner.optimizer) return cut;
  for (const std::string& name : run.learner.optimizer->whole_state()) {
    const std::size_t kind = name.find('/');
    const auto part = cut.parts.find(name.substr(kind + 1));
    if (part != cut.parts.end()) part->second.whole.insert(name.substr(0, kind));
  }
  return cut;
}

void attribute_state(const Run& run, units::MemoryMeter& meter) {
  meter.attribute(values(held_tensors(run)), units::MemoryKind::kParameters);
  meter.attribute(run.engine->gradients(), units::MemoryKind::kGradients);
  meter.attribute(values(NamedTensors(run.learner.optimizer->state())),
                  units::MemoryKind::kOptimizer);
}

}  // namespace scaletrain::train
