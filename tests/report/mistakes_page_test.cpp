#include "lib/report/mistakes_page.h"

#include <doctest/doctest.h>

#include "tests/report/report_support.h"

namespace scaletrain::report {

TEST_CASE("mistakes are sorted by loss, the largest first") {
  const Predictions::All all = some_predictions();
  CHECK(worst_mistakes(all.predictions, 9) == std::vector<std::size_t>{1, 2});
  CHECK(worst_mistakes(all.predictions, 1) == std::vector<std::size_t>{1});
}

TEST_CASE("the page holds the pictures and the table, and no markup of names") {
  const std::vector<Prediction> predictions = some_predictions().predictions;
  const std::string page = mistakes_page(
      some_evaluation(),
      {{.prediction = predictions[1], .key = "<a>", .extension = "jpg", .bytes = "foo"},
       {.prediction = predictions[2], .key = "b", .extension = "rgb8", .bytes = "bar"}});
  CHECK(page.find(R"(<img alt="" src="data:image/jpeg;base64,Zm9v">)") != std::string::npos);
  CHECK(page.find("<b>cat</b>, not d&lt;g<br>90.9 % sure<br>&lt;a&gt;") != std::string::npos);
  CHECK(page.find("YmFy") == std::string::npos);  // no browser shows it
  CHECK(page.find(R"(<tr><th>cat</th><td class="right">1</td><td class="wrong">2</td><td></td>)") !=
        std::string::npos);
  CHECK(page.find("<a>") == std::string::npos);
}

}  // namespace scaletrain::report
