#include "lib/data/image/resize.h"

#include <algorithm>
#include <cstring>

namespace scaletrain::data {
namespace {

constexpr std::int64_t kSlack = 32;  // bytes that the kernels may access past a row

}  // namespace

void Resizer::resize(const ImageView& image, const View& view, Image& out) {
  prepare(view, 1);
  finish(image, 0, 0, out);
}

Box Resizer::prepare(const View& view, std::int64_t shrink) {
  if (x_.prepare(ResizeAxis::plan(view.source.x, shrink, view.width, view.window.x, view.filter))) {
    row_weights_.prepare(x_);
  }
  if (y_.prepare(
          ResizeAxis::plan(view.source.y, shrink, view.height, view.window.y, view.filter))) {
    column_weights_.prepare(y_);
  }
  return {x_.needed(), y_.needed()};
}

void Resizer::finish(const ImageView& image, std::int64_t left, std::int64_t top, Image& out) {
  horizontal_pass(image, left, top);
  vertical_pass(out);
}

void Resizer::horizontal_pass(const ImageView& image, std::int64_t left, std::int64_t top) {
  const Range columns = x_.needed(), rows = y_.needed();
  stride_ = x_.size() * kChannels + kSlack;
  rows_.resize(static_cast<std::size_t>(rows.size * stride_));
  const std::uint8_t* const end = image.row(image.height);
  const auto row_at = [&](std::int64_t y, std::vector<std::uint8_t>& padded) {
    const std::uint8_t* const in =
        image.row(rows.begin + y - top) + (columns.begin - left) * kChannels;
    if (end - in >= row_weights_.reach) return in;
    padded.assign(static_cast<std::size_t>(row_weights_.reach), 0);
    std::memcpy(padded.data(), in, static_cast<std::size_t>(columns.size * kChannels));
    return static_cast<const std::uint8_t*>(padded.data());
  };
  for (std::int64_t y = 0; y < rows.size; y += 2) {
    const std::int64_t y2 = std::min(y + 1, rows.size - 1);
    best_kernels().rows(row_weights_, row_at(y, padded_), row_at(y2, padded2_),
                        rows_.data() + y * stride_, rows_.data() + y2 * stride_);
  }
}

void Resizer::vertical_pass(Image& out) const {
  out.reshape(x_.size(), y_.size());
  for (std::int64_t y = 0; y < y_.size(); ++y) {
    const ResizeAxis::Taps taps = y_.at(y);
    const std::uint8_t* const in = rows_.data() + (taps.first - y_.needed().begin) * stride_;
    best_kernels().columns(column_weights_.of_row(y), taps.count, in, stride_, out.row(y),
                           out.width * kChannels);
  }
}

}  // namespace scaletrain::data
