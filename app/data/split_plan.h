// Which part of a split every sample goes to.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace scaletrain::app {

struct SplitSample {
  std::int64_t label = 0;
  std::uint64_t group = 0;  // samples of one group stay together
};

// The part (0 ..) of every sample: `shares` sum to 1, and each class is divided by them as well as
// whole groups allow; with groups of one sample each count is right to the sample. A function of
// the samples in their order, the shares and the seed.
std::vector<std::size_t> plan_split(const std::vector<SplitSample>& samples,
                                    const std::vector<double>& shares, std::uint64_t seed);

}  // namespace scaletrain::app
