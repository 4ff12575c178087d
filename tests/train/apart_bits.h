// Replicas of several ranks that are apart (lib/recipe/apart.h), against those that exchange by
// collectives.
#pragma once

#include <doctest/doctest.h>

#include <map>
#include <string>
#include <vector>

#include "tests/train/rare_runs.h"

namespace scaletrain::testing {

inline constexpr const char* kApartSync =
    R"(sync={"name": "diloco", "steps": 4, "fragments": 2, "outer": {"lr": 0.5, "momentum": 0.8}})";

inline void check_all_end(const std::vector<RankResult>& results, const std::string& text) {
  for (std::size_t rank = 0; rank < results.size(); ++rank) {
    CAPTURE(rank);
    CHECK(results[rank].text.starts_with(text));
  }
}

// The same files with the same bytes.
inline std::string files_apart(const std::map<std::string, std::string>& found,
                               const std::map<std::string, std::string>& expected) {
  std::string text;
  for (const auto& [name, bytes] : expected) {
    const auto one = found.find(name);
    if (one == found.end()) {
      text += name + " is missing; ";
    } else if (one->second != bytes) {
      text += name + " differs; ";
    }
  }
  for (const auto& [name, bytes] : found) {
    if (!expected.contains(name)) text += name + " is one more; ";
  }
  return text;
}

// Apart, by collectives, and apart from the middle on. Early stopping wants votes.
inline void check_bits(const RareRuns& runs, const RareLayout& layout) {
  const std::string name = layout.name;
  CAPTURE(name);
  check_all_end(SavedRuns::run(runs.recipe(name, layout), {.ranks = layout.ranks}), kRareEnd);
  const auto together =
      runs.recipe(name + ", together", layout, {R"(early_stopping={"patience": 99})"});
  check_all_end(SavedRuns::run(together, {.ranks = layout.ranks}), kRareEnd);
  for (const int step : {kRareCut, kRareSteps}) {
    CHECK(files_apart(runs.bytes(name, step), runs.bytes(name + ", together", step)) == "");
  }
  CHECK(runs.state(name, 8).value("lost_positions", nlohmann::json()).empty());
  const auto resumed = runs.recipe(name + ", resumed", layout);
  check_all_end(SavedRuns::run(resumed, {.ranks = layout.ranks}, runs.cut(name)), kRareEnd);
  CHECK(files_apart(runs.bytes(name + ", resumed"), runs.bytes(name)) == "");
}

}  // namespace scaletrain::testing
