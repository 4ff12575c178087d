// Subject of the lint rules: a recipe with its batch and its length on a number of ranks.
#pragma once

#include <cstdint>
#include <optional>

#include "lib/recipe/catalog/values.h"

namespace scaletrain::recipe {

struct Recipe;

// Facts that a recipe does not contain.
struct LintFacts {
  int ranks = 0;             // ranks of the job; 0: as many as one model replica needs
  std::int64_t samples = 0;  // samples of an epoch; 0: unknown
};

struct LintSubject {
  const Recipe& recipe;
  int readers = 1;              // data-parallel ranks
  std::int64_t per_device = 0;  // 0: automatic
  std::int64_t global = 0;      // 0: automatic
  std::int64_t samples = 0;     // of an epoch; 0: unknown

  // Converts a duration to steps or epochs; nullopt if the samples of an epoch are needed and
  // unknown, and for minutes.
  std::optional<double> steps(const Duration& duration) const;
  std::optional<double> epochs(const Duration& duration) const;

  // True if `duration` is known to be longer than the run, or as long with `or_equal`.
  bool exceeds_run(const Duration& duration, bool or_equal = false) const;
};

// Plans the batch of `recipe`. Throws core::RecipeError as plan_batch() (lib/recipe/ranks.h) does.
LintSubject lint_subject(const Recipe& recipe, const LintFacts& facts);

}  // namespace scaletrain::recipe
