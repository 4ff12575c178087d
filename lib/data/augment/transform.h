// Random data augmentation of training images, by name (lib/recipe/catalog/transforms.def): one
// file each in lib/data/augment/transforms/.
//
// A crop chooses the view of the picture before it is decoded; transforms change the pixels of the
// resulting image of image_size x image_size.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "lib/core/philox.h"
#include "lib/data/augment/ops/scratch.h"
#include "lib/data/image/image.h"
#include "lib/data/image/view.h"
#include "lib/recipe/catalog/values.h"
#include "lib/recipe/sections/data/data.h"

namespace scaletrain::data {

class Crop {
 public:
  virtual ~Crop() = default;

  // Chooses the view of a picture of width x height for an output of image_size x image_size.
  virtual View view(std::int64_t width, std::int64_t height, std::int64_t image_size,
                    core::Philox& draws) const = 0;
};

// Image that the transforms change, and working memory; one for each thread.
struct Workspace {
  Image image;
  Scratch scratch;
};

class Transform {
 public:
  virtual ~Transform() = default;

  // Changes work.image but not its size. All random numbers come from `draws`, which is keyed by
  // (seed, epoch, position).
  virtual void apply(Workspace& work, core::Philox& draws) const = 0;
};

// A crop, followed by transforms in order.
struct Transforms {
  std::unique_ptr<const Crop>
      crop;  // null: resizes the shorter side to image_size, crops the centre
  std::vector<std::unique_ptr<const Transform>> changes;

  View view(std::int64_t width, std::int64_t height, std::int64_t image_size,
            core::Philox& draws) const;
  void apply(Workspace& work, core::Philox& draws) const;
};

// `augment` has at most one crop, as its first (lib/recipe/catalog/component.cpp). `normalize`:
// normalization of the model's input; its mean is the fill colour.
Transforms make_transforms(const std::vector<recipe::Component>& augment,
                           const recipe::Normalize& normalize = {});

}  // namespace scaletrain::data
