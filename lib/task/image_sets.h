// The sets of images that a recipe names, for the tasks that read images.
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
  // For a task that does not look at the samples' classes.
  static constexpr std::int64_t kAnyClass = std::numeric_limits<std::int32_t>::max();

  // A sample's class must be below `num_classes`; with `multi_label` it has any number of them.
  ImageSets(const recipe::Recipe& recipe, std::int64_t num_classes, bool multi_label = false);

  // As Task::open.
  OpenSet open(Split split, const Reader& reader, core::BufferPool& pool) const;

 private:
  recipe::Data data_;
  data::LoaderOptions options_;
};

}  // namespace scaletrain::task
