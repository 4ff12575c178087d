// Which part of a split every sample goes to.
#pragma once

#include <cstdint>
#include <vector>

namespace scaletrain::app {

// 16 bytes.
struct SplitSample {
  std::uint64_t group = 0;  // samples of one group stay together
  std::uint32_t label = 0;
  std::uint32_t number = 0;  // of the sample: 0 and up, each once
};

// The part (0 ..) of every sample by its number: `shares` sum to 1, and each class is divided by
// them as well as whole groups allow; with groups of one sample each count is right to the sample,
// and so are the parts of the whole set, however small the classes are. A function of the samples,
// whatever their order, the shares and the seed. Beside the samples it takes 13 bytes for each at
// most.
std::vector<std::uint8_t> plan_split(std::vector<SplitSample> samples,
                                     const std::vector<double>& shares, std::uint64_t seed);

}  // namespace scaletrain::app
