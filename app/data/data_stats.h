// Statistics of a set of shards. Sums are integers, so the result does not depend on the order of
// samples.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "lib/data/image/image.h"

namespace scaletrain::app {

struct Extent {
  std::int64_t least = 0, most = 0, sum = 0;

  void add(std::int64_t value, bool first);
  void merge(const Extent& from, bool first);
};

struct DataStats {
  std::int64_t samples = 0, image_bytes = 0, pixels = 0;
  std::map<std::int64_t, std::int64_t> by_class;
  std::map<std::string, std::int64_t> by_format;  // formats recognised by the first bytes
  std::map<std::string, std::int64_t> by_size;    // "500x375"
  Extent width, height;
  std::array<std::uint64_t, 3> sums{}, squares{};  // over all pixels, by channel

  // Counts one sample with these classes.
  void add(const std::vector<std::int64_t>& labels, const std::string& format, std::int64_t bytes,
           const data::Image& image);
  void merge(const DataStats& from);

  // Mean and standard deviation of the pixels in 0..1, by channel; 0 without pixels.
  std::array<double, 3> mean() const;
  std::array<double, 3> deviation() const;
};

struct Thumbnail {
  std::string jpeg, caption;
};

struct Sheet {
  std::vector<Thumbnail> thumbnails;
  std::size_t of_each = 0;  // limit for each class, or list of classes
  bool has_all = true;      // otherwise only of the first classes
};

// Returns a self-contained HTML page: counts, a bar for each class, and thumbnails with the way
// they were chosen.
std::string stats_page(const std::string& title, const DataStats& stats,
                       const std::vector<std::string>& classes, const Sheet& sheet);

}  // namespace scaletrain::app
