#include "lib/train/held.h"

namespace scaletrain::train {
namespace {

std::vector<format::Piece> pieces_of(const units::NamedParameter& part) {
  if (!part.pieces.empty() || part.tensor.numel() == 0) return part.pieces;
  return {format::range_piece(part.shape, part.begin, part.begin + part.tensor.numel())};
}

}  // namespace

NamedTensors held_tensors(const Run& run) {
  NamedTensors result = run.learner.tensors();
  for (const units::NamedParameter& part : run.placement->parts()) {
    if (part.tensor.numel() > 0) {
      result.at(part.name) = part.tensor.detach();
    } else {
      result.erase(part.name);
    }
  }
  return result;
}

bool is_cut(const Run& run) { return run.placement && !run.placement->parts().empty(); }

std::optional<checkpoint::Cut> cut_of(const Run& run) {
  if (!is_cut(run)) return std::nullopt;
  const dist::Group& model = run.mesh->model();
  checkpoint::Cut cut{.parts = {},
                      .place = model.rank(),
                      .places = model.world_size(),
                      .writes = run.mesh->plan().writes(run.mesh->world().rank())};
  for (const units::NamedParameter& part : run.placement->parts()) {
    cut.parts[part.name] = {.shape = part.shape, .pieces = pieces_of(part)};
  }
  if (!run.learner.optimizer) return cut;
  for (const std::string& name : run.learner.optimizer->with_owner()) {
    cut.parts.at(name).has_owner = true;
  }
  return cut;
}

}  // namespace scaletrain::train
