// Divides a model's sequence of units into the stages of a pipeline.
#pragma once

#include <cstddef>
#include <vector>

namespace scaletrain::core {

// Returns the first unit of each of `stages` stages, by the cost of each unit, of which there are
// at least as many: every stage has a unit, the most expensive stage costs as little as can be, and
// of such divisions it is the one whose costs differ least (the sum of their squares is smallest).
// Equal costs on all ranks give equal stages.
std::vector<std::size_t> divide_into_stages(const std::vector<double>& costs, std::size_t stages);

}  // namespace scaletrain::core
