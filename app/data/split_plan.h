// Plans a split: assigns every sample to a part.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace scaletrain::app {

// A sample to assign; 16 bytes.
struct SplitSample {
  std::uint64_t group = 0;  // samples of one group stay together
  std::uint32_t label = 0;
  std::uint32_t number = 0;  // the sample's number: from 0, each once
};

struct SplitPlan {
  std::vector<std::uint8_t> parts;  // part of each sample, by its number
  std::size_t groups = 0;
};

// Divides the samples by `shares`, which sum to 1, within each class as evenly as complete groups
// allow. With groups of one sample the counts of each class and of the parts are exact. The result
// depends only on the samples (not their order), the shares and the seed. Uses at most 13 further
// bytes per sample.
SplitPlan plan_split(std::vector<SplitSample> samples, const std::vector<double>& shares,
                     std::uint64_t seed);

}  // namespace scaletrain::app
