// Layout of parameters in flat blocks of memory: one block for each unit, dtype and trainability,
// so that a unit travels in one message and nothing is copied in or out.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstddef>
#include <cstdint>
#include <set>
#include <string>
#include <vector>

#include "lib/core/plan/gradient_memory.h"
#include "lib/units/named_parameter.h"

namespace scaletrain::parallel {

// Position of a parameter in a block.
struct FlatSlot {
  std::size_t parameter = 0;  // index in the list of parameters
  std::int64_t begin = 0, count = 0;
};

struct FlatPlan {
  std::vector<std::size_t> units;  // units that use it, ascending; several for tied tensors
  std::vector<FlatSlot> slots;     // ascending by `begin`, with gaps
  at::ScalarType type = at::kFloat;
  bool is_trained = true;
  bool is_bf16_when_gathered = false;
  std::int64_t part = 0;  // elements of a rank's shard; the last shards may be padding
};

// Elements [first, last) of a block.
struct FlatRange {
  std::int64_t first = 0, last = 0;
};

// Plans blocks for `ranks` ranks, in the order of their first unit and of the parameters in it;
// `gathered_as_bf16` get separate blocks. A parameter that no unit names belongs to the last unit.
// Tied tensors have blocks of their own, one for each set of units.
std::vector<FlatPlan> plan_flats(const std::vector<units::NamedParameter>& parameters,
                                 const std::vector<std::vector<std::string>>& units, int ranks,
                                 const std::set<std::string>& gathered_as_bf16 = {});

// Ranges of a block of `ranks` shards that no parameter fills.
std::vector<FlatRange> gaps_of(const FlatPlan& plan, int ranks);

// Memory of the gradients of a trained block.
core::GradientBlock gradient_block(const FlatPlan& plan, int ranks);

// Shard of `rank` in a slot, relative to the slot's beginning; empty if first equals last.
FlatRange part_of(const FlatSlot& slot, std::int64_t part, int rank);

// Shard of `parameter`: `tensor` holds its elements from `range.first` on.
units::NamedParameter shard_of_parameter(const units::NamedParameter& parameter, FlatRange range,
                                         at::Tensor tensor);

}  // namespace scaletrain::parallel
