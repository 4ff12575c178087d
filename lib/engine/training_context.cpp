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

}  // namespace scaletrain::engine
