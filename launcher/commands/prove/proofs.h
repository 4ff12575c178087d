// Table of what `scaletrain prove` proves: pairs of short runs that must end alike.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "launcher/commands/prove/short_recipe.h"

namespace scaletrain::launcher {

// SIGKILL to `rank` at the beginning of `step`.
struct PlannedKill {
  std::int64_t step = 0;
  int rank = 0;
};

// One run: a recipe on `ranks` ranks, killed and resumed once for each of `kills`.
struct Trial {
  recipe::Recipe recipe;
  int ranks = 1;
  std::vector<PlannedKill> kills{};
};

struct Proof {
  std::string
      group;         // "same", "killed", "ranks", "accumulation", "layouts", "techniques", "loader"
  std::string name;  // "ranks-4", "tensor-2"; unique
  double tolerance = 0;          // largest relative difference of a loss; 0: the same bits
  std::string not_applicable{};  // reason why this recipe has no such run; "": it has one
  Trial first{}, second{};
};

// Fewest steps of a run that can be killed after a checkpoint and resumed.
inline constexpr std::int64_t kFewestProofSteps = 4;

// Returns all proofs of the recipe on at most `most_ranks` ranks. `seed` draws the kills.
std::vector<Proof> proofs(const ShortRecipe& shortened, std::int64_t steps, int most_ranks,
                          std::uint64_t seed);

// Returns the proofs whose group or name is in `only`, all if it is empty. Throws core::UsageError
// for a name that no proof has.
std::vector<Proof> select_proofs(std::vector<Proof> all, const std::vector<std::string>& only);

}  // namespace scaletrain::launcher
