#include "lib/dist/any_rank.h"

#include <doctest/doctest.h>

#include <chrono>

#include "tests/dist/ranks.h"

namespace scaletrain::dist {

TEST_CASE("what one rank says all of them hear") {
  for (const int who : {-1, 0, 2}) {
    const auto results = testing::run_ranks({.world_size = 3}, [&](const core::WorkerEnv& env) {
      Group group(env, at::kCPU, std::chrono::seconds(30));
      return any_rank(group, env.rank == who, "said") ? "said" : "not said";
    });
    for (const auto& result : results) CHECK(result.text == (who < 0 ? "not said" : "said"));
  }
}

}  // namespace scaletrain::dist
