// Pictures and histograms of a run, as exporters receive them: lines of RUN/media/index.jsonl and
// RUN/histograms.jsonl (docs/reference/media.md).
#pragma once

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <vector>

namespace scaletrain::track {

// A PNG of several images side by side.
struct Picture {
  std::string name;  // "train/batch", "val/worst"
  std::string file;  // name in RUN/media
  std::int64_t attempt = 0, step = 0;
  double time = 0;  // Unix seconds
  std::int64_t columns = 1;
  std::vector<std::string> captions;  // captions of the images, row by row
};

// Equal buckets from `min` to `max`.
struct Histogram {
  std::string name;  // "weights/fc.weight", "gradients/fc.weight"
  double min = 0, max = 0, sum = 0, sum_squares = 0;
  std::vector<double> counts;
};

struct Histograms {
  std::int64_t attempt = 0, step = 0;
  double time = 0;
  std::vector<Histogram> all;
};

// Return nullopt for a line without the fields above, or with a file outside RUN/media.
std::optional<Picture> parse_picture(const nlohmann::ordered_json& line);
std::optional<Histograms> parse_histograms(const nlohmann::ordered_json& line);

}  // namespace scaletrain::track
