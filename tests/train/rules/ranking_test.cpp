#include "lib/train/rules/ranking.h"

#include <doctest/doctest.h>

using namespace scaletrain::train;  // NOLINT(google-build-using-namespace)
namespace recipe = scaletrain::recipe;
using Ranked = std::vector<scaletrain::format::RankedStep>;

namespace {

const recipe::Measure kTop1 = *recipe::find_task("image_classification")->measure("top1");
const recipe::Measure kLoss = *recipe::find_task("language_modelling")->measure("loss");

}  // namespace

TEST_CASE("the k best are kept, of equals the earlier") {
  Ranked best;
  CHECK(rank(best, {10, 0.5}, kTop1, 2));
  CHECK(rank(best, {20, 0.3}, kTop1, 2));  // worse, and there is room
  CHECK((best == Ranked{{10, 0.5}, {20, 0.3}}));
  CHECK_FALSE(rank(best, {30, 0.3}, kTop1, 2));  // not better than the worst
  CHECK(rank(best, {40, 0.5}, kTop1, 2));        // as good as the best: behind it
  CHECK((best == Ranked{{10, 0.5}, {40, 0.5}}));
  CHECK(rank(best, {50, 0.9}, kTop1, 2));
  CHECK((best == Ranked{{50, 0.9}, {10, 0.5}}));
  CHECK(rank(best, {60, 1}, kTop1, 1));  // fewer are to be kept now
  CHECK((best == Ranked{{60, 1}}));
}

TEST_CASE("with keep_best 0 no checkpoint is among the best") {
  Ranked best{{10, 0.5}};
  CHECK_FALSE(rank(best, {20, 0.9}, kTop1, 0));
  CHECK(best.empty());
}

TEST_CASE("for a measure that is better when lower, the lowest values rank first") {
  Ranked best;
  CHECK(rank(best, {10, 2.5}, kLoss, 2));
  CHECK(rank(best, {20, 1.5}, kLoss, 2));
  CHECK_FALSE(rank(best, {30, 3.5}, kLoss, 2));
  CHECK((best == Ranked{{20, 1.5}, {10, 2.5}}));
}

TEST_CASE("a measure is found among those that are known") {
  const recipe::TaskRow& row = *recipe::find_task("language_modelling");
  const std::vector<recipe::Measured> known{{row.measure("loss"), 1.5}};
  CHECK(value_of(*row.measure("loss"), known) == 1.5);
  CHECK(value_of(*row.measure("bits_per_byte"), known) == std::nullopt);
}
