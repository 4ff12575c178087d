#include "lib/engine/training_context.h"

namespace scaletrain::engine {

units::Context training_context(units::Context context, dist::Group& data) {
  if (data.world_size() > 1) {
    context.sum_over_ranks = [&data](const at::Tensor& values) {
      data.all_reduce_sum(values, "sums of a norm").wait();
    };
  }
  return context;
}

std::function<void(const at::Tensor& values)> sum_of_step(const dist::Mesh& mesh) {
  dist::Group &tokens = mesh.gradients(), &stages = mesh.group(core::Axis::kPipe);
  if (tokens.world_size() == 1 && stages.world_size() == 1) return {};
  return [&tokens, &stages](const at::Tensor& values) {
    tokens.all_reduce_sum(values, "what a step has counted").wait();
    stages.all_reduce_sum(values, "what stages have counted").wait();
  };
}

}  // namespace scaletrain::engine
