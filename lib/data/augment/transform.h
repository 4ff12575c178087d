// Random data augmentation of training images, by name (lib/recipe/catalog/transforms.def): one
// file each in lib/data/augment/transforms/.
//
// A crop chooses the view of the picture before it is decoded; transforms change the pixels of the
// image of image_size x image_size that comes of it.
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

  // Chooses the view of a picture of width x height; its window is image_size x image_size.
  virtual View view(std::int64_t width, std::int64_t height, std::int64_t image_size,
                    core::Philox& draws) const = 0;
};

// The image that transforms change, and working memory; one a thread.
struct Workspace {
  Image image;
  Scratch scratch;
};

class Transform {
 public:
  virtual ~Transform() = default;

  // Changes work.image, whose size stays. All chance comes from `draws`, which is keyed by (seed,
  // epoch, position).
  virtual void apply(Workspace& work, core::Philox& draws) const = 0;
};

// A crop, and then transforms in their order.
struct Transforms {
  std::unique_ptr<const Crop>
      crop;  // null: resizes the shorter side to image_size, crops the centre
  std::vector<std::unique_ptr<const Transform>> changes;

  View view(std::int64_t width, std::int64_t height, std::int64_t image_size,
            core::Philox& draws) const;
  void apply(Workspace& work, core::Philox& draws) const;
};

// `augment` has at most one crop, as its first (lib/recipe/catalog/component.cpp). `normalize` is
// what the model's input will be normalised with: its mean is the colour of what a transform leaves
// empty.
Transforms make_transforms(const std::vector<recipe::Component>& augment,
                           const recipe::Normalize& normalize = {});

}  // namespace scaletrain::data
