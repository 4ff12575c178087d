// Which parameters lie in one block of memory, and where: a block for each unit, type and
// trainability, so that a unit travels in one message and nothing is copied in or out.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstddef>
#include <cstdint>
#include <set>
#include <string>
#include <vector>

#include "lib/units/named_parameter.h"

namespace scaletrain::parallel {

// A parameter's place in a block.
struct FlatSlot {
  std::size_t parameter = 0;  // number in the list
  std::int64_t begin = 0, count = 0;
};

struct FlatPlan {
  std::vector<std::size_t> units;  // ascending, that use it: several of what is tied
  std::vector<FlatSlot> slots;     // ascending, with gaps
  at::ScalarType type = at::kFloat;
  bool is_trained = true;
  bool is_bf16_when_gathered = false;
  std::int64_t part = 0;  // elements of each rank, of which the last ranks' may be gaps
};

// Elements [first, last) of a block.
struct FlatRange {
  std::int64_t first = 0, last = 0;
};

// The blocks for `ranks` ranks, those of `gathered_as_bf16` apart, in the order of their first unit
// and there of the parameters. A parameter that no unit names belongs to the last. Tensors that
// several units name have blocks of their own, one for each set of units.
std::vector<FlatPlan> plan_flats(const std::vector<units::NamedParameter>& parameters,
                                 const std::vector<std::vector<std::string>>& units, int ranks,
                                 const std::set<std::string>& gathered_as_bf16 = {});

// What no parameter fills of `ranks` parts.
std::vector<FlatRange> gaps_of(const FlatPlan& plan, int ranks);

// What `rank` has of a slot, counted from the slot's beginning; empty: first is last.
FlatRange part_of(const FlatSlot& slot, std::int64_t part, int rank);

// What a rank has of `parameter`, whose elements from `range.first` on are `tensor`.
units::NamedParameter part_of_parameter(const units::NamedParameter& parameter, FlatRange range,
                                        at::Tensor tensor);

}  // namespace scaletrain::parallel
