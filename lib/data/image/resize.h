// Anti-aliased resizing, bit for bit as in Pillow (and torchvision on PIL images): a triangle or
// cubic filter, widened by the scale, first horizontally and then vertically, in 22-bit fixed
// point. Pillow 13 and later start vertically if the height shrinks much more than the width;
// values then differ slightly. Only the requested part of the result is computed, so that a resize
// and a crop are one operation.
#pragma once

#include <cstdint>
#include <vector>

#include "lib/data/image/image.h"
#include "lib/data/image/resize_axis.h"
#include "lib/data/image/resize_kernels.h"
#include "lib/data/image/view.h"

namespace scaletrain::data {

// Resizer with its memory and the weights of the last view; for one thread.
class Resizer {
 public:
  // Computes the view of `image`, the whole picture.
  void resize(const ImageView& image, const View& view, Image& out);

  // The two steps of resize(), for a picture that is decoded in part. prepare() returns the pixels
  // that the view needs of the picture shrunk by `shrink`. finish() computes the view from an image
  // that contains at least these pixels; (left, top) is the position of its first pixel in the
  // shrunk picture.
  Box prepare(const View& view, std::int64_t shrink);
  void finish(const ImageView& image, std::int64_t left, std::int64_t top, Image& out);

 private:
  void horizontal_pass(const ImageView& image, std::int64_t left, std::int64_t top);
  void vertical_pass(Image& out) const;

  ResizeAxis x_, y_;
  RowWeights row_weights_;
  ColumnWeights column_weights_;
  std::vector<std::uint8_t> rows_;  // after the horizontal pass
  std::int64_t stride_ = 0;         // bytes between rows of `rows_`
  // Copies of rows that end too close to the end of the image's memory.
  std::vector<std::uint8_t> padded_, padded2_;
};

}  // namespace scaletrain::data
