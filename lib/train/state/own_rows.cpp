#include "lib/train/state/own_rows.h"

#include <ATen/ops/full.h>

#include <algorithm>
#include <functional>
#include <iterator>
#include <numeric>
#include <utility>
#include <vector>

#include "lib/checkpoint/cut.h"
#include "lib/core/error.h"
#include "lib/train/run/held.h"
#include "lib/train/state/even_parts.h"

namespace scaletrain::train {
namespace {

std::string without_prefix(const std::string& name) { return name.substr(name.find('/') + 1); }

// True if the tensor is this rank's local shard of the part's tensor.
bool is_held_as(const checkpoint::Part& part, const at::Tensor& tensor) {
  const std::int64_t held = std::accumulate(
      part.pieces.begin(), part.pieces.end(), std::int64_t{0},
      [](std::int64_t sum, const format::Piece& piece) { return sum + piece.count(); });
  return held == tensor.numel();
}

// Returns the slice of its replica's tensor that this rank has; if `evenly`, the equal slice of a
// sharded tensor that it writes (lib/train/state/even_parts.h).
checkpoint::Part part_of_own(const Run& run, const checkpoint::Parts& parts,
                             const std::string& name, const at::Tensor& tensor, bool evenly) {
  const checkpoint::Part* const part = checkpoint::find_part(parts, name);
  const dist::Group& model = run.mesh->model();
  if (part == nullptr || checkpoint::is_whole(part, name)) {
    const std::vector<std::int64_t> shape = tensor.sizes().vec();
    return {.shape = shape,
            .pieces = {format::whole_piece(shape)},
            .writes = part != nullptr ? part->writes : model.rank() == 0};
  }
  if (evenly) return {.shape = part->shape, .pieces = {even_range(part->shape, model)}};
  if (!is_held_as(*part, tensor)) {  // a factor of powersgd
    const std::vector<std::int64_t> shape = tensor.sizes().vec();
    return {.shape = shape, .pieces = {format::whole_piece(shape)}, .writes = part->writes};
  }
  return {.shape = part->shape, .pieces = part->pieces, .writes = part->writes};
}

// Shifts the slice to `rank`'s row of the tensor [replicas, ...].
checkpoint::Part in_row(const Run& run, int rank, checkpoint::Part part) {
  const std::vector<int> copies = run.mesh->plan().same_place(rank, core::kGradientAxes);
  const auto row = std::ranges::find(copies, rank) - copies.begin();
  part.shape.insert(part.shape.begin(), std::ssize(copies));
  for (format::Piece& piece : part.pieces) {
    piece.begin.insert(piece.begin.begin(), row);
    piece.size.insert(piece.size.begin(), 1);
  }
  return part;
}

// Groups tensors by prefix, named without it; all ranks have equal prefixes.
std::map<std::string, NamedTensors> by_prefix(const NamedTensors& own) {
  std::map<std::string, NamedTensors> result{
      {"exchange", {}}, {"model", {}}, {"optimizer", {}}, {"scaler", {}}};
  for (const auto& [name, tensor] : own) {
    result.at(name.substr(0, name.find('/'))).emplace(without_prefix(name), tensor);
  }
  return result;
}

// Returns the rows of `rank`, this one or the one at its place in another replica, for its file. A
// tensor-parallel shard may be a few columns of each row; a file has one piece of a tensor.
checkpoint::OwnRows rows_of(const Run& run, int rank, const NamedTensors& own) {
  const checkpoint::Parts parts = cut_of(run)->parts;
  const bool is_even = !run.learner.parts.empty();
  checkpoint::OwnRows rows{
      .tensors = {}, .cut = {.parts = {}, .place = rank, .places = run.mesh->plan().world_size()}};
  for (const auto& [prefix, tensors] : by_prefix(own)) {
    const NamedTensors divided =
        is_even ? divide_evenly(run.mesh->model(), parts, tensors) : tensors;
    for (const auto& [name, tensor] : divided) {
      rows.cut.parts[name] = in_row(run, rank, part_of_own(run, parts, name, tensor, is_even));
      rows.tensors.emplace(prefix + "/" + name, tensor);
    }
  }
  return rows;
}

}  // namespace

void add_own_rows(const Run& run, const NamedTensors& own, checkpoint::Contents& contents) {
  contents.own_rows = {rows_of(run, run.mesh->rank(), own)};
}

void add_rows_of_replicas(const Run& run, checkpoint::Contents& contents) {
  const std::vector<int> ranks = run.mesh->plan().same_place(run.mesh->rank(), core::kDataAxes);
  for (std::size_t replica = 0; replica < ranks.size(); ++replica) {
    NamedTensors own;
    for (const auto& [name, all] : run.replicas->states().tensors) {
      if (!name.starts_with("buffers/")) {
        own.emplace(name, all[static_cast<std::int64_t>(replica)]);
      }
    }
    contents.own_rows.push_back(rows_of(run, ranks[replica], own));
  }
}

std::string read_own_rows(const Run& run, const NamedTensors& own,
                          const std::filesystem::path& checkpoint, bool fits) {
  const checkpoint::Parts parts = cut_of(run)->parts;
  checkpoint::Parts rows;
  for (const auto& [name, tensor] : own) {
    const std::string inner = without_prefix(name);
    rows[inner] =
        in_row(run, run.mesh->rank(), part_of_own(run, parts, inner, tensor, /*evenly=*/false));
  }
  std::string why = fits ? "" : "the checkpoint is of another mesh";
  std::function<void()> copy;
  try {
    if (fits) copy = checkpoint::prepare_cut_ranks(checkpoint, own, rows);
  } catch (const core::CheckpointError& error) {
    why = error.found();
  }
  dist::Group& group = *run.group;
  const at::Tensor failed =
      at::full({}, why.empty() ? 0.0 : 1.0, at::TensorOptions(at::kDouble).device(group.device()));
  group.all_reduce_max(failed, "state of each rank").wait();
  if (group.to_host(failed).item<double>() == 0) {
    copy();
    return "";
  }
  return why.empty() ? "it does not fit on another rank" : why;
}

}  // namespace scaletrain::train
