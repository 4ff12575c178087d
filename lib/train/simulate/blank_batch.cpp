#include "lib/train/simulate/blank_batch.h"

#include <ATen/ops/zeros.h>

namespace scaletrain::train {

task::Example blank_batch(const recipe::Recipe& recipe, const task::Task& task,
                          std::int64_t samples, std::int64_t tokens) {
  if (recipe::reads_tokens(recipe.model)) {
    return {.input = at::zeros({samples, tokens}, at::kLong),
            .target = at::zeros({samples, tokens}, at::kLong)};
  }
  const std::int64_t size = recipe.data.image_size;
  const std::int64_t classes = task.independent_classes();
  return {.input = at::zeros({samples, 3, size, size}),
          .target = classes > 0 ? at::zeros({samples, classes}) : at::zeros({samples}, at::kLong)};
}

}  // namespace scaletrain::train
