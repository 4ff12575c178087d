#include "launcher/plan/score.h"

#include <doctest/doctest.h>

#include <fstream>
#include <nlohmann/json.hpp>

#include "tests/temporary_folder.h"

namespace scaletrain::launcher {
namespace {

using doctest::Approx;

Score score_of(const std::string& run, double predicted, double measured) {
  return {.run = run, .device = "cpu", .step_s = ScoredValue{predicted, measured}};
}

}  // namespace

TEST_CASE("an error is relative to what was measured") {
  CHECK(ScoredValue{11, 10}.error() == Approx(0.1));
  CHECK(ScoredValue{5, 10}.error() == Approx(-0.5));
}

TEST_CASE("scores are read back, damaged lines left out, and the last one of a run counts") {
  const test::TemporaryFolder folder;
  const auto file = folder.path / "state" / "scores.jsonl";
  CHECK(read_scores(file).empty());
  append_score(file, score_of("a", 1, 2));
  std::ofstream(file, std::ios::app) << "{\"run\": \n[]\n";
  append_score(file, score_of("b", 3, 2));
  append_score(file, score_of("a", 2, 2));
  const std::vector<Score> scores = read_scores(file);
  REQUIRE(scores.size() == 2);
  CHECK(scores[0].run == "b");
  CHECK(scores[1].run == "a");
  CHECK(scores[1].step_s.value().error() == 0);
  CHECK(!scores[1].memory_bytes);
}

TEST_CASE("a spread has the median, and the errors of half and of nine tenths of the runs") {
  CHECK(!spread_of({}));
  const auto spread = spread_of({-0.4, 0.1, 0.2, 0.0, -0.1, 0.1, 0.1, 0.05, -0.2, 0.3});
  REQUIRE(spread);
  CHECK(spread->count == 10);
  CHECK(spread->median == Approx(0.05));
  CHECK(spread->half == Approx(0.1));
  CHECK(spread->most == Approx(0.3));
}

TEST_CASE("the table has a line for each device and value") {
  CHECK(scores_text({score_of("a", 11, 10), score_of("b", 9, 10)}) ==
        "device  value   runs  median error  half within  90 % within\n"
        "cpu     step_s  2     -10.0 %       10.0 %       10.0 %\n");
}

}  // namespace scaletrain::launcher
