#include "lib/track/media.h"

#include <doctest/doctest.h>

#include <nlohmann/json.hpp>

namespace scaletrain::track {
namespace {

using MediaJson = nlohmann::ordered_json;

MediaJson picture_line(const std::string& file) {
  return {{"name", "val/worst"},
          {"file", file},
          {"attempt", 1},
          {"step", 7},
          {"time", 100.5},
          {"columns", 4},
          {"captions", {"cat, predicted dog"}}};
}

}  // namespace

TEST_CASE("a line of media/index.jsonl is a picture") {
  const auto picture = parse_picture(picture_line("step-00000007-val-worst.png"));
  REQUIRE(picture.has_value());
  CHECK(picture->name == "val/worst");
  CHECK(picture->step == 7);
  CHECK(picture->columns == 4);
  CHECK(picture->captions == std::vector<std::string>{"cat, predicted dog"});
}

TEST_CASE("a picture outside the folder, or without a field, is left out") {
  CHECK_FALSE(parse_picture(picture_line("../secret.png")).has_value());
  CHECK_FALSE(parse_picture(picture_line("/etc/passwd")).has_value());
  MediaJson line = picture_line("a.png");
  line.erase("columns");
  CHECK_FALSE(parse_picture(line).has_value());
}

TEST_CASE("a line of histograms.jsonl has a histogram for each tensor") {
  const auto line = MediaJson::parse(R"({"attempt": 0, "step": 100, "time": 2.5, "histograms": {
      "weights/w": {"min": -1, "max": 1, "sum": 0.5, "sum_squares": 3, "counts": [2, 0, 1]}}})");
  const auto histograms = parse_histograms(line);
  REQUIRE(histograms.has_value());
  CHECK(histograms->step == 100);
  REQUIRE(histograms->all.size() == 1);
  CHECK(histograms->all[0].name == "weights/w");
  CHECK(histograms->all[0].counts == std::vector<double>{2, 0, 1});
  CHECK_FALSE(parse_histograms(MediaJson{{"step", 1}}).has_value());
}

}  // namespace scaletrain::track
