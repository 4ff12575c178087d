// Anti-aliased resizing, bit for bit as Pillow's (and so torchvision's on PIL images): a triangle
// or cubic filter widened by the scale, horizontally and then vertically, in 22-bit fixed point.
// (From version 13 on Pillow goes the other way round where the height shrinks much more than the
// width; values then differ by a few.) Only the part of the result that is asked for is computed,
// so a resize and a crop are one.
#pragma once

#include <cstdint>
#include <vector>

#include "lib/data/image/image.h"
#include "lib/data/image/resize_axis.h"
#include "lib/data/image/resize_kernels.h"
#include "lib/data/image/view.h"

namespace scaletrain::data {

// Keeps its memory and the weights of the last view; for one thread.
class Resizer {
 public:
  // The view of `image`, the whole picture.
  void resize(const ImageView& image, const View& view, Image& out);

  // The two steps of resize(), for a picture that is decoded in part. prepare() returns the pixels
  // that the view needs of the picture shrunk by `shrink`. finish() computes the view from an image
  // that has at least them and whose first pixel is (left, top) of the shrunk picture.
  Box prepare(const View& view, std::int64_t shrink);
  void finish(const ImageView& image, std::int64_t left, std::int64_t top, Image& out);

 private:
  void horizontal_pass(const ImageView& image, std::int64_t left, std::int64_t top);
  void vertical_pass(Image& out) const;

  ResizeAxis x_, y_;
  RowWeights row_weights_;
  ColumnWeights column_weights_;
  std::vector<std::uint8_t> rows_;  // after the horizontal pass
  std::int64_t stride_ = 0;         // bytes from row to row of `rows_`
  // Copies of rows that end too near to the end of the image's memory.
  std::vector<std::uint8_t> padded_, padded2_;
};

}  // namespace scaletrain::data
