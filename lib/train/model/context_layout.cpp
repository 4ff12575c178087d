#include "lib/train/model/context_layout.h"

#include <ATen/core/Tensor.h>

#include <memory>

#include "lib/dist/ring.h"
#include "lib/parallel/context_attention.h"

namespace scaletrain::train {

using core::Axis;

std::optional<units::TokenCut> open_token_cut(dist::Mesh& mesh) {
  if (mesh.size(Axis::kContext) == 1) return std::nullopt;
  return parallel::token_cut(std::make_shared<dist::Ring>(dist::open_ring(mesh, Axis::kContext)));
}

void share_sequences(dist::Mesh& mesh, task::Task& task) {
  if (const std::optional<units::TokenCut> cut = open_token_cut(mesh)) task.share_sequences(*cut);
}

task::Example own_tokens(const task::Example& whole, const units::TokenCut& cut) {
  const at::Tensor places = cut.places(whole.input.size(1));
  return {.input = whole.input.index_select(1, places),
          .target = whole.target.index_select(1, places),
          .context = {.positions = places.unsqueeze(0),
                      .places = places,
                      .attend = cut.attention(at::Tensor())}};
}

}  // namespace scaletrain::train
