// Recipe values that must agree on all launchers and ranks of a job.
//
// Paths may differ, since hosts may have the same files in different places: of shards the names
// count. So may what decides only how fast a host computes and reads.
#pragma once

#include <map>
#include <optional>
#include <string>

namespace scaletrain::recipe {

struct Recipe;

// Maps each key ("optimizer.lr") to its value as JSON; a long value is its beginning and a digest.
using AgreedValues = std::map<std::string, std::string>;

AgreedValues agreed_values(const Recipe& recipe);

// "optimizer.lr is 0.5, not 0.05" for the first key in which `own` differs from `other`; nullopt
// where they are the same.
std::optional<std::string> first_difference(const AgreedValues& own, const AgreedValues& other);

}  // namespace scaletrain::recipe
