#include "launcher/commands/runs/comparison.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <sstream>

namespace scaletrain::launcher {

TEST_CASE("on a narrow terminal values are shorter, and their first difference stays visible") {
  const std::string path = "/storage/of/a/team/with/a/long/path/to/its/shards/";
  RunJson comparison = RunJson::parse(R"({"groups": [{"runs": ["runs/a"]}, {"runs": ["runs/b"]}],
    "recipe": [{"key": "data.train.shards"}], "code": [], "data": [], "results": []})");
  comparison["recipe"][0]["values"] = {path + "a.tar", path + "b.tar"};
  const auto widest = [&](int width) {
    std::istringstream lines(comparison_text(comparison, false, width));
    std::size_t most = 0;
    for (std::string line; std::getline(lines, line);) most = std::max(most, line.size());
    return most;
  };
  CHECK(widest(0) == 61);   // 17 + 2 + 20 + 2 + 20: the difference is at the end
  CHECK(widest(60) <= 60);  // 17 + 2 + 19 + 2 + 19
  for (const int width : {0, 60, 40}) {
    const std::string text = comparison_text(comparison, false, width);
    CHECK(text.find("a.tar") != std::string::npos);
    CHECK(text.find("b.tar") != std::string::npos);
  }
}

}  // namespace scaletrain::launcher
