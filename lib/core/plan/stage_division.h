// Divides a model's sequence of units into the stages of a pipeline.
#pragma once

#include <cstddef>
#include <vector>

namespace scaletrain::core {

// Returns the first unit of each of `stages` stages. There are at least as many units as stages,
// and every stage gets one. The most expensive stage is as cheap as possible; among such divisions,
// the sum of squared stage costs is smallest. Equal costs on all ranks give equal stages.
std::vector<std::size_t> divide_into_stages(const std::vector<double>& costs, std::size_t stages);

}  // namespace scaletrain::core
