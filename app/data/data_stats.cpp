#include "app/data/data_stats.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

namespace scaletrain::app {

void Extent::add(std::int64_t value, bool first) {
  least = first ? value : std::min(least, value);
  most = std::max(most, value);
  sum += value;
}

void Extent::merge(const Extent& from, bool first) {
  least = first ? from.least : std::min(least, from.least);
  most = std::max(most, from.most);
  sum += from.sum;
}

void DataStats::add(const std::vector<std::int64_t>& labels, const std::string& format,
                    std::int64_t bytes, const data::Image& image) {
  const bool first = samples == 0;
  ++samples;
  image_bytes += bytes;
  for (const std::int64_t label : labels) ++by_class[label];
  ++by_format[format];
  ++by_size[fmt::format("{}x{}", image.width, image.height)];
  width.add(image.width, first);
  height.add(image.height, first);
  pixels += image.width * image.height;
  for (std::size_t i = 0; i < image.pixels.size(); i += 3) {
    for (std::size_t c = 0; c < 3; ++c) {
      const std::uint64_t value = image.pixels[i + c];
      sums[c] += value;
      squares[c] += value * value;
    }
  }
}

void DataStats::merge(const DataStats& from) {
  if (from.samples == 0) return;
  const bool first = samples == 0;
  width.merge(from.width, first);
  height.merge(from.height, first);
  samples += from.samples;
  image_bytes += from.image_bytes;
  pixels += from.pixels;
  for (const auto& [label, count] : from.by_class) by_class[label] += count;
  for (const auto& [name, count] : from.by_format) by_format[name] += count;
  for (const auto& [name, count] : from.by_size) by_size[name] += count;
  for (std::size_t c = 0; c < 3; ++c) {
    sums[c] += from.sums[c];
    squares[c] += from.squares[c];
  }
}

std::array<double, 3> DataStats::mean() const {
  std::array<double, 3> result{};
  for (std::size_t c = 0; c < 3 && pixels > 0; ++c) {
    result[c] = static_cast<double>(sums[c]) / static_cast<double>(pixels) / 255;
  }
  return result;
}

std::array<double, 3> DataStats::deviation() const {
  std::array<double, 3> result{};
  for (std::size_t c = 0; c < 3 && pixels > 0; ++c) {
    const auto count = static_cast<long double>(pixels);
    const long double average = static_cast<long double>(sums[c]) / count;
    const long double variance = static_cast<long double>(squares[c]) / count - average * average;
    result[c] = static_cast<double>(std::sqrt(std::max(variance, 0.0L)) / 255);
  }
  return result;
}

}  // namespace scaletrain::app
