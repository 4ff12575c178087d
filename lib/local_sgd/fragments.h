// Fragments of DiLoCo: groups of parameters that replicas synchronize at the same step.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "lib/units/named_parameter.h"

namespace scaletrain::local_sgd {

// Division of the model, equal on all ranks whatever they own: replicas of several ranks
// synchronize a whole fragment after the same step, and a whole message at once. So the mean of
// parameters that several ranks of a replica hold is over the same replicas on each of them.
struct Fragments {
  std::map<std::string, std::int64_t> message_of = {};  // message of each parameter, by name
  std::vector<std::int64_t> of_message = {};            // fragment of each message
};

// Divides `model`, in its order, into `count` fragments with about the same number of elements,
// from the shapes of full parameters; messages have at most 32 MiB of fp32, or one parameter. Some
// fragments are empty if there are few parameters. Parameters with different numbers in `sets`, by
// name, get messages of their own, those without a number together: ranks of a replica may share
// some parameters and not others, and a collective gives a sum the same bits only if its whole
// message is equal.
Fragments divide_in_fragments(const std::vector<units::NamedParameter>& model, std::int64_t count,
                              const std::map<std::string, std::int64_t>& sets = {});

}  // namespace scaletrain::local_sgd
