// Which parameters replicas exchange together.
#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "lib/units/named_parameter.h"

namespace scaletrain::parallel {

// The same on all ranks, whatever each of them owns of the model: replicas of several ranks
// exchange all of a fragment behind the same step.
struct Fragments {
  std::map<std::string, std::int64_t> of = {};  // by a parameter's name
  // Of several ranks of a replica, each of which exchanges its own copy: these travel alone, as
  // sums have the same bits only where a message is the same.
  std::set<std::string> copied = {};
};

// `count` of them that hold about as many elements each, by the shapes of whole parameters in the
// model's order. Some may have none where there are few parameters.
Fragments divide_in_fragments(const std::vector<units::NamedParameter>& model, std::int64_t count);

}  // namespace scaletrain::parallel
