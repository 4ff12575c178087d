#include "lib/engine/training_context.h"

namespace scaletrain::engine {

units::Context training_context(dist::Group& data) {
  units::Context context;
  if (data.world_size() > 1) {
    context.sum_over_ranks = [&data](const at::Tensor& values) {
      data.all_reduce_sum(values, "sums of a norm").wait();
    };
  }
  return context;
}

}  // namespace scaletrain::engine
