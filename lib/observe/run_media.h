// Pictures and histograms of a run, which rank 0 writes for the report and the trackers:
// RUN/media/*.png with RUN/media/index.jsonl, and RUN/histograms.jsonl (docs/reference/media.md).
//
// A file that cannot be written is a warning and never stops the training.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "lib/core/housekeeping.h"

namespace scaletrain::observe {

// Format version of both files, in each line.
inline constexpr int kMediaFormat = 1;

// Images side by side in one PNG.
struct PictureRecord {
  std::string name;       // "train/batch", "val/worst"
  std::int64_t step = 0;  // optimizer steps of the model
  std::int64_t columns = 1;
  std::vector<std::string> captions;  // captions of the images, row by row
};

// Finite values of a tensor in equal buckets from `min` to `max`.
struct HistogramRecord {
  std::string name;  // "weights/fc.weight", "gradients/fc.weight"
  double min = 0, max = 0, sum = 0, sum_squares = 0;
  std::int64_t not_finite = 0;       // values that are in no bucket
  std::vector<std::int64_t> counts;  // empty: no finite value
};

// Name of the picture's file: "step-00000120-val-worst.png".
std::string picture_file(const PictureRecord& picture);

class RunMedia {
 public:
  RunMedia(std::filesystem::path run, int attempt,
           std::shared_ptr<core::Housekeeping> housekeeping);

  // Keeps the newest kKeptPictures of each name that this process wrote, and every "train/batch".
  void write(const PictureRecord& picture, std::string_view png);
  void write(std::int64_t step, const std::vector<HistogramRecord>& histograms);

  static constexpr std::size_t kKeptPictures = 20;

 private:
  void remove_old(const std::string& name, const std::string& file);

  std::filesystem::path run_;
  int attempt_;
  std::shared_ptr<core::Housekeeping> housekeeping_;
  std::vector<std::pair<std::string, std::string>> written_;  // names and files, oldest first
};

}  // namespace scaletrain::observe
