#include "launcher/commands/lint/lint_text.h"

#include <doctest/doctest.h>

#include <nlohmann/json.hpp>

namespace scaletrain::launcher {
namespace {

const std::vector<recipe::LintFinding>& one_finding() {
  static const std::vector<recipe::LintFinding> findings{
      {.rule = "no-clip", .place = "/clip", .found = "none", .why = "because", .remedy = "add it"}};
  return findings;
}

TEST_CASE("lint findings are printed with rule, place, reason and remedy") {
  CHECK(lint_text("r", one_finding()) ==
        "no-clip: /clip: none\n  why: because\n  do: add it\nr: 1 finding\n");
  CHECK(lint_text("r", {}) == "r: nothing unusual\n");
}

TEST_CASE("lint findings are written as JSON") {
  CHECK(lint_json("r", one_finding()).dump() ==
        R"({"recipe":"r","findings":[{"rule":"no-clip","place":"/clip","found":"none",)"
        R"("why":"because","remedy":"add it"}]})");
  CHECK(lint_json("r", {}).dump() == R"({"recipe":"r","findings":[]})");
}

}  // namespace
}  // namespace scaletrain::launcher
