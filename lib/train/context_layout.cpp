#include "lib/train/context_layout.h"

#include <memory>

#include "lib/dist/ring.h"
#include "lib/parallel/context_attention.h"

namespace scaletrain::train {

using core::Axis;

void share_sequences(dist::Mesh& mesh, task::Task& task) {
  if (mesh.size(Axis::kContext) == 1) return;
  task.share_sequences(
      parallel::token_cut(std::make_shared<dist::Ring>(dist::open_ring(mesh, Axis::kContext))));
}

}  // namespace scaletrain::train
