// Three replicas of two ranks each that are apart, of one of which a rank is killed.
#pragma once

#include <doctest/doctest.h>
#include <fmt/format.h>

#include <csignal>
#include <cstdlib>
#include <string>
#include <vector>

#include "tests/train/rare_runs.h"

namespace scaletrain::testing {

inline const std::vector<RareLayout>& pairs() {
  static const std::vector<RareLayout> all{{"shard", R"({"shard": 2})", 6, 2, 3},
                                           {"tensor", R"({"tensor": 2})", 6, 1, 3},
                                           {"pipeline", R"({"pipeline": 2})", 6, 1, 3},
                                           {"expert", R"({"expert": 2})", 6, 2, 3}};
  return all;
}

inline const char* model_of(const RareLayout& layout) {
  return layout.name == std::string("expert") ? kRareMixture : kRareDecoder;
}

// What runs of pairs end with where the second rank of replica 1 is killed at `step`, whose fellow
// has lost a peer.
inline void check_one_is_lost(const recipe::Recipe& recipe, const RareLayout& layout, int step) {
  const bool is_pipeline = layout.name == std::string("pipeline");
  const int killed = is_pipeline ? 4 : 3, fellow = is_pipeline ? 1 : 2;
  ::setenv("SCALETRAIN_FAULT", fmt::format("kill@{},{}", step, killed).c_str(), 1);
  const auto results = SavedRuns::run(recipe, {.ranks = layout.ranks});
  ::unsetenv("SCALETRAIN_FAULT");
  for (int rank = 0; rank < layout.ranks; ++rank) {
    CAPTURE(rank);
    const auto& result = results[static_cast<std::size_t>(rank)];
    if (rank == killed) {
      CHECK(result.status == 128 + SIGKILL);
    } else if (rank == fellow) {
      CHECK(result.status == 75);
    } else {
      CHECK(result.text == kRareEnd);
    }
  }
}

}  // namespace scaletrain::testing
