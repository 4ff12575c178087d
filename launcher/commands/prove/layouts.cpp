#include "launcher/commands/prove/layouts.h"

#include <utility>

namespace scaletrain::launcher {
namespace {

recipe::Parallel sharded(const char* level) {
  recipe::Parallel parallel;
  parallel.shard = 2;
  parallel.shard_level = level;
  return parallel;
}

recipe::Parallel pipelined(const char* schedule) {
  recipe::Parallel parallel;
  parallel.pipeline = 2;
  parallel.schedule = schedule;
  return parallel;
}

recipe::Parallel tensor_parallel(bool sequence) {
  recipe::Parallel parallel;
  parallel.tensor = 2;
  parallel.sequence = sequence;
  return parallel;
}

// A layout with a size set to 2: `two(&Parallel::context)`.
recipe::Parallel two(std::int64_t recipe::Parallel::*size, recipe::Parallel parallel = {}) {
  parallel.*size = 2;
  return parallel;
}

}  // namespace

int ProvenLayout::readers() const {
  const core::MeshSizes mesh = parallel.mesh();
  return ranks / (mesh.pipe * mesh.context * mesh.tensor);
}

std::vector<ProvenLayout> proven_layouts() {
  using recipe::Parallel;
  return {{"shard-2-optimizer", 2, sharded("optimizer")},
          {"shard-2-gradients", 2, sharded("gradients")},
          {"shard-2-parameters", 2, sharded("parameters")},
          {"tensor-2", 2, tensor_parallel(false)},
          {"tensor-2-sequence", 2, tensor_parallel(true)},
          {"pipeline-2-1f1b", 2, pipelined("1f1b")},
          {"pipeline-2-gpipe", 2, pipelined("gpipe")},
          {"pipeline-2-interleaved", 2, pipelined("interleaved")},
          {"pipeline-2-zero_bubble", 2, pipelined("zero_bubble")},
          {"context-2", 2, two(&Parallel::context)},
          {"expert-2", 2, two(&Parallel::expert)},
          {"replica-2-shard-2", 4, sharded("parameters")},
          {"tensor-2-shard-2", 4, two(&Parallel::tensor, sharded("parameters"))},
          {"pipeline-2-tensor-2", 4, two(&Parallel::tensor, pipelined("1f1b"))},
          {"pipeline-2-shard-2", 4, two(&Parallel::pipeline, sharded("parameters"))},
          {"context-2-tensor-2", 4, two(&Parallel::tensor, two(&Parallel::context))},
          {"expert-2-shard-2", 4, two(&Parallel::expert, sharded("parameters"))}};
}

}  // namespace scaletrain::launcher
