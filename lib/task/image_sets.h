// Opens the image sets of a recipe, for tasks that read images.
#pragma once

#include <cstdint>
#include <limits>

#include "lib/data/loader/image_stream.h"
#include "lib/recipe/sections/data/data.h"
#include "lib/task/task.h"

namespace scaletrain::recipe {
struct Recipe;
}

namespace scaletrain::task {

class ImageSets {
 public:
  // For tasks that ignore the samples' classes.
  static constexpr std::int64_t kAnyClass = std::numeric_limits<std::int32_t>::max();

  // Class numbers must be below `num_classes`; with `multi_label` a sample may have any number of
  // classes.
  ImageSets(const recipe::Recipe& recipe, std::int64_t num_classes, bool multi_label = false);

  // Opens a set, as Task::open() does.
  OpenSet open(Split split, const Reader& reader, core::BufferPool& pool) const;

 private:
  recipe::Data data_;
  data::LoaderOptions options_;
};

}  // namespace scaletrain::task
