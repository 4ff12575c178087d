#include "lib/data/resize.h"

#include <algorithm>
#include <cmath>

namespace scaletrain::data {
namespace {

constexpr int kPrecision = 22;  // bits after the point: 8 bits of pixel and 2 to spare in 32
constexpr std::int32_t kHalf = 1 << (kPrecision - 1);

std::uint8_t to_pixel(std::int32_t sum) {
  return static_cast<std::uint8_t>(std::clamp(sum >> kPrecision, 0, 255));
}

// Half of `excess`, a half rounded to the even number, as Python's round() does in CenterCrop.
std::int64_t centre(std::int64_t excess) {
  const std::int64_t half = excess / 2;
  return excess % 2 != 0 && half % 2 != 0 ? half + 1 : half;
}

}  // namespace

void ResizeAxis::prepare(Range source, std::int64_t full, Range window) {
  if (source == source_ && full == full_ && window == window_) return;
  source_ = source;
  full_ = full;
  window_ = window;
  const double scale = static_cast<double>(source.size) / static_cast<double>(full);
  const double support = std::max(scale, 1.0);  // half the filter's width, in source pixels
  stride_ = static_cast<std::int64_t>(std::ceil(support)) * 2 + 1;
  first_.resize(static_cast<std::size_t>(window.size));
  count_.resize(static_cast<std::size_t>(window.size));
  weights_.assign(static_cast<std::size_t>(window.size * stride_), 0);
  std::vector<double> exact(static_cast<std::size_t>(stride_));
  for (std::int64_t i = 0; i < window.size; ++i) {
    const double middle = (static_cast<double>(window.begin + i) + 0.5) * scale;
    const std::int64_t first = std::max<std::int64_t>(0, std::lround(middle - support));
    const std::int64_t end = std::min<std::int64_t>(source.size, std::lround(middle + support));
    double total = 0;
    for (std::int64_t t = 0; t < end - first; ++t) {
      const double distance = std::abs(static_cast<double>(first + t) - middle + 0.5) / support;
      const double weight = std::max(0.0, 1.0 - distance);
      exact[static_cast<std::size_t>(t)] = weight;
      total += weight;
    }
    for (std::int64_t t = 0; t < end - first; ++t) {
      weights_[static_cast<std::size_t>(i * stride_ + t)] = static_cast<std::int32_t>(
          std::lround(exact[static_cast<std::size_t>(t)] / total * (1 << kPrecision)));
    }
    first_[static_cast<std::size_t>(i)] = first;
    count_[static_cast<std::size_t>(i)] = end - first;
  }
}

ResizeAxis::Taps ResizeAxis::at(std::int64_t index) const {
  const auto i = static_cast<std::size_t>(index);
  return {first_[i], count_[i], weights_.data() + index * stride_};
}

Range ResizeAxis::needed() const {
  return {first_.front(), first_.back() + count_.back() - first_.front()};
}

void Resizer::resize(const Image& image, const Box& source, std::int64_t full_width,
                     std::int64_t full_height, const Box& window, Image& out) {
  x_.prepare(source.x, full_width, window.x);
  y_.prepare(source.y, full_height, window.y);
  out.reshape(window.x.size, window.y.size);
  const Range needed = y_.needed();
  const std::int64_t row_bytes = window.x.size * kChannels;
  rows_.resize(static_cast<std::size_t>(needed.size * row_bytes));
  for (std::int64_t y = 0; y < needed.size; ++y) {
    const std::uint8_t* const in =
        image.row(source.y.begin + needed.begin + y) + source.x.begin * kChannels;
    std::uint8_t* to = rows_.data() + y * row_bytes;
    for (std::int64_t x = 0; x < window.x.size; ++x, to += kChannels) {
      const ResizeAxis::Taps taps = x_.at(x);
      const std::uint8_t* pixel = in + taps.first * kChannels;
      std::int32_t red = kHalf, green = kHalf, blue = kHalf;
      for (std::int64_t t = 0; t < taps.count; ++t, pixel += kChannels) {
        red += taps.weights[t] * pixel[0];
        green += taps.weights[t] * pixel[1];
        blue += taps.weights[t] * pixel[2];
      }
      to[0] = to_pixel(red);
      to[1] = to_pixel(green);
      to[2] = to_pixel(blue);
    }
  }
  sums_.resize(static_cast<std::size_t>(row_bytes));
  std::int32_t* const sums = sums_.data();
  for (std::int64_t y = 0; y < window.y.size; ++y) {
    const ResizeAxis::Taps taps = y_.at(y);
    std::fill(sums_.begin(), sums_.end(), kHalf);
    for (std::int64_t t = 0; t < taps.count; ++t) {
      const std::uint8_t* const in = rows_.data() + (taps.first + t - needed.begin) * row_bytes;
      const std::int32_t weight = taps.weights[t];
      for (std::int64_t i = 0; i < row_bytes; ++i) sums[i] += weight * in[i];
    }
    std::uint8_t* const to = out.row(y);
    for (std::int64_t i = 0; i < row_bytes; ++i) to[i] = to_pixel(sums[i]);
  }
}

void Resizer::fit(const Image& image, std::int64_t size, Image& out) {
  const std::int64_t shorter = std::min(image.width, image.height);
  // The longer side is rounded down, as torchvision does.
  const std::int64_t full_width = size * image.width / shorter;
  const std::int64_t full_height = size * image.height / shorter;
  resize(image, {{0, image.width}, {0, image.height}}, full_width, full_height,
         {{centre(full_width - size), size}, {centre(full_height - size), size}}, out);
}

}  // namespace scaletrain::data
