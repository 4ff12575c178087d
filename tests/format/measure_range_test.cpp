#include "lib/format/measure_range.h"

#include <doctest/doctest.h>

#include <string>

#include "lib/recipe/catalog/task.h"

using namespace scaletrain;          // NOLINT(google-build-using-namespace)
using namespace scaletrain::format;  // NOLINT(google-build-using-namespace)

TEST_CASE("each measure of each task has its range, of the weights' mean too") {
  for (const recipe::TaskRow& task : recipe::tasks()) {
    for (const recipe::Measure& measure : task.measures) {
      CAPTURE(measure.name);
      const bool is_share = measure.kind == recipe::Measure::Kind::kShare;
      for (const std::string& by : {measure.name, "ema/" + measure.name}) {
        const MeasureRange range = measure_range(by);
        CHECK(range.contains(0));
        CHECK(range.contains(1));
        CHECK_FALSE(range.contains(-0.5));
        CHECK(range.contains(5) == !is_share);
        CHECK(range.text() == (is_share ? "from 0 to 1" : "at least 0"));
      }
    }
  }
}

TEST_CASE("a measure of another program has any finite value") {
  CHECK(measure_range("reward").contains(-5));
  CHECK(measure_range("").text() == "finite");
}
