// Recipe values that must agree on all launchers and ranks of a job.
//
// Paths may differ between hosts: only the names of shards must agree. Settings that change only
// the speed of a host may differ too.
#pragma once

#include <map>
#include <optional>
#include <string>

namespace scaletrain::recipe {

struct Recipe;

// Maps each key ("optimizer.lr") to its value as JSON; a long value is shortened to its beginning
// and a digest.
using AgreedValues = std::map<std::string, std::string>;

AgreedValues agreed_values(const Recipe& recipe);

// Returns "optimizer.lr is 0.5, not 0.05" for the first key in which `own` differs from `other`;
// nullopt if they are equal.
std::optional<std::string> first_difference(const AgreedValues& own, const AgreedValues& other);

}  // namespace scaletrain::recipe
