#include "lib/recipe/lint/subject.h"

#include <doctest/doctest.h>

#include "lib/recipe/load.h"
#include "tests/recipe/recipe_support.h"

namespace scaletrain::recipe {
namespace {

using LengthUnit = Duration::Unit;

TEST_CASE("durations of a lint subject are compared in steps if the samples are known") {
  // 2 ranks x 32 samples; an epoch of 640 samples has 10 steps.
  const Recipe recipe = parse_recipe(minimal_recipe(), "r.json");
  const LintSubject known = lint_subject(recipe, {.ranks = 2, .samples = 640});
  CHECK(known.global == 64);
  CHECK(known.readers == 2);
  CHECK(known.steps({LengthUnit::kEpochs, 3}) == 30);
  CHECK(known.epochs({LengthUnit::kSteps, 30}) == 3);
  CHECK(!known.steps({LengthUnit::kMinutes, 3}));
  // The run has 10 epochs, 100 steps.
  CHECK(known.exceeds_run({LengthUnit::kSteps, 101}));
  CHECK(!known.exceeds_run({LengthUnit::kSteps, 100}));
  CHECK(known.exceeds_run({LengthUnit::kSteps, 100}, /*or_equal=*/true));

  const LintSubject unknown = lint_subject(recipe, {.ranks = 2});
  CHECK(!unknown.steps({LengthUnit::kEpochs, 3}));
  CHECK(!unknown.exceeds_run({LengthUnit::kSteps, 101}));
  CHECK(unknown.exceeds_run({LengthUnit::kEpochs, 11}));
}

}  // namespace
}  // namespace scaletrain::recipe
