// Assignment of every sample to a part of a split.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace scaletrain::app {

// 16 bytes.
struct SplitSample {
  std::uint64_t group = 0;  // samples of one group stay together
  std::uint32_t label = 0;
  std::uint32_t number = 0;  // the sample's number: from 0, each once
};

struct SplitPlan {
  std::vector<std::uint8_t> parts;  // part of each sample, by its number
  std::size_t groups = 0;
};

// Divides the samples: `shares` sum to 1, and each class is divided by
// them as well as whole groups allow; with groups of one sample each count is right to the sample,
// and so are the parts of the whole set, however small the classes are. A function of the samples,
// whatever their order, the shares and the seed. Beside the samples it takes 13 bytes for each at
// most.
SplitPlan plan_split(std::vector<SplitSample> samples, const std::vector<double>& shares,
                     std::uint64_t seed);

}  // namespace scaletrain::app
