#include "lib/train/state/even_parts.h"

#include <ATen/ops/zeros.h>
#include <c10/core/GradMode.h>
#include <fmt/format.h>

#include <map>
#include <sstream>
#include <string>

#include "lib/checkpoint/cut.h"
#include "lib/core/error.h"
#include "lib/train/model/buffers.h"

namespace scaletrain::train {
namespace {

// The tensors that any rank has something of, and their types.
std::map<std::string, at::ScalarType> types_of_all(dist::Group& model,
                                                   const checkpoint::Parts& parts,
                                                   const NamedTensors& own) {
  std::map<std::string, at::ScalarType> all;
  for (int place = 0; place < model.world_size(); ++place) {
    std::string text;  // shards that earlier ranks lack
    for (const auto& [name, tensor] : own) {
      if (place != model.rank() || all.contains(name)) continue;
      if (checkpoint::find_part(parts, name) == nullptr) continue;
      text += fmt::format("{} {}\n", static_cast<int>(tensor.scalar_type()), name);
    }
    std::istringstream lines(model.broadcast_text(text, place, "what a rank has"));
    int type = 0;
    for (std::string name; lines >> type && std::getline(lines >> std::ws, name);) {
      all.emplace(name, static_cast<at::ScalarType>(type));
    }
  }
  return all;
}

// Copies the pieces that `own` is, one behind the other, to their places in `whole`.
void put_pieces(const checkpoint::Part& part, const at::Tensor& own, const at::Tensor& whole) {
  if (own.numel() != checkpoint::count_of(part)) {
    throw core::InternalError("divide_evenly",
                              fmt::format("{} elements in place of the {} of a part", own.numel(),
                                          checkpoint::count_of(part)));
  }
  const at::Tensor from = own.detach().cpu().contiguous().view({-1}), to = whole.view({-1});
  const format::Piece all = format::whole_piece(part.shape);
  std::int64_t begin = 0;
  for (const format::Piece& piece : part.pieces) {
    format::for_each_overlap(piece, all, [&](const format::Overlap& run) {
      to.narrow(0, run.to, run.count).copy_(from.narrow(0, begin + run.from, run.count));
    });
    begin += piece.count();
  }
}

}  // namespace

format::Piece even_range(const std::vector<std::int64_t>& shape, const dist::Group& model) {
  const std::int64_t count = format::element_count(shape);
  const auto border = [&](std::int64_t place) { return count * place / model.world_size(); };
  return format::range_piece(shape, border(model.rank()), border(model.rank() + 1));
}

// As a sum of bytes: each element is put by one rank, and 0 + -0 is not the same bits as -0.
NamedTensors divide_evenly(dist::Group& model, const checkpoint::Parts& parts,
                           const NamedTensors& own) {
  const at::NoGradGuard no_grad;
  NamedTensors result;
  for (const auto& [name, tensor] : own) {
    if (checkpoint::find_part(parts, name) == nullptr) result.emplace(name, tensor);
  }
  for (const auto& [name, type] : types_of_all(model, parts, own)) {
    const checkpoint::Part& part = *checkpoint::find_part(parts, name);
    const at::Tensor whole = at::zeros(part.shape, at::TensorOptions(type));
    const auto found = own.find(name);
    if (found != own.end() && part.writes) put_pieces(part, found->second, whole);
    const at::Tensor message = whole.view({-1}).to(model.device());
    model.all_reduce_sum(message.view(at::kByte), "tensors for a checkpoint").wait();
    const format::Piece range = even_range(part.shape, model);
    if (range.count() == 0) continue;
    result.emplace(name, message.narrow(0, range.first, range.count()).clone().cpu());
  }
  return result;
}

void divide_evenly(dist::Group& model, checkpoint::Contents& contents) {
  if (!contents.cut->writes) return;
  const at::NoGradGuard no_grad;
  checkpoint::Parts& parts = contents.cut->parts;
  contents.model = divide_evenly(model, parts, contents.model);
  for (auto& [name, mean] : contents.means)
    mean.tensors = divide_evenly(model, parts, mean.tensors);
  contents.optimizer = divide_evenly(model, parts, contents.optimizer);
  for (auto& [name, part] : parts) {
    const format::Piece range = even_range(part.shape, model);
    part = {.shape = part.shape, .pieces = {}, .writes = true};
    if (range.count() > 0) part.pieces.push_back(range);
  }
}

}  // namespace scaletrain::train
