// What is done to a training image at random, by name (lib/recipe/transforms.def): one file each in
// lib/data/transforms/.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "lib/core/philox.h"
#include "lib/data/image.h"
#include "lib/data/resize.h"
#include "lib/recipe/recipe.h"

namespace scaletrain::data {

// The image that transforms change, and working memory; one a thread.
struct Workspace {
  std::int64_t image_size = 0;
  Image image;
  Image spare;  // to write into and swap
  Resizer resizer;
};

class Transform {
 public:
  virtual ~Transform() = default;

  // Whether it wants the image as it was decoded and leaves one of image_size; every other is given
  // an image of image_size x image_size and keeps that size.
  virtual bool takes_decoded() const { return false; }

  // Changes work.image. All chance comes from `draws`, which is keyed by (seed, epoch, position).
  virtual void apply(Workspace& work, core::Philox& draws) const = 0;
};

using Transforms = std::vector<std::unique_ptr<const Transform>>;

Transforms make_transforms(const std::vector<recipe::Component>& augment);

std::vector<std::string> transform_names();

// The transforms in their order; the image is resized and cropped to image_size (Resizer::fit)
// before the first that does not take the decoded image, at the latest at the end.
void apply_transforms(const Transforms& transforms, Workspace& work, core::Philox& draws);

}  // namespace scaletrain::data
