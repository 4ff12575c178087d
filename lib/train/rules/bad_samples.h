// Reports skipped samples: one line each in RUN/bad_samples/RANK.jsonl, a warning for the first
// few, and the end of the run above the recipe's rate.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "lib/core/housekeeping.h"
#include "lib/data/loader/bad_sample.h"

namespace scaletrain::recipe {
struct Recipe;
}

namespace scaletrain::train {

class BadSamples {
 public:
  // Fewer samples count as this many, so that one bad sample among the first ten does not end a
  // run.
  static constexpr std::int64_t kFewest = 1000;

  BadSamples(
      const recipe::Recipe& recipe, int rank,
      std::shared_ptr<core::Housekeeping> housekeeping = std::make_shared<core::Housekeeping>());

  // Writes the list of samples that this rank has skipped, each once. A file that cannot be written
  // is only a warning.
  void record(const std::vector<data::BadSample>& skipped);

  // Throws core::DataError when `skipped` of `samples` of `split`, both over all ranks, are more
  // than /data/bad_samples/max_rate.
  void check(const std::string& split, std::int64_t skipped, std::int64_t samples) const;

 private:
  void append(const data::BadSample& sample);

  std::filesystem::path file_;
  double max_rate_;
  std::set<std::string> known_;  // places
  std::shared_ptr<core::Housekeeping> housekeeping_;
};

}  // namespace scaletrain::train
