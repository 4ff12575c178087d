#include "lib/report/class_report.h"

#include <doctest/doctest.h>

#include "tests/report/report_support.h"

namespace scaletrain::report {

TEST_CASE("classes are counted one by one, and what is taken for what") {
  const ClassReport report = make_class_report(some_predictions(), 3, {"cat", "d<g"});
  REQUIRE(report.classes.size() == 3);
  CHECK(report.classes[0].count == 3);
  CHECK(report.classes[0].right == 1);
  CHECK(report.classes[1].count == 1);
  CHECK(report.classes[1].right == 1);
  CHECK(report.classes[2].count == 0);
  const std::map<std::pair<std::int64_t, std::int64_t>, std::int64_t> confusion{
      {{0, 0}, 1}, {{0, 1}, 2}, {{1, 1}, 1}};
  CHECK((report.confusion == confusion));
  CHECK(report.calibration.error > 0);
}

TEST_CASE("without samples there is no calibration") {
  Predictions::All none;
  CHECK(make_class_report(none, 2, {}).calibration.temperature == 1);
}

}  // namespace scaletrain::report
