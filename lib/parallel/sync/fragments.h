// Which parameters replicas exchange together.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "lib/units/named_parameter.h"

namespace scaletrain::parallel {

// The same on all ranks, whatever each of them owns of the model: replicas of several ranks
// exchange all of a fragment behind the same step, and all of a message at once. So what several
// ranks of a replica have copies of is the mean over the same replicas on each of them.
struct Fragments {
  std::map<std::string, std::int64_t> message_of = {};  // by a parameter's name
  std::vector<std::int64_t> of_message = {};            // the fragment that it is a part of
};

// `count` of them that hold about as many elements each, by the shapes of whole parameters in the
// model's order, in messages of at most 32 MiB of fp32, or of one parameter. Some fragments have
// none where there are few parameters. Parameters of other `sets`, by name, travel apart, those
// without one together: ranks of a replica may have copies of the same parameters beside others
// that they do not share, and by collectives sums have the same bits only where a message is the
// same.
Fragments divide_in_fragments(const std::vector<units::NamedParameter>& model, std::int64_t count,
                              const std::map<std::string, std::int64_t>& sets = {});

}  // namespace scaletrain::parallel
