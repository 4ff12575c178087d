#include "launcher/commands/lr_find/range_picture.h"

#include <doctest/doctest.h>

namespace scaletrain::launcher {
namespace {

const std::vector<RangePoint> kPoints{
    {.lr = 0.001, .loss = 3}, {.lr = 0.01, .loss = 1}, {.lr = 0.1, .loss = 2}};
const std::vector<double> kSmoothed{3, 1, 2};

bool holds(const std::string& text, const char* part) {
  return text.find(part) != std::string::npos;
}

}  // namespace

TEST_CASE("the picture has a dot for each step, one line and a label for each decade") {
  const std::string picture = range_picture("digits", kPoints, kSmoothed, std::nullopt);
  CHECK(picture.starts_with("<svg xmlns=\"http://www.w3.org/2000/svg\""));
  CHECK(picture.ends_with("</svg>\n"));
  std::size_t dots = 0;
  for (std::size_t at = picture.find("<circle"); at != std::string::npos;
       at = picture.find("<circle", at + 1)) {
    ++dots;
  }
  CHECK(dots == 3);
  for (const char* decade : {">1e-3</text>", ">1e-2</text>", ">1e-1</text>"}) {
    CAPTURE(decade);
    CHECK(holds(picture, decade));
  }
  // From 70 to 700 pixels; losses 3 and 1 are 8 % of their spread away from the edges 50 and 340.
  CHECK(holds(picture, "d=\"M70.0 70.0L385.0 320.0L700.0 195.0\""));
  CHECK_FALSE(holds(picture, "steepest:"));
}

TEST_CASE("the picture marks the suggestion") {
  const std::string picture =
      range_picture("digits", kPoints, kSmoothed, RateSuggestion{.steepest = 0.003, .best = 0.01});
  CHECK(holds(picture, ">steepest: 0.003</text>"));
}

TEST_CASE("the title of a picture is escaped") {
  const std::string picture = range_picture("a<b>&\"c", kPoints, kSmoothed, std::nullopt);
  CHECK(holds(picture, "a&lt;b&gt;&amp;"));
  CHECK_FALSE(holds(picture, "a<b>"));
}

TEST_CASE("a picture without points is a whole SVG file") {
  const std::string picture = range_picture("digits", {}, {}, std::nullopt);
  CHECK(picture.ends_with("</svg>\n"));
  CHECK_FALSE(holds(picture, "<path"));
}

}  // namespace scaletrain::launcher
