// Which parameters replicas exchange together.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "lib/units/named_parameter.h"

namespace scaletrain::parallel {

// The same on all ranks, whatever each of them owns of the model: replicas of several ranks
// exchange all of a fragment behind the same step.
struct Fragments {
  std::map<std::string, std::int64_t> of = {};  // by a parameter's name
  // Ranks of a replica may have copies of the same parameters, beside others that they do not
  // share, and each exchanges its own: sums have the same bits only where a message is the same. So
  // a set of parameters travels apart from what is in another; those that are not named are set 0.
  std::map<std::string, std::int64_t> sets = {};

  std::int64_t set_of(const std::string& name) const {
    const auto found = sets.find(name);
    return found == sets.end() ? 0 : found->second;
  }
};

// `count` of them that hold about as many elements each, by the shapes of whole parameters in the
// model's order. Some may have none where there are few parameters.
Fragments divide_in_fragments(const std::vector<units::NamedParameter>& model, std::int64_t count);

}  // namespace scaletrain::parallel
