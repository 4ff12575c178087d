#include "lib/train/simulate/blank_batch.h"

#include <ATen/ops/zeros.h>

#include "lib/input/images.h"

namespace scaletrain::train {

task::Example blank_batch(const recipe::Recipe& recipe, const task::Task& task,
                          std::int64_t samples, std::int64_t tokens) {
  if (recipe::reads_tokens(recipe.model)) {
    return {.input = at::zeros({samples, tokens}, at::kLong),
            .target = at::zeros({samples, tokens}, at::kLong)};
  }
  const std::int64_t size = recipe.data.image_size;
  const std::int64_t classes = task.independent_classes();
  // The channels of a pixel are neighbours, as lib/input lays images out: the memory of the first
  // layers depends on that.
  const at::Tensor pixels = at::zeros({samples, size, size, recipe.model.in_channels},
                                      input::image_type(recipe.precision));
  return {.input = pixels.permute({0, 3, 1, 2}),
          .target = classes > 0 ? at::zeros({samples, classes}) : at::zeros({samples}, at::kLong)};
}

}  // namespace scaletrain::train
